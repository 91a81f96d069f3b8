"""What somebody states is judged on what was measured, recorded with it, and judged again when it is contested."""

from __future__ import annotations

import pytest

from policies import events as e
from policies.errors import NotFound
from policies.finding import Finding
from policies.intents import DisputeStatement, StateCause, Where
from tests.bot import stories
from tests.conftest import Store
from tests.workers.truths import T0, World, fleet, texts
from workers.statements import Told

HERE = Where(channel="C0PERF")
ANA = stories.ana()


@pytest.fixture
def world(store: Store) -> World:
    return World(store)


def stated(world: World, *, key: str | None = None, **said: object) -> Told:
    found = world.truth.state(StateCause.model_validate(said), ANA, HERE, key=key)
    assert isinstance(found, Told), found
    return found


def queued(world: World) -> None:
    """53 requests run and 11 wait; ten minutes before nothing did."""
    world.past(500, 400, 300, 200, 100, 20)
    world.said = texts(decode={"running": 53, "queued": 11, "http": 64, "tokens": 9_000_000}, in_flight=64)


def test_a_cause_that_holds_now_and_did_not_before_is_verified_with_both_readings(world: World) -> None:
    queued(world)
    told = stated(world, name="queued-behind-load")
    verdict = told.statement.judged.verdict
    assert (told.statement.id, verdict.word, verdict.name) == ("st-1", "verified", "queued-behind-load")
    assert {(c.name, c.value) for c in verdict.citations} == {("queue_reqs", 11.0)}
    assert {(c.name, c.value) for c in verdict.baseline} == {("queue_reqs", 0.0)}
    assert [(c.name, c.value) for c in told.statement.judged.load] == [("running_reqs", 53.0), ("queue_reqs", 11.0)]
    assert world.ledger.verify() == []


def test_without_a_time_before_it_is_consistent_only(world: World) -> None:
    world.said = texts(decode={"running": 53, "queued": 11})
    assert stated(world, name="queued-behind-load").statement.judged.verdict.word == "consistent"


def test_made_up_words_are_not_accepted_and_the_rival_is_named_with_its_readings(world: World) -> None:
    queued(world)
    judged = stated(world, text="cold start").statement.judged
    assert (judged.verdict.word, judged.verdict.name) == ("refuted", "cold-start")
    (rival,) = judged.others
    assert (rival.name, rival.word) == ("queued-behind-load", "verified")
    assert ("queue_reqs", 11.0) in {(c.name, c.value) for c in rival.citations}


def test_words_that_name_nothing_and_cite_nothing_are_unverified(world: World) -> None:
    queued(world)
    verdict = stated(world, text="the moon was full").statement.judged.verdict
    assert (verdict.word, verdict.title) == ("unverified", "")


def test_words_with_citations_claim_what_is_cited(world: World) -> None:
    queued(world)
    verdict = stated(world, text="our proxy", citing=("queue_reqs > 10",)).statement.judged.verdict
    assert (verdict.word, verdict.title) == ("consistent", "queue_reqs > 10")  # queued-behind-load holds as well


def test_words_that_name_a_catalogued_cause_need_what_it_needs_beside_what_is_cited(world: World) -> None:
    queued(world)
    verdict = stated(world, text="cold start", citing=("queue_reqs > 0",)).statement.judged.verdict
    assert (verdict.word, verdict.name) == ("refuted", "cold-start")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"text": "x", "citing": ("nonsense_reqs > 0",)}, "claim.no-such-metric"),
        ({"text": "x", "citing": ("queue_reqs >",)}, "claim.malformed"),
        ({"name": "gremlins"}, "statement.no-such-cause"),
        ({"text": "cold start or queued behind load"}, "statement.names-several"),
    ],
)
def test_what_cannot_be_judged_is_refused_and_not_recorded(world: World, said: dict[str, object], code: str) -> None:
    found = world.truth.state(StateCause.model_validate(said), ANA, HERE)
    assert isinstance(found, Finding)
    assert (found.code, found.effect) == (code, "refuse")
    assert world.client.asides(9) == []


def test_no_data_is_never_a_cause(world: World) -> None:
    world.said = {}
    judged = stated(world, name="queued-behind-load").statement.judged
    assert judged.verdict.word == "unverified"
    assert (judged.load, judged.state) == ((), None)


def test_a_statement_about_no_change_of_ours_is_refused(world: World) -> None:
    with pytest.raises(NotFound):
        world.truth.state(StateCause(name="cold-start", of="C-99"), ANA, HERE)


def test_heard_twice_it_is_one_statement(world: World) -> None:
    queued(world)
    first, again = stated(world, key="k", text="cold start"), stated(world, key="k", text="cold start")
    assert first == again
    assert len(world.client.asides(9)) == 1


