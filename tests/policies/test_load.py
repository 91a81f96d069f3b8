"""What a restart costs the requests of this moment is told as far as it was read, and no further."""

from __future__ import annotations

import pytest

from policies.facts import HttpAnswer, UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet, HttpCheck
from policies.load import oldest_over_s, plan_load
from policies.planning.steps import instances_of
from tests.policies import builders as b

ENGINE = """\
sglang:num_running_reqs{tp_rank="0"} 53.0
sglang:num_running_reqs{tp_rank="1"} 53.0
sglang:num_queue_reqs{tp_rank="0"} 11.0
"""


def ages(**counts: float) -> str:
    bounds = {"under_30": ("0", "30"), "over_30": ("30", "60"), "over_60": ("60", "180"), "over_600": ("600", "+Inf")}
    return "".join(
        f'smg_http_inflight_request_age_count{{gt="{bounds[name][0]}",le="{bounds[name][1]}"}} {count}\n'
        for name, count in counts.items()
    )


def metered(unit: UnitFacts, text: str | None, status: int | None = 200) -> UnitFacts:
    answer = HttpAnswer(
        id="metrics", url="http://127.0.0.1/metrics", status=status, body=text or "", at=1000.0, took_s=0.1
    )
    return unit.model_copy(update={"http": (answer,) if text is not None else ()})


def fleet() -> Fleet:
    plain = b.fleet()
    check = HttpCheck(url="http://127.0.0.1:1/metrics")
    services = {name: s.model_copy(update={"metrics": check}) for name, s in plain.services.items()}
    return plain.model_copy(update={"services": services})


def load(order: str, *, router: str | None, decode: str | None = ENGINE, stop_s: float | None = 90.0) -> list[Finding]:
    facts = b.facts(
        fleet(),
        decode=metered(b.unit("decode@gpu1", timeout_stop_s=stop_s), decode),
        router=metered(b.unit("router@gpu1"), router),
    )
    return list(plan_load(fleet(), instances_of(fleet(), order), ("decode@gpu1",), facts))


def codes(found: list[Finding]) -> list[str]:
    return [f"{f.effect} {f.code} {f.values.get('instance', f.values.get('left'))}" for f in found]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", None),
        (ages(under_30=40), None),
        (ages(under_30=40, over_30=0), None),
        (ages(under_30=40, over_30=2), 30.0),
        (ages(over_30=2, over_60=1, over_600=0), 60.0),
        (ages(over_600=1), 600.0),
        ('smg_http_inflight_request_age_count{gt="old"} 1\n', None),
        ("not { metrics", None),
    ],
)
def test_the_oldest_request_is_over_the_highest_bound_that_has_any(text: str, told: float | None) -> None:
    assert oldest_over_s(text) == told


def test_an_order_tells_what_it_cuts_how_old_that_is_and_how_long_a_stop_may_take() -> None:
    found = load("co-restart", router=ages(over_30=2))
    assert codes(found) == [
        "note load.in-flight decode@gpu1",
        "note load.oldest router@gpu1",
        "note load.stop-timeout prefill@gpu1",
        "note load.stop-timeout decode@gpu1",
        "note load.stop-timeout router@gpu1",
    ]
    assert found[0].values["running"] == 53.0
    assert found[0].values["queued"] == 11.0
    assert found[1].values["older_than_s"] == 30.0
    assert found[3].values["timeout_stop_s"] == 90.0


def test_an_age_that_is_not_told_is_not_spoken_of() -> None:
    assert not [line for line in codes(load("co-restart", router=None)) if "oldest" in line]
    assert not [line for line in codes(load("co-restart", router=ages(under_30=3))) if "oldest" in line]


def test_a_stop_that_is_shorter_than_the_oldest_request_is_warned_of() -> None:
    found = load("decode-only", router=ages(over_60=1), stop_s=60.0)
    assert "warn load.stop-too-short decode@gpu1" in codes(found)
    assert "note load.stop-timeout decode@gpu1" in codes(load("decode-only", router=ages(over_60=1), stop_s=61.0))
    assert "note load.stop-unlimited decode@gpu1" in codes(load("decode-only", router=ages(over_60=1), stop_s=None))


def test_the_load_of_the_knobs_instance_is_told_even_when_it_is_not_known() -> None:
    assert codes(load("co-restart", router=None, decode=None))[0] == "warn load.unknown decode@gpu1"
    assert codes(load("co-restart", router=None, decode="up 1\n"))[0] == "warn load.unknown decode@gpu1"


def test_a_needed_service_that_an_order_leaves_running_is_named() -> None:
    assert codes(load("decode-only", router=None))[-1] == "note load.left-out prefill"
    assert not [line for line in codes(load("co-restart", router=None)) if "left-out" in line]
