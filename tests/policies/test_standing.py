"""Which replica has what: as it was read, one by one, with what could not be read and what nothing runs on."""

from __future__ import annotations

import pytest

from policies import events as e
from policies.change import Change, apply
from policies.facts import Incarnation, UnitFacts
from policies.plan import Plan, Target
from policies.standing import Stand, Standing, differing, spread, value_of
from tests.policies import builders as b
from tests.policies.change_events import standing as change_at
from tests.policies.waves import plan

HAS = Stand(instance="decode@gpu1", word="has", value="512")
OTHER = Stand(instance="decode@gpu2", word="has", value="64")
UNSET = Stand(instance="decode@gpu2", word="unset")
AWAY = Stand(instance="decode@gpu3", word="unknown", why="gpu3 does not answer")
NO_LIFE = Incarnation(main_pid=0, started=0, invocation_id="")


def of(*stands: Stand) -> Standing:
    return Standing(of="value", at=b.NOW, stands=stands)


@pytest.mark.parametrize(
    ("unit", "word", "value"),
    [
        (b.unit(running="512"), "has", "512"),
        (b.unit(running=None), "unset", None),
        (b.unit(running="512", incarnation=NO_LIFE), "down", None),
        (b.unit(processes=(b.process("512", answer="unreadable"),)), "unknown", None),
        (b.unit(processes=()), "unknown", None),
    ],
)
def test_a_value_is_what_the_main_process_has_and_what_is_not_told_is_not_known(
    unit: UnitFacts, word: str, value: str | None
) -> None:
    stand = value_of("decode@gpu1", unit, b.ENV)
    assert (stand.word, stand.value, stand.why is None) == (word, value, word != "unknown")


@pytest.mark.parametrize(
    ("stands", "mixed", "unsure"),
    [
        ((HAS, HAS), False, False),
        ((HAS, OTHER), True, False),
        ((HAS, UNSET), True, False),
        ((HAS, Stand(instance="decode@gpu2", word="down")), True, False),
        ((HAS, AWAY), False, True),
        ((HAS, UNSET, AWAY), True, True),
    ],
)
def test_replicas_that_differ_are_mixed_and_one_that_is_not_known_is_no_agreement(
    stands: tuple[Stand, ...], mixed: bool, unsure: bool
) -> None:
    assert (of(*stands).mixed, of(*stands).unsure) == (mixed, unsure)


def test_instances_are_told_by_what_they_have_and_none_is_left_out() -> None:
    third = HAS.model_copy(update={"instance": "decode@gpu3"})
    assert [(one.value, names) for one, names in spread(of(HAS, OTHER, third))] == [
        ("512", ("decode@gpu1", "decode@gpu3")),
        ("64", ("decode@gpu2",)),
    ]


def aimed(then: str | None) -> Plan:
    targets = tuple(
        Target(
            instance=f"decode@gpu{n}", variable=b.ENV, now=None, now_decided_by=None, then=then, then_decided_by=None
        )
        for n in (1, 2, 3)
    )
    return plan([{"decode": ("gpu1",)}, {"decode": ("gpu2", "gpu3")}]).model_copy(update={"targets": targets})


def test_who_does_not_have_what_was_approved_is_found_and_who_could_not_be_read_is_left_to_the_proof() -> None:
    assert differing(aimed("512"), of(HAS, OTHER, AWAY)) == (OTHER,)
    assert differing(aimed(None), of(HAS, UNSET)) == (HAS,)
    down = Stand(instance="decode@gpu3", word="down")
    assert differing(aimed(None), of(UNSET, down)) == (down,)
    beside = Stand(instance="decode@gpu9", word="has", value="1")
    assert differing(aimed("512"), of(HAS, beside)) == ()


def test_what_was_read_at_the_hold_stands_until_work_goes_on_and_keep_records_it() -> None:
    held = apply(change_at("running"), e.Held(findings=(), standing=of(HAS, OTHER)), b.NOW)
    assert held.standing == of(HAS, OTHER)
    kept = apply(held, e.KeepChosen(actor=b.BEN, standing=held.standing), b.NOW)
    assert (kept.state, kept.standing) == ("failed", of(HAS, OTHER))
    assert apply(held, e.RetryAsked(actor=b.BEN), b.NOW).standing is None
    assert Change("C-1").standing is None


def test_entries_of_before_there_were_replicas_are_read_without() -> None:
    assert e.EVENT.validate_python({"kind": "held", "findings": []}) == e.Held(findings=())
    assert e.EVENT.validate_python({"kind": "rolled_back", "findings": []}) == e.RolledBack(findings=())