def test_a_dispute_is_kept_and_strikes_what_does_not_hold(world: World) -> None:
    queued(world)
    stated(world, text="cold start")
    said = DisputeStatement(statement="st-1", because="it queued behind live traffic")
    told = world.truth.dispute(said, stories.ben())
    assert told.standing.struck
    (dispute,) = told.disputes
    assert (dispute.actor.id, dispute.because) == ("U0BEN", "it queued behind live traffic")
    assert dispute.judged.verdict.word == "refuted"
    assert told.statement.said.text == "cold start"


def test_a_dispute_of_what_holds_is_kept_and_strikes_nothing(world: World) -> None:
    queued(world)
    stated(world, name="queued-behind-load")
    told = world.truth.dispute(DisputeStatement(statement="st-1"), stories.ben())
    assert not told.standing.struck
    assert told.disputes[0].judged.verdict.word == "verified"


def test_a_dispute_after_the_readings_are_gone_strikes_what_can_no_longer_be_shown(world: World) -> None:
    queued(world)
    stated(world, name="queued-behind-load")
    world.metrics.kept.clear()
    told = world.truth.dispute(DisputeStatement(statement="st-1"), stories.ben())
    assert (told.standing.struck, told.standing.judged.verdict.word) == (True, "unverified")


def test_the_same_dispute_heard_twice_is_one_and_two_people_are_two(world: World) -> None:
    queued(world)
    stated(world, name="queued-behind-load")
    said = DisputeStatement(statement="st-1")
    for key, actor in (("a", stories.ben()), ("a", stories.ben()), ("b", ANA)):
        world.truth.dispute(said, actor, key=key)
    kinds = [entry.event.kind for entry in world.ledger.entries("st-1")]
    assert kinds == ["statement_made", "statement_disputed", "statement_disputed"]


def test_what_is_no_statement_cannot_be_disputed(world: World) -> None:
    with pytest.raises(NotFound):
        world.truth.dispute(DisputeStatement(statement="st-9"), ANA)


def test_why_a_service_gives_states_load_and_what_every_cause_comes_to(world: World) -> None:
    queued(world)
    why = world.truth.why("decode")
    assert {name: state.word for name, state in why.states.items()}["decode"] in {"busy", "hung", "not_proven"}
    assert {v.name: v.word for v in why.verdicts} == {"queued-behind-load": "verified", "cold-start": "refuted"}
    with pytest.raises(NotFound):
        world.truth.why("nonsense")


def test_why_leaves_out_causes_that_are_measured_elsewhere(world: World) -> None:
    assert world.truth.why("prefill").verdicts == ()


def test_an_idle_engine_is_proven_idle_by_every_reading(world: World) -> None:
    state = world.truth.why("decode").states["decode"]
    assert state.word == "idle"
    names = {c.name for c in state.citations if c.value == 0}
    assert {"num_running_reqs", "num_queue_reqs", "http_requests_active", "num_decode_transfer_queue_reqs"} <= names
    assert any(name.startswith("router_in_flight") for name in names), names


@pytest.mark.parametrize("lacking", ["running", "queued", "http", "pd"])
def test_idle_is_not_proven_when_anything_is_unknown(store: Store, lacking: str) -> None:
    world = World(store)
    world.said = texts(decode={lacking: {} if lacking == "pd" else None})
    assert world.truth.why("decode").states["decode"].word == "not_proven"


def test_idle_is_not_proven_without_the_router(world: World) -> None:
    world.said = texts(without=("router@gpu1",))
    assert world.truth.why("decode").states["decode"].word == "not_proven"


def test_an_engine_that_stands_still_with_work_is_hung_by_two_looks_a_minute_apart(world: World) -> None:
    world.said = texts(decode={"queued": 3, "http": 3}, in_flight=3)
    assert world.truth.why("decode").states["decode"].word == "not_proven"
    world.wait(60)
    assert world.truth.why("decode").states["decode"].word == "hung"
    assert stated(world, text="engine hung").statement.judged.verdict.word in {"consistent", "verified"}


def test_the_windows_are_recorded_with_what_they_came_to(world: World) -> None:
    world.past(100)
    judged = stated(world, name="queued-behind-load").statement.judged
    assert T0 <= judged.effect.start < judged.effect.end <= world.now
    assert judged.baseline is not None
    assert judged.baseline.end < judged.effect.start


def test_a_fleet_file_that_lost_the_cause_strikes_on_dispute(store: Store) -> None:
    world = World(store)
    queued(world)
    stated(world, name="queued-behind-load")
    other = World(store, fleet(causes={}))
    other.now, other.metrics.kept = world.now, world.metrics.kept
    told = other.truth.dispute(DisputeStatement(statement="st-1"), ANA)
    assert (told.standing.struck, told.standing.judged.verdict.reason.code) == (True, "statement.no-such-cause")
    assert isinstance(told.entries[-1].event, e.StatementDisputed)
