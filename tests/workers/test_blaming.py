"""A revert's reason is judged as it is given: what was read, what speaks against the knob, what else changed."""

from __future__ import annotations

import pytest

from bot.cards.blame import blame_lines, established
from policies import events as e
from policies.blame import Blame
from policies.intents import RevertKnob, SetKnob
from tests.bot import stories
from tests.bot.suspected import record, restored, reverted
from tests.conftest import Store
from tests.workers.truths import World, texts
from workers.blaming import blame


@pytest.fixture
def world(store: Store) -> World:
    return World(store)


def blamed(world: World, because: str = "multi-round hang", citing: tuple[str, ...] = ()) -> Blame:
    asked = reverted(world.now)[0]
    assert isinstance(asked, e.Asked)
    asked = asked.model_copy(update={"intent": RevertKnob(knob="TARGET_CTAS", because=because, citing=citing)})
    found = blame(world, world.measuring, asked, "C-7")  # type: ignore[arg-type]  # as much of the wiring as it needs
    assert found is not None
    return found


def lines(found: Blame) -> str:
    return "\n".join(blame_lines(found, "TARGET_CTAS"))


def test_an_idle_engine_speaks_against_the_knob_with_every_reading(world: World) -> None:
    found = blamed(world)
    assert found.guilt is not None
    assert found.guilt.word == "fails"
    said = lines(found)
    assert "if it were `TARGET_CTAS`, `state != idle` would be seen, and it was not" in said
    assert "the engine was idle (" in said
    readings = ("num_running_reqs 0", "num_queue_reqs 0", "http_requests_active 0", "num_decode_transfer_queue_reqs 0")
    for reading in (*readings, "router_in_flight", "counters still"):
        assert reading in said
    assert "which speaks against it" in said
    assert established(found) == "cause: not established"
    assert found.cause is None


def test_idle_is_not_claimed_when_anything_is_unknown(world: World) -> None:
    world.said = texts(decode={"http": None})
    found = blamed(world)
    assert found.guilt is not None
    assert found.guilt.word == "unknown"
    said = lines(found)
    assert "idle not proven: http_active unknown" in said
    assert "speaks against" not in said


def test_a_host_that_answers_nothing_leaves_it_unknown(world: World) -> None:
    world.said = {}
    found = blamed(world)
    assert found.guilt is not None
    assert found.guilt.word == "unknown"
    assert found.load == ()


def test_work_that_is_seen_is_no_proof_of_guilt(world: World) -> None:
    world.past(30, decode={"running": 3, "tokens": 8_000_000})
    world.said = texts(decode={"running": 3, "tokens": 9_000_000})
    found = blamed(world)
    assert found.guilt is not None
    assert found.guilt.word == "holds"
    assert "that alone shows nothing" in lines(found)
    assert found.cause is None


def test_causes_that_the_reason_names_are_judged_at_once(world: World) -> None:
    found = blamed(world, "cold start after the restart")
    assert [(v.name, v.word) for v in found.verdicts] == [("cold-start", "refuted")]
    assert found.hangs_on == ("cold-start",)
    assert "the reason, judged: cause: not established" in lines(found)


def test_what_is_cited_is_judged_and_what_cannot_be_is_said(world: World) -> None:
    found = blamed(world, citing=("queue_reqs > 0",))
    assert [(v.title, v.word) for v in found.verdicts] == [("queue_reqs > 0", "refuted")]
    unread = blamed(world, citing=("nonsense_reqs > 0",))
    assert [finding.code for finding in unread.unread] == ["claim.no-such-metric"]
    assert "not judged: `nonsense_reqs` is no metric of the fleet file" in lines(unread)


def test_a_verified_cause_carries_the_revert_only_where_the_knob_may_have_done_it(world: World) -> None:
    world.past(500, 300, 100)
    world.said = texts(decode={"running": 53, "queued": 11, "tokens": 9_000_000})
    found = blamed(world, "queued behind load")
    assert found.guilt is not None
    assert (found.guilt.word, found.verdicts[0].word) == ("holds", "verified")
    assert found.cause == found.verdicts[0]
    assert "cause: *queued-behind-load*" in established(found)
    held_against = found.model_copy(update={"guilt": found.guilt.model_copy(update={"word": "unknown"})})
    assert held_against.cause is None


def test_what_else_was_begun_since_the_value_came_is_listed(world: World) -> None:
    assert "when the value came is not recorded" in lines(blamed(world))
    whole: list[e.Event] = [
        stories.asked().model_copy(update={"normalised": "/deploy restart decode"}),
        stories.planned(stories.plan("decode-only")),
        stories.confirmed("decode-only"),
        stories.started("decode-only"),
    ]
    record(world.ledger, "C-4", whole)
    assert "changed in the day before: C-4 `/deploy restart decode`" in lines(blamed(world))
    world.wait(60)
    record(world.ledger, "C-5", restored())
    world.wait(60)
    found = blamed(world)
    assert (found.brought_by, found.beside) == ("C-5", ())
    assert "nothing else is recorded as changed since" in lines(found)
    assert "clients, proxies, other hosts) was not looked at" in lines(found)
    fix = stories.asked().model_copy(
        update={"intent": SetKnob(knob="INFLIGHT_TIMEOUT", value="30"), "normalised": "/knob set INFLIGHT_TIMEOUT=30"}
    )
    plan = stories.plan("decode-only")
    record(world.ledger, "C-6", [fix, stories.planned(plan), stories.confirmed("decode-only"), stories.started()])
    found = blamed(world)
    assert [one.change for one in found.beside] == ["C-6"]
    assert "C-6 `/knob set INFLIGHT_TIMEOUT=30`" in lines(found)


def test_who_sets_a_knob_blames_none(world: World) -> None:
    asked = stories.asked()
    assert blame(world, world.measuring, asked, "C-1") is None  # type: ignore[arg-type]  # as above


def test_the_words_of_a_reason_are_nowhere_repeated_as_fact(world: World) -> None:
    found = blamed(world, "cold start because the moon was full")
    assert "moon" not in lines(found)
