"""From what is typed in chat to the decision, on a real ledger: what evidence lets through, and what it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.cards.plan import plan_card
from bot.cards.story import Story
from bot.messages import sentence
from bot.questions import Questions
from policies import events as e
from policies.applicability import Standing
from policies.change import Change
from policies.context import LoadRange
from policies.errors import HostUnreachable
from policies.evidence import Record
from policies.intents import EvidenceOf, ShowKnob, Verify
from policies.metrics.samples import Sample, Scrape
from tests.bot.said import Table, decode, fleet_of
from tests.bot.test_cards import texts
from tests.conftest import Store
from tests.policies import builders as b
from workers.look import Looks
from workers.recheck import recheck

CASES = b.golden("decisions/said.json")


def typed() -> Record:
    points = [{"concurrency": c, "ratio": r} for c, r in ((64, 1.128), (96, 1.057), (80, 1.012))]
    return b.record(points=points)


def table_of(case: dict[str, Any], store: Store) -> Table:
    running = case.get("running", 64)
    facts = decode(running=running, value=case.get("value"), **case.get("info", {}))
    table = Table(store, fleet_of(*case["rules"]), facts)
    for klass in case.get("judged", ()):
        table.keep(b.judged(klass))
    if case.get("typed"):
        table.keep(typed())
    if "lived" in case:
        table.was_live(case["lived"])
    return table


def card_lines(table: Table, change: Change) -> list[str]:
    entries = table.w.client.entries(change.id)
    story = Story.of(entries, tuple(table.w.client.evidence("TARGET_CTAS")), table.w.fleet)
    return [part for text in texts(plan_card(story)) for part in text.split("\n")]


@pytest.mark.parametrize("case", CASES, ids=b.ids(CASES))
def test_what_is_said_is_decided_on_the_evidence(case: dict[str, Any], store: Store) -> None:
    table = table_of(case, store)
    change = table.say(case["said"], roles=case.get("roles", ("engineers",)))
    assert change.state == case["state"]
    event = table.w.client.entries(change.id)[-1].event
    assert isinstance(event, e.Planned | e.Refused)
    if isinstance(event, e.Refused):
        assert [f.code for f in event.findings if f.effect == "refuse"] == case["codes"]
        assert "refused" not in case or sentence(event.findings[0]) == case["refused"]
        return
    assert [f.code for f in event.findings] == case["codes"]
    if "standing" in case:
        assert [(one.record, one.word) for one in event.standings] == [("ab-1", case["standing"])]
    if "card" in case:
        whole = " · ".join(card_lines(table, change))
        assert case["card"] in whole, json.dumps(whole)


def test_every_grade_of_a_rule_lets_something_through_and_refuses_something() -> None:
    for grade in ("improves", "no_worse", "observed"):
        states = {case["state"] for case in CASES if any(r["evidence"]["at_least"] == grade for r in case["rules"])}
        assert states >= {"planned", "refused"}, grade


NO_WORSE = {"match": {"intent": "set"}, "evidence": {"metric": "output_throughput", "at_least": "no_worse"}}


def approved(table: Table) -> Change:
    change = table.say("/knob set TARGET_CTAS=512")
    assert change.planned is not None
    plan = change.planned.plans[0]
    given = e.ApprovalGiven(actor=b.BEN, order=plan.order, digest=plan.digest, complete=True)
    table.w.ledger.append(change.id, given, expect_version=change.version)
    return table.w.client.change(change.id)


@pytest.mark.parametrize("running", [0, 64, 300, None])
def test_load_that_moves_after_the_approval_changes_nothing(store: Store, running: int | None) -> None:
    table = Table(store, fleet_of(NO_WORSE))
    table.keep(b.judged("no_worse"))
    change = approved(table)
    table.hosts.facts["decode@gpu1"] = decode(running=running)
    assert recheck(table.w, change) is None


@pytest.mark.parametrize("info", [{"version": "0.5.21"}, {"git_commit": "bbbbbbbbbb"}, {"model_path": "other"}])
def test_a_build_that_changes_after_the_approval_stops_it(store: Store, info: dict[str, Any]) -> None:
    table = Table(store, fleet_of(NO_WORSE))
    table.keep(b.judged("no_worse"))
    change = approved(table)
    table.hosts.facts["decode@gpu1"] = decode(**info)
    found = recheck(table.w, change)
    assert isinstance(found, e.Replan)
    assert [f.code for f in found.findings if f.effect == "refuse"] == ["evidence.not-valid"]


def scraped(table: Table, running: float, minutes: int) -> None:
    """So many requests ran at each of the last minutes."""
    for number in range(minutes):
        sample = Sample("sglang:num_running_reqs", {"tp_rank": "0"}, running)
        table.w.kept.add([Scrape("decode@gpu1", "http://127.0.0.1:30001/metrics", b.NOW - 60 * number, (sample,))])


@pytest.mark.parametrize(("ran", "state"), [(64.0, "planned"), (300.0, "refused")])
def test_the_load_of_the_last_hour_counts_and_not_only_this_moment(store: Store, ran: float, state: str) -> None:
    table = Table(store, fleet_of(NO_WORSE), decode(running=0))
    table.keep(b.judged("no_worse"))
    scraped(table, ran, 40)
    change = table.say("/knob set TARGET_CTAS=512")
    assert change.state == state
    if change.planned is not None:
        assert change.planned.load_seen == LoadRange(low=64, high=64, kind="recent")


def test_a_knobs_card_says_whether_its_evidence_holds_today(store: Store) -> None:
    table = Table(store, fleet_of(NO_WORSE), decode(version="0.5.21"))
    table.keep(b.judged("no_worse"))
    questions = Questions(table.w.client, lambda: table.w.looks, table.w.clock)
    for question in (ShowKnob(knob="TARGET_CTAS"), EvidenceOf(knob="TARGET_CTAS")):
        text = questions.answer(question, b.ANA).text + json.dumps(questions.answer(question, b.ANA).blocks)
        assert "*stale* today" in text
        assert "build: recorded 0.5.23, today 0.5.21" in text


@pytest.mark.parametrize(("variables", "inert"), [({"OTHER": 1}, True), ({b.ENV: 512}, False)])
def test_verify_calls_a_knob_inert_that_the_build_does_not_read(
    store: Store, variables: dict[str, int], inert: bool
) -> None:
    table = Table(store, fleet_of(), decode(value="512", internal_states=[{"env_vars": variables}]))
    (proof,) = table.w.looks.verify("TARGET_CTAS").proofs
    text = (
        Questions(table.w.client, lambda: table.w.looks, table.w.clock).answer(Verify(knob="TARGET_CTAS"), b.ANA).text
    )
    assert ("applies.inert" in {f.code for f in proof.findings}) is inert
    assert ("the running build does not read" in text) is inert


def test_a_host_that_is_away_leaves_open_whether_it_holds(store: Store) -> None:
    table = Table(store, fleet_of(NO_WORSE))
    table.keep(b.judged("no_worse"))

    class Away(Looks):
        def standings(self, name: str) -> tuple[Standing, ...]:
            raise HostUnreachable(f"gpu1 cannot be reached for {name}")

    questions = Questions(table.w.client, lambda: Away(table.w), table.w.clock)
    text = questions.answer(EvidenceOf(knob="TARGET_CTAS"), b.ANA).text
    assert "whether it holds today is not known: gpu1 cannot be reached for TARGET_CTAS" in text
    assert "+12.8 %" in text


def test_todays_context_is_read_in_the_look_that_the_plan_is_made_from(store: Store) -> None:
    table = Table(store, fleet_of(NO_WORSE))
    table.keep(b.judged("no_worse"))
    table.say("/knob set TARGET_CTAS=512")
    ((asked, context),) = table.hosts.asked
    assert context
    assert b.ENV in asked


def test_an_entry_of_before_there_were_standings_still_reads(store: Store) -> None:
    table = Table(store, fleet_of(NO_WORSE))
    table.keep(b.judged("no_worse"))
    planned = table.say("/knob set TARGET_CTAS=512").planned
    assert planned is not None
    document = json.loads(planned.model_dump_json())
    del document["standings"], document["load_seen"]
    old = e.EVENT.validate_python(document)
    assert isinstance(old, e.Planned)
    assert (old.standings, old.load_seen) == ((), None)
