"""Hands and eyes of the story: typing, clicking, and reading workspace, services and ledger."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

from pydantic import JsonValue

from sandbox.plain import plain, words_of
from sandbox.stage import CHANNEL, Stage, StageError, fetch

Json = dict[str, JsonValue]
ENDED = ("refused", "nothing_to_do", "denied", "expired", "succeeded", "rolled_back", "failed", "aborted", "held")
DATE = re.compile(r"<!date\^([0-9]+)\^")
LEDGER_PAUSE_S = 0.4  # a look into the ledger is a process of its own


class Eyes:
    """What a person at the screen of the stage can do and see."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    # hands

    def command(self, user: str, text: str) -> str:
        """Type a command that asks for a change; its id, once it is recorded."""
        known = set(self.changes())
        self.stage.slack.people.command(user, CHANNEL, text)
        self._until(lambda: bool(set(self.changes()) - known), 15.0, f"`{text}` is recorded")
        return (set(self.changes()) - known).pop()

    def click(self, user: str, card: Json, order: str) -> None:
        """Click the confirm button of an order, dialog included."""
        for button in buttons(card):
            if json.loads(str(button.get("value") or "{}")).get("o") == order:
                ts, action = str(card["ts"]), str(button["action_id"])
                self.stage.slack.people.click(user, CHANNEL, ts, action, confirmed=True)
                return
        raise StageError(f"the card has no button for {order}")

    # the workspace

    def transcript(self, seen_by: str | None = None) -> list[Json]:
        """Everything in the channel."""
        return self.stage.slack.people.transcript(CHANNEL, seen_by=seen_by)

    def card(self, change: str) -> Json:
        """The card of a change that can be clicked.

        Raises: StageError when it ended without one.
        """
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline:
            if self.stage.slack.people.wait_for(lambda: self._find_card(change) is not None, 1.0):
                found = self._find_card(change)
                if found is not None:
                    return found
            if self.state(change) in ENDED:
                break
        raise StageError(f"{change} is {self.state(change)} and shows no plan", hint=self.stage.log_tail())

    def ephemeral(self, user: str, seen: int) -> str:
        """The first message that only `user` sees, after the `seen` earlier ones; empty when none comes."""
        self.stage.slack.people.wait_for(lambda: len(self.ephemerals(user)) > seen, 10.0)
        return "\n".join(self.ephemerals(user)[seen:])

    def ephemerals(self, user: str) -> list[str]:
        """Texts that only `user` sees."""
        return [self.text(m) for m in self.transcript(user) if m["ephemeral_to"] == user]

    def text(self, message: Json) -> str:
        """What a message shows, as plain words."""
        names = {u.id: u.name for u in self.stage.slack.workspace.users.values()}
        return "\n".join(plain(part, lambda i: names.get(i, i)) for part in words_of(dict(message)))

    def thread_times(self, change: str) -> list[int]:
        """Epoch seconds at the head of the thread lines of a change, in the order in which they stand."""
        times: list[int] = []
        for message in self.transcript():
            if _about(message, change) and message["thread_ts"] not in {None, message["ts"]}:
                found = DATE.search(str(message["text"]))
                if found:
                    times.append(int(found[1]))
        return times

    def told(self, change: str) -> int:
        """How many messages in the channel and its threads are about a change."""
        return sum(_about(m, change) for m in self.transcript())

    def _find_card(self, change: str) -> Json | None:
        for message in self.transcript():
            if any(f'"{change}"' in value for value in digests(message)):
                return message
        return None

    # the ledger, only to know when to go on

    def entries(self, change: str | None = None) -> list[Json]:
        """Entries of the ledger, as exported."""
        lines = self.stage.clawback("audit", "export").stdout.splitlines()
        found: list[Json] = [json.loads(line) for line in lines]
        return [entry for entry in found if change in {None, entry["subject"]}]

    def changes(self) -> list[str]:
        """Ids of all changes."""
        return [str(entry["subject"]) for entry in self.entries() if _kind(entry) == "asked"]

    def state(self, change: str) -> str:
        """Kind of the last event that was not a refused click."""
        kinds = [_kind(entry) for entry in self.entries(change)]
        return next((kind for kind in reversed(kinds) if kind != "click_refused"), "")

    def ended(self, change: str) -> str:
        """Wait until a change has ended or is held, and its thread is silent; the state."""
        longest_s = 60.0 + 8 * sum(self.stage.boot_s.values())
        self._until(lambda: self.state(change) in ENDED, longest_s, f"{change} has ended")
        said = -1
        while said != (said := self.told(change)):
            time.sleep(1.0)
        return self.state(change)

    def _until(self, predicate: Callable[[], bool], timeout_s: float, what: str) -> None:
        self.stage.wait(predicate, timeout_s, what, pause_s=LEDGER_PAUSE_S)

    # the services

    def events(self, role: str, name: str) -> list[Json]:
        """What a service wrote down itself."""
        return [e for e in self.stage.demo_fleet.events(role) if e["event"] == name]

    def pid(self, role: str) -> int:
        """MainPID, as systemd says."""
        return int(self.stage.demo_fleet.show(role, "MainPID")["MainPID"])

    def running(self) -> float:
        """Requests that decode says are running."""
        _, text = fetch(self.stage.demo_fleet.url("decode", "/metrics"))
        found = re.search(r"^sglang:num_running_reqs\{[^}]*\} ([0-9.]+)", text, re.MULTILINE)
        return float(found[1]) if found else 0.0


def buttons(message: Json) -> list[Json]:
    """The buttons of a message."""
    blocks = message.get("blocks")
    rows = [b for b in blocks if isinstance(b, dict) and b.get("type") == "actions"] if isinstance(blocks, list) else []
    found: list[Json] = []
    for row in rows:
        elements = row.get("elements")
        found += [e for e in elements if isinstance(e, dict)] if isinstance(elements, list) else []
    return found


def digests(message: Json) -> list[str]:
    """Values of the buttons that carry a plan's digest."""
    values = [str(b.get("value") or "") for b in buttons(message)]
    return [value for value in values if '"d"' in value]


def _about(message: Json, change: str) -> bool:
    metadata = message["metadata"]
    payload = metadata.get("event_payload") if isinstance(metadata, dict) else None
    return isinstance(payload, dict) and payload.get("change") == change


def _kind(entry: Json) -> str:
    event = entry["event"]
    return str(event["kind"]) if isinstance(event, dict) else ""
