"""Causes stated from a terminal: the same person, the same judge, the same record as in chat."""

from __future__ import annotations

from policies import events as e
from tests.bot.test_cli_say import ANA, BEN, STRANGER, Desk, desk, fleet_file

__all__ = ("desk", "fleet_file")  # fixtures


def test_what_the_readings_do_not_carry_is_recorded_and_answered_with_no(desk: Desk) -> None:
    code, document = desk.json(ANA, "say", '/cause "cold start"', "--yes")
    assert (code, document["statement"], document["decision"]["answer"]) == (1, "st-1", "unverified")
    assert "cause: not established" in document["text"]
    assert "says 'cold start'" in document["text"].replace("`", "'")
    (entry,) = desk.wiring.client.asides(9)
    assert isinstance(entry.event, e.StatementMade)
    assert entry.event.statement.actor is not None
    assert (entry.event.statement.actor.id, entry.event.statement.actor.source) == ("U0ANA", "terminal")


def test_a_dispute_is_recorded_under_its_person(desk: Desk) -> None:
    desk.run(ANA, "say", '/cause "cold start"', "--yes")
    code, document = desk.json(BEN, "say", '/cause dispute st-1 because "it queued"', "--yes")
    assert code == 0
    assert [event["kind"] for event in document["events"]] == ["statement_made", "statement_disputed"]
    assert "disputes st-1" in document["text"]
    assert "struck through" in document["text"]


def test_a_statement_or_change_that_is_not_there_is_refused(desk: Desk) -> None:
    assert desk.run(ANA, "say", '/cause dispute st-9 because "x"', "--yes").exit_code == 1
    code, document = desk.json(ANA, "say", "/cause 'x' of C-99", "--yes")
    assert (code, document["decision"]["answer"]) == (1, "refused")
    assert desk.wiring.client.asides(9) == []


def test_who_is_not_mapped_states_nothing(desk: Desk) -> None:
    assert desk.run(STRANGER, "say", '/cause "x"', "--yes").exit_code == 1
    assert desk.wiring.client.asides(9) == []


def test_reclaim_and_why_are_answered(desk: Desk) -> None:
    reclaim = desk.run(ANA, "say", "/knob reclaim")
    assert (reclaim.exit_code, "no suspicion is open" in reclaim.output) == (0, True)
    why = desk.run(ANA, "say", "/cause why decode")
    assert (why.exit_code, "what is known about decode" in why.output) == (0, True)
    assert desk.run(ANA, "say", "/cause why C-99").exit_code == 1
