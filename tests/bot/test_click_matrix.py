"""Every click is answered: who, when and what, through the real hearing, the local Slack and a real store.

Each cell is one click of one person on one change: exactly one answer, for that person alone, with the right sentence,
and the right entry in the ledger or none. The table is data: `golden/clicks_chat`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.answering import Answerer
from bot.cards.buttons import Carried
from bot.heard import HeardAction
from bot.hearing import Hearing
from bot.identity import Identity
from bot.messages import SENTENCES
from bot.slack import make_client
from policies import events as e
from policies.fleet import Fleet
from policies.intents import Actor
from sandbox.slack import Fault, SlackSandbox
from tests.bot import stories
from tests.bot.desks import desk
from tests.bot.test_hearing import FakeLooks
from tests.conftest import Store
from tests.shared import shared
from workers.client import Client
from workers.drawn import Drawn
from workers.inbox import Inbox
from workers.ledger import Ledger
from workers.queue import Doorbell

Json = dict[str, Any]
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "clicks_chat"
PEOPLE: list[Json] = json.loads((GOLDEN / "people.json").read_text(encoding="utf-8"))
TABLES: list[Json] = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(GOLDEN.glob("when_*.json"))]
CASES = [(table["when"], what, table) for table in TABLES for what in table["answers"]]
CELLS = len(CASES) * len(PEOPLE)
RINGS_ACT = {"approval_given", "retry_asked", "undo_asked"}
FIRST, SECOND = stories.plan(), stories.plan().model_copy(update={"fleet_sha256": "e" * 64})


@pytest.fixture(scope="module")
def town() -> Iterator[SlackSandbox]:
    """One workspace with everybody of the table, for all cells."""
    with SlackSandbox(reference=shared("slack")) as sandbox:
        space = sandbox.workspace
        for person in PEOPLE:
            if person["id"] not in space.users and not person.get("unknown"):
                given = dict(person.get("user", {}))
                deleted = given.pop("deleted", False)
                space.add_user(person["id"].lower(), user_id=person["id"], **given).deleted = deleted
        space.add_channel("perf", tuple(space.users), channel_id="C0PERF")
        space.add_group("approvers", ["U0BEN"])
        yield sandbox
        assert space.violations == []


def fleet(town: SlackSandbox) -> Fleet:
    """Engineers are listed in the fleet file, approvers are a user group of the workspace."""
    plain = stories.fleet()
    (group,) = town.workspace.groups.values()
    roles = {
        "engineers": plain.roles["engineers"].model_copy(update={"users": ("U0ANA", "U0BEN", "U0EVA")}),
        "approvers": plain.roles["approvers"].model_copy(update={"groups": (group.id,)}),
    }
    return plain.model_copy(update={"roles": roles})


def told_so_far(when: str, asks: str) -> list[e.Event]:
    """The events that bring a change to where the click finds it."""
    requester = Actor(id=asks, team="T0SANDBOX", name=asks.lower(), roles=("engineers",))
    decider = Actor(id="U0DEB", team="T0SANDBOX", name="deb", roles=("approvers",))
    planned: list[e.Event] = [stories.asked(requester=requester), stories.planned()]
    approved: list[e.Event] = [*planned, stories.confirmed(actor=decider)]
    running: list[e.Event] = [*approved, stories.started(), *stories.step(0)[:2]]
    urgent = stories.planned().model_copy(update={"emergency": OVERRIDE})
    alone = stories.confirmed(actor=requester).model_copy(update={"override": OVERRIDE})
    failed = e.GateFailed(part="do", index=0, instance="prefill@gpu1", gate="health", verdict=FAILED)
    states: dict[str, list[e.Event]] = {
        "pending": planned,
        "expired": planned,
        "decided": approved,
        "superseded": [*approved, e.Replan(findings=()), stories.planned(SECOND)],
        "running": running,
        "held": [*running, failed, e.Held(findings=())],
        "undoing": [*running, e.UndoStarted(actor=None, findings=())],
        "ended": [planned[0], *stories.succeeded()[1:]],
        "emergency": [planned[0], urgent],
        "unratified": [planned[0], urgent, alone, *stories.succeeded()[3:]],
    }
    return states[when]


OVERRIDE = e.Override(
    by="engineers", ratify_by="approvers", within_s=7200.0, because="5xx", approvals=1, role="approvers"
)
FAILED = stories.PASS.model_copy(update={"answer": "fail"})


class Desk:
    """One worker that hears clicks."""

    def __init__(self, store: Store, town: SlackSandbox) -> None:
        self.town = town
        self.store = store
        self.now = stories.T0
        the_fleet, web = fleet(town), make_client(town.bot_token, town.base_url, timeout_s=3)
        self.ledger = Ledger(store.redis, lambda: self.now)
        self.client = Client(self.ledger, Doorbell(store.redis), the_fleet, lambda: self.now)
        self.inbox = Inbox(store.redis)
        identity, answerer = Identity(web, the_fleet), Answerer(web)
        drawn = Drawn(store.redis)
        at = desk(self.client, store, web, lambda: self.now)
        self.hearing = Hearing(self.client, self.inbox, drawn, identity, answerer, FakeLooks, lambda: self.now, at)

    def change(self, when: str, asks: str) -> str:
        """A new change in that state."""
        change_id = self.ledger.new_id("C")
        self.now = stories.T0
        for version, event in enumerate(told_so_far(when, asks)):
            self.ledger.append(change_id, event, expect_version=version)
        self.now = stories.T0 + (1800 if when == "expired" else 60)
        return change_id

    def click(self, what: str, change_id: str, person: Json) -> None:
        """One click, as Slack tells of it."""
        on_order = what in {"confirm", "details"}
        carried = Carried(c=change_id, o="co-restart" if what == "confirm" else None, d=digest() if on_order else None)
        heard = HeardAction(
            action_id=f"clawback.confirm.{carried.o}" if what == "confirm" else f"clawback.{what}",
            value=carried.text(),
            user=person["id"],
            team=person.get("user", {}).get("team_id", "T0SANDBOX"),
            channel="C0PERF",
            message_ts="1764600000.000100",
            thread_ts=None,
            response_url=self.town.tickets.new_response_url("actions", "C0PERF", person["id"]),
        )
        item = self.inbox.put(f"{change_id}:{what}:{person['who']}", heard.model_dump(mode="json")).id
        self.hearing.hear(item)
        self.hearing.hear(item)  # Slack's repeat of it, or a worker that takes it up again

    def answers(self) -> list[tuple[str, str]]:
        """(who sees it, what it says) of everything in the channel."""
        return [(m.ephemeral_to or "", m.text) for m in self.town.workspace.messages]


def digest() -> str:
    return FIRST.digest


def says(code: str, text: str) -> bool:
    """The text has the sentence of that code, whatever fills it."""
    template = re.sub(r"[*`]", "", SENTENCES[code])
    parts = re.split(r"\{[^}]*\}", template)
    return re.search(".*".join(re.escape(part) for part in parts), text, re.DOTALL) is not None


def expected(table: Json, what: str, person: Json) -> str:
    """A code of a refusal or question, or the kind of the event that is recorded."""
    if "refused" in person and not (what == "details" and person.get("questions")):
        return str(person["refused"])
    given = table["answers"][what]
    if isinstance(given, str):
        return given
    who = "approver" if person["who"] not in table["people"] else person["who"]
    return str(given[table["people"].index(who)])


@pytest.mark.parametrize(
    ("when", "what", "table"), CASES, ids=[f"{when}-{what}-by-{len(PEOPLE)}-people" for when, what, _ in CASES]
)
def test_every_click_has_one_answer_and_its_effect(
    store: Store, town: SlackSandbox, when: str, what: str, table: Json
) -> None:
    desk = Desk(store, town)
    for person in PEOPLE:
        change_id = desk.change(when, person["asks"])
        before, seen = len(desk.client.entries(change_id)), len(desk.answers())
        rung = store.redis.llen("rq:queue:act")
        if "fault" in person:
            town.faults.add(Fault("server_error", person["fault"], count=-1))
        desk.click(what, change_id, person)
        town.faults.clear()

        wanted, cell = expected(table, what, person), f"{person['who']}, {when}, {what}"
        (answer,) = desk.answers()[seen:]
        assert answer[0] == person["id"], cell
        new = [entry.event for entry in desk.client.entries(change_id)[before:]]
        if wanted.startswith(("identity.", "details.")):
            assert says(wanted, answer[1]), (cell, answer[1])
            assert new == [], cell
        elif wanted.startswith("click."):
            assert says(wanted, answer[1]), (cell, answer[1])
            assert [(one.kind, one.finding.code) for one in new if isinstance(one, e.ClickRefused)] == [
                ("click_refused", wanted)
            ], cell
            assert len(new) == 1, cell
        else:
            assert says("click.ok", answer[1]), (cell, answer[1])
            assert [one.kind for one in new] == [wanted], cell
        assert store.redis.llen("rq:queue:act") - rung == (1 if wanted in RINGS_ACT else 0), cell


def test_the_table_has_all_its_cells() -> None:
    whats = {"confirm", "deny", "abort", "keep", "undo", "retry", "details"}
    told = {table["when"]: set(table["answers"]) for table in TABLES}
    about_emergencies = {when: told.pop(when) for when in ("emergency", "unratified")}
    assert all(answers - {"ratify"} == whats for answers in told.values())
    assert {when for when, answers in told.items() if "ratify" in answers} == {"pending", "running", "ended"}
    assert list(about_emergencies.values()) == [{"confirm", "ratify"}] * 2
    assert (len(PEOPLE), len(TABLES), CELLS) == (13, 10, 819)
