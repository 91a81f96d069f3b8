"""`clawback say`, `confirm` and their like on a real ledger, as a person of the operating system calls them."""

from __future__ import annotations

import json
import os
import pwd
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bot.cli import main
from policies import events as e
from policies.change import Change
from policies.finding import Finding
from policies.intents import Actor, Restart, RestoreKnob, Where
from tests.bot import stories
from tests.conftest import Store
from tests.scenarios.test_up import FLEET
from workers import world
from workers.health import beat
from workers.store import connect
from workers.wiring import Wiring, load_fleet

# users that every Linux machine has, as the people of the fleet file
PEOPLE = "people: {daemon: U0ANA, bin: U0BEN}\n"
ANA, BEN, STRANGER = "daemon", "bin", "mail"
ORDER = "decode-only"


@dataclass
class Desk:
    """A terminal, a ledger, and a worker that plans and works without hosts."""

    store: Store
    wiring: Wiring
    env: dict[str, str]
    patch: pytest.MonkeyPatch

    def run(self, user: str, *words: str) -> Result:
        number = pwd.getpwnam(user).pw_uid
        with self.patch.context() as patch:
            for name in [name for name in os.environ if name.startswith(("SLACK_", "CLAWBACK_", "REDIS_"))]:
                patch.delenv(name)
            patch.setattr(os, "getuid", lambda: number)
            return CliRunner().invoke(main, list(words), env=self.env)

    def json(self, user: str, *words: str) -> tuple[int, Any]:
        result = self.run(user, *words, "--json")
        return result.exit_code, json.loads(result.stdout)

    def change(self, change_id: str = "C-1") -> Change:
        return self.wiring.client.change(change_id)

    def ask(self, actor: str = "U0ANA", *, approvals: int = 1) -> None:
        """Ask in Slack, and have it planned."""
        intent = RestoreKnob(knob="TARGET_CTAS", value="512")
        asker = Actor(id=actor, source="slack", roles=("engineers", "approvers"))
        self.wiring.client.request(intent, asker, Where(channel="C0PERF"), said="x", normalised="x")
        self.append(planned(approvals=approvals))

    def append(self, *events: e.Event) -> None:
        for event in events:
            self.wiring.ledger.append("C-1", event, expect_version=self.change().version)


def planned(*, approvals: int = 1) -> e.Planned:
    """A plan that can be confirmed for half an hour from now."""
    made = stories.planned(stories.plan(ORDER), approvals=approvals)
    return made.model_copy(update={"expires_at": time.time() + 1800})


class Worker(threading.Thread):
    """Plans what is asked and plays what is approved, one look after the other, until `over` is set."""

    def __init__(self, url: str, fleet_file: Path, plan: e.Event, play: list[e.Event]) -> None:
        super().__init__()
        self._client = connect(url)
        beat(self._client, ("ask",), "test:1")  # alive before anybody looks
        self.over = threading.Event()
        self._wiring = Wiring(load_fleet(fleet_file), self._client, lambda: pytest.fail("no host is asked"))
        self._plan = plan
        self._play = play

    def run(self) -> None:
        while not self.over.wait(0.05):
            beat(self._client, ("ask",), "test:1")
            for entry in self._wiring.ledger.index("changes"):
                change = self._wiring.ledger.load(entry.subject)
                if change.state == "asked":
                    self._wiring.ledger.append(change.id, self._plan, expect_version=change.version)
                for event in self._play if change.state == "approved" else ():
                    version = self._wiring.ledger.load(change.id).version
                    self._wiring.ledger.append(change.id, event, expect_version=version)
        self._client.close()


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET + PEOPLE)
    return path


@pytest.fixture
def desk(store: Store, fleet_file: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    wiring = Wiring(load_fleet(fleet_file), store.redis, lambda: pytest.fail("no host is asked"))
    env = {"REDIS_URL": store.url, "CLAWBACK_FLEET": str(fleet_file), "CLAWBACK_DATA": str(fleet_file.parent)}
    return Desk(store, wiring, env, monkeypatch)


@pytest.fixture
def worker(store: Store, fleet_file: Path) -> Iterator[Worker]:
    good: list[e.Event] = [stories.started(ORDER), *stories.step(0, ORDER), *stories.step(1, ORDER)]
    good += stories.succeeded()[-2:]
    made = Worker(store.url, fleet_file, planned(), good)
    made.start()
    yield made
    made.over.set()
    made.join(60)


def test_a_change_asked_here_is_planned_and_waits_for_somebody_else(desk: Desk, worker: Worker) -> None:
    code, told = desk.json(ANA, "say", "restore TARGET_CTAS=512", "--yes")
    assert (code, told["change"]) == (0, "C-1")
    decision = told["decision"]
    assert (decision["answer"], decision["state"], decision["by"]) == ("needs_approval", "planned", "approvers")
    assert [one["order"] for one in decision["orders"]] == [ORDER]
    assert [one["code"] for one in decision["findings"]] == ["rule.needs-approval"]
    assert [one["kind"] for one in told["events"]] == ["asked", "planned"]
    asked = desk.change().asked
    assert asked is not None
    assert (asked.actor.id, asked.actor.source, asked.said) == ("U0ANA", "terminal", "restore TARGET_CTAS=512")
    assert asked.where.channel == ""


def test_four_eyes_hold_across_slack_and_terminal(desk: Desk) -> None:
    desk.ask("U0BEN")
    code, told = desk.json(BEN, "confirm", "C-1", "--yes")
    assert (code, told["decision"]["answer"]) == (1, "refused")
    assert [one["code"] for one in told["decision"]["findings"]] == ["click.self-approval"]
    assert desk.change().state == "planned"
    assert desk.change().approvals == ()


def test_an_approver_confirms_here_what_somebody_asked_in_slack(desk: Desk) -> None:
    desk.ask("U0ANA")
    result = desk.run(BEN, "confirm", "c-1", "--via", ORDER, "--yes")
    assert (result.exit_code, result.stdout) == (0, "C-1: confirm by @bin is recorded\n")
    (given,) = desk.change().approvals
    assert (given.actor.id, given.actor.source, given.digest) == ("U0BEN", "terminal", stories.plan(ORDER).digest)
    assert desk.store.redis.lrange("rq:queue:act", 0, -1) == [b"execute-C-1"]


def test_who_is_no_approver_is_told_so(desk: Desk) -> None:
    desk.ask("U0BEN")
    code, told = desk.json(ANA, "say", "confirm C-1", "--yes")
    assert code == 1
    assert [one["code"] for one in told["decision"]["findings"]] == ["click.not-approver"]


def test_wait_ends_with_the_change_and_tells_every_line(desk: Desk, worker: Worker) -> None:
    desk.ask("U0ANA")
    result = desk.run(BEN, "confirm", "C-1", "--yes", "--wait")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "C-1: confirm by @bin is recorded"
    assert any(
        line.endswith("decode restart issued with SGLANG_SM120_MMA_TARGET_CTAS=512 (pid 1900)") for line in lines
    )
    assert any("decode healthy after 68.2 s" in line for line in lines)
    assert "<" not in result.stdout
    code, told = desk.json(ANA, "status", "C-1", "--follow")
    assert (code, told["decision"]["state"], told["events"][-1]["kind"]) == (0, "succeeded", "succeeded")


def test_wait_says_no_when_the_change_is_held(desk: Desk, store: Store, fleet_file: Path) -> None:
    why = Finding(code="host.unreachable", effect="refuse", values={"error": "no route", "hint": ""})
    held: list[e.Event] = [stories.started(ORDER), e.Held(findings=(why,))]
    worker = Worker(store.url, fleet_file, planned(), held)
    desk.ask("U0ANA")
    worker.start()
    code, told = desk.json(BEN, "confirm", "C-1", "--yes", "--wait")
    worker.over.set()
    worker.join(60)
    assert (code, told["decision"]["state"]) == (1, "held")


@pytest.mark.parametrize(("word", "state"), [("undo", "undoing"), ("keep", "failed")])
def test_a_held_change_is_decided_here(desk: Desk, word: str, state: str) -> None:
    desk.ask("U0ANA")
    desk.run(BEN, "confirm", "C-1", "--yes")
    why = Finding(code="host.unreachable", effect="refuse", values={"error": "no route", "hint": ""})
    desk.append(stories.started(ORDER), e.Held(findings=(why,)))
    assert desk.run(BEN, word, "C-1", "--yes").exit_code == 0
    assert desk.change().state == state


def test_deny_and_abort_end_a_plan(desk: Desk) -> None:
    desk.ask("U0ANA")
    assert desk.run(BEN, "deny", "C-1", "--yes", "--wait").exit_code == 0
    assert desk.change().state == "denied"
    code, told = desk.json(ANA, "abort", "C-1", "--yes")
    assert (code, told["decision"]["findings"][0]["code"]) == (1, "click.wrong-state")


def test_a_refusal_is_a_no(desk: Desk, store: Store, fleet_file: Path) -> None:
    why = Finding(code="host.unreachable", effect="refuse", values={"error": "no route", "hint": ""})
    worker = Worker(store.url, fleet_file, e.Refused(findings=(why,)), [])
    worker.start()
    code, told = desk.json(ANA, "say", "set TARGET_CTAS=256", "--yes")
    worker.over.set()
    worker.join(60)
    assert (code, told["decision"]["answer"]) == (1, "refused")
    assert told["decision"]["findings"][0]["code"] == "host.unreachable"


def test_without_a_worker_it_is_recorded_and_that_is_said(desk: Desk) -> None:
    result = desk.run(ANA, "say", "set TARGET_CTAS=256", "--yes")
    assert (result.exit_code, desk.change().state) == (0, "asked")
    assert "no worker serves the queue `ask`" in result.stderr
    assert desk.store.redis.lrange("rq:queue:ask", 0, -1) == [b"prepare-C-1"]


def test_a_restart_is_said_here_as_in_chat(desk: Desk) -> None:
    assert desk.run(ANA, "say", '/deploy restart decode because "stuck"', "--yes").exit_code == 0
    asked = desk.change().asked
    assert asked is not None
    assert asked.intent == Restart(scope="decode", because="stuck")
    assert "/deploy restart decode" in desk.run(ANA, "status").stdout
    assert "Restart decode" in desk.run(ANA, "status", "C-1").stdout
    code, told = desk.json(ANA, "say", "/deploy restart decod", "--yes")
    assert (code, told["error"]["hint"]) == (1, "did you mean decode?")
    code, told = desk.json(ANA, "explain", "/deploy restart decode via co-restart")
    assert (code, told["intent"]["kind"], told["intent"]["order"]) == (0, "restart", "co-restart")


def test_a_channel_of_the_fleet_file_is_where_it_will_be_told(desk: Desk, fleet_file: Path) -> None:
    fleet_file.write_text(FLEET + PEOPLE + "channel: C0PERF\n")
    desk.run(ANA, "say", "set TARGET_CTAS=256", "--yes")
    asked = desk.change().asked
    assert asked is not None
    assert asked.where == Where(channel="C0PERF")


def test_who_is_not_mapped_is_refused_whatever_they_call_themselves(desk: Desk) -> None:
    desk.env["USER"] = desk.env["LOGNAME"] = BEN
    desk.ask("U0ANA")
    for words in (("confirm", "C-1"), ("say", "set TARGET_CTAS=1"), ("say", "help")):
        code, told = desk.json(STRANGER, *words, "--yes")
        assert (code, told["decision"]["findings"][0]["code"]) == (1, "identity.not-mapped")
    assert desk.change().version == 2


def test_as_is_refused_outside_of_a_sandbox(desk: Desk) -> None:
    world.remember(desk.store.redis, "http://127.0.0.1:1/api/")
    desk.env["SLACK_API_URL"] = "http://127.0.0.1:1/api/"
    result = desk.run(ANA, "confirm", "C-1", "--yes", "--as", BEN)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is for a sandbox only" in result.stderr


def test_nobody_is_asked_where_nobody_sits(desk: Desk) -> None:
    desk.ask("U0ANA")
    result = desk.run(BEN, "confirm", "C-1")
    assert result.exit_code == 2
    assert "expected --yes" in result.stderr
    assert desk.change().approvals == ()


@pytest.mark.parametrize(
    ("text", "code"), [("restore TARGET_CTAS=1;reboot", "bad-value"), ("dance", "unknown-word"), ("", "empty")]
)
def test_what_cannot_be_read_is_told_as_explain_tells_it(desk: Desk, text: str, code: str) -> None:
    status, told = desk.json(ANA, "say", text)
    assert (status, told["error"]["code"]) == (1, code)


def test_what_had_to_be_normalised_is_echoed(desk: Desk) -> None:
    result = desk.run(ANA, "say", "restore\u00a0TARGET_CTAS=512", "--yes")
    assert result.stdout.startswith("I read this as restore TARGET_CTAS=512\n")


def test_questions_are_answered_as_text(desk: Desk) -> None:
    desk.ask("U0ANA")
    status = desk.run(ANA, "say", "status")
    assert status.exit_code == 0
    assert "C-1 planned" in status.stdout
    code, told = desk.json(ANA, "say", "help")
    assert (code, told["change"], told["events"]) == (0, None, [])
    assert "restore" in told["text"]
    assert "confirm" not in told["text"].replace("confirmed", "")


def test_status_shows_the_steps_or_the_last_changes(desk: Desk) -> None:
    assert desk.run(ANA, "status").stdout == "no change was asked yet\n"
    desk.ask("U0ANA")
    one = desk.run(ANA, "status", "c-1")
    assert one.exit_code == 0
    assert "planned: decode-only" in one.stdout
    assert "asked by @daemon" in one.stdout
    code, told = desk.json(STRANGER, "status")
    assert (code, told["changes"][0]["change"], told["changes"][0]["state"]) == (0, "C-1", "planned")
    assert "planned" in desk.run(ANA, "status").stdout


def test_follow_draws_a_live_list_on_a_screen(desk: Desk, worker: Worker) -> None:
    desk.ask("U0ANA")
    desk.run(BEN, "confirm", "C-1", "--yes")
    desk.env |= {"FORCE_COLOR": "1", "COLUMNS": "200"}
    result = desk.run(ANA, "status", "C-1", "--follow")
    assert result.exit_code == 0, result.output
    assert "\x1b[1m" in result.stdout
    last = result.stdout[result.stdout.rindex("Restore TARGET_CTAS") :]
    assert "decode healthy after 68.2 s" in last
    assert "succeeded" in last


@pytest.mark.parametrize("words", [("status", "C-9"), ("confirm", "C-9", "--yes"), ("say", "undo C-9", "--yes")])
def test_a_change_that_does_not_exist_is_a_no(desk: Desk, words: tuple[str, ...]) -> None:
    code, told = desk.json(BEN, *words)
    assert (code, told["decision"]["findings"][0]["code"]) == (1, "click.no-such-change")


@pytest.mark.parametrize("words", [("confirm", "seven"), ("status", "C-x"), ("status", "--follow"), ("confirm",)])
def test_what_is_no_change_is_unreadable(desk: Desk, words: tuple[str, ...]) -> None:
    assert desk.run(BEN, *words).exit_code == 2


def test_the_same_file_is_recorded_once_for_a_knob(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "ab.yaml"
    file.write_text("value: 512\npoints: {C64: +12.8 %}\n")
    assert desk.json(ANA, "evidence", "record", str(file), "--knob", "TARGET_CTAS") == (
        0,
        {"id": "ab-1", "class": "observed"},
    )
    again = desk.run(ANA, "evidence", "record", str(file), "--knob", "TARGET_CTAS")
    assert (again.exit_code, again.stdout) == (1, "already recorded as ab-1\n")
    assert len(desk.wiring.client.evidence()) == 1
    nope = desk.run(ANA, "evidence", "record", str(tmp_path / "nope"), "--knob", "TARGET_CTAS")
    assert nope.exit_code == 2
    assert "cannot be read (no such file or directory)" in nope.stderr
    assert "Errno" not in nope.stderr
