"""HTTP mode as processes: `clawback bot --http` and a worker, spoken to by the local Slack with signed requests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from sandbox.slack import Fault, SlackSandbox
from sandbox.slack.records import Json
from tests.bot.evidence_room import send
from tests.bot.suspected import record, reverted
from tests.conftest import Store
from tests.scenarios.test_up import FLEET
from tests.shared import shared
from workers.ledger import Ledger

SECRET = "e1f7c9a0b2d4"
WAIT_S = 60.0


class Roles:
    """The bot and one worker, each a process, with what they log."""

    def __init__(self, slack: SlackSandbox, url: str, folder: Path, **more: str) -> None:
        (folder / "fleet.yaml").write_text(FLEET)
        (folder / "known_hosts").write_text("")
        kept = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        self.env = {key: value for key, value in kept.items() if not key.startswith(("SLACK_", "CLAWBACK_"))} | {
            "SLACK_BOT_TOKEN": slack.bot_token,
            "SLACK_SIGNING_SECRET": SECRET,
            "SLACK_API_URL": slack.base_url,
            "CLAWBACK_FLEET": str(folder / "fleet.yaml"),
            "CLAWBACK_HTTP": "127.0.0.1:0",
            "CLAWBACK_SSH_AGENT": "1",
            "REDIS_URL": url,
            **more,
        }
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []
        self.start("bot")
        self.url = f"http://127.0.0.1:{self._port()}"
        slack.http.request_url = f"{self.url}/slack/events"

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{words[0]}.log").open("ab") as log:
            command = [sys.executable, "-c", "from bot.cli import main; main()", *words]
            process = subprocess.Popen(command, env=self.env, stdout=log, stderr=log)
        self.running.append(process)
        return process

    def log(self, role: str) -> str:
        return (self.folder / f"{role}.log").read_text()

    def readyz(self) -> httpx.Response:
        return httpx.get(f"{self.url}/readyz", trust_env=False, timeout=20)

    def end(self) -> list[int]:
        for process in self.running:
            process.terminate()
        return [process.wait(30) for process in self.running]

    def _port(self) -> int:
        until(lambda: "http listens" in self.log("bot") or self.running[0].poll() is not None, "the bot listens")
        found = re.search(r"\{.*http listens.*\}", self.log("bot"))
        assert found, self.log("bot")
        return int(json.loads(found[0])["port"])


def until(predicate: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not predicate():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.05)


@pytest.fixture
def slack() -> Iterator[SlackSandbox]:
    with SlackSandbox(reference=shared("slack"), request_url="", signing_secret=SECRET) as sandbox:
        space = sandbox.workspace
        space.add_user("ana", user_id="U0ANA")
        space.add_user("ben", user_id="U0BEN")
        space.add_channel("perf", ("U0ANA", "U0BEN", space.app.bot_user), channel_id="C0PERF")
        yield sandbox
        assert space.violations == []


@pytest.fixture
def roles(slack: SlackSandbox, store: Store, tmp_path: Path) -> Iterator[Roles]:
    made = Roles(slack, store.url, tmp_path)
    yield made
    for process in made.running:
        process.kill()
        process.wait()


def test_slack_is_answered_over_http_and_the_process_says_when_it_is_ready(roles: Roles, slack: SlackSandbox) -> None:
    people = slack.people
    assert slack.http.verify_url()
    assert roles.readyz().status_code == 503
    assert roles.readyz().json()["parts"]["ask"]["why"] == "no worker serves the queue `ask`"

    # heard before anybody works: acknowledged now, answered later; the same request again is nothing new
    slack.faults.add(Fault("replay", "slash_commands"))
    asked = people.command("ana", "perf", "/knob status")
    assert asked.wait()
    assert people.wait_for(lambda: asked.statuses == [200, 200])
    roles.start("worker", "--queue", "ask")
    until(lambda: roles.readyz().status_code == 200, "a worker serves the queue")
    assert people.wait_for(lambda: people.transcript("perf"), WAIT_S)

    # a change: the host is out of reach, which the ledger and the status know
    assert people.command("ana", "perf", "/knob restore TARGET_CTAS=512").wait()
    people.mention("ben", "perf", "help confirm")
    slack.faults.add(Fault("wrong_signature", "slash_commands"))
    forged = people.command("ben", "perf", "/knob set TARGET_CTAS=1")
    assert not forged.wait()
    assert forged.statuses == [401]
    assert people.wait_for(lambda: len(people.transcript("perf")) == 4, WAIT_S)  # three answers and the mention

    texts = [message["text"] for message in people.transcript("perf") if message["ephemeral_to"]]
    assert [text.split(":")[0] for text in texts if text.startswith("C-1")] == ["C-1 asked"]
    assert not [text for text in texts if "C-2" in text]
    assert "Traceback" not in roles.log("bot")
    assert SECRET not in roles.log("bot")
    assert slack.bot_token not in roles.log("bot")
    assert roles.end() == [0, 0]


def shown(slack: SlackSandbox, start: str, seen_by: str | None = None) -> list[Json]:
    """Messages in the channel whose text begins like this."""
    found = slack.people.transcript("perf", seen_by=seen_by)
    return [message for message in found if str(message["text"]).startswith(start)]


def button(message: Json, label: str) -> str:
    """The action of a button of a message."""
    rows = [block["elements"] for block in message["blocks"] if block["type"] == "actions"]
    return next(str(one["action_id"]) for row in rows for one in row if one["text"]["text"] == label)


def test_statements_suspicions_and_forms_work_over_http(roles: Roles, slack: SlackSandbox, store: Store) -> None:
    people, work = slack.people, slack.workspace
    roles.start("worker", "--queue", "ask")
    roles.start("narrator")

    # an event in a thread: a statement there, and the click that contests it
    assert people.command("ana", "perf", "/knob restore TARGET_CTAS=512").wait()
    assert people.wait_for(lambda: [m for m in people.transcript("perf") if m["metadata"]], WAIT_S)
    card = next(m for m in people.transcript("perf") if m["metadata"])
    people.mention("ana", "perf", 'cause "the moon was full"', str(card["ts"]))
    assert people.wait_for(lambda: shown(slack, "st-1"), WAIT_S)
    (statement,) = shown(slack, "st-1")
    assert (statement["thread_ts"], "about C-1" in statement["text"]) == (card["ts"], True)
    people.click("ben", "perf", str(statement["ts"]), button(statement, "Dispute"), confirmed=True)
    assert people.wait_for(lambda: any("<@U0BEN> disputes st-1" in m["text"] for m in shown(slack, "~st-1")), WAIT_S)

    # a suspicion with a button that plans
    ledger = Ledger(store.redis, time.time)
    record(ledger, ledger.new_id("C"), reverted(time.time(), "C-2"))
    assert people.command("ana", "perf", "/knob reclaim").wait()
    assert people.wait_for(lambda: shown(slack, "1 open suspicion", "ana"), WAIT_S)
    (told,) = shown(slack, "1 open suspicion", "ana")
    people.click("ana", "perf", str(told["ts"]), button(told, "Restore TARGET_CTAS=512"), confirmed=True)
    assert people.wait_for(lambda: shown(slack, "C-3 asked", "ana"), WAIT_S)

    # a form with files
    assert people.command("ana", "perf", "/knob evidence add").wait()
    assert people.wait_for(lambda: work.views, WAIT_S)
    assert send(slack, next(iter(work.views.values()))).wait()
    assert people.wait_for(lambda: shown(slack, "TARGET_CTAS = 512: improves"), WAIT_S)
    assert [entry.event.kind for entry in ledger.entries("ab-1")] == ["evidence_recorded"]

    assert slack.sockets.connected == 0
    for role in ("bot", "worker", "narrator"):
        assert "Traceback" not in roles.log(role), roles.log(role)
    assert roles.end() == [0, 0, 0]


def test_beside_a_socket_only_health_is_served(store: Store, tmp_path: Path) -> None:
    with SlackSandbox() as slack:
        roles = Roles(slack, store.url, tmp_path, SLACK_APP_TOKEN=slack.app_token)
        try:
            until(lambda: roles.readyz().json()["parts"]["slack"]["ready"], "the socket is connected")
            told = httpx.post(f"{roles.url}/slack/events", content=b"{}", trust_env=False)
            assert told.status_code == 404
            assert slack.sockets.connected == 1
            slack.sockets.disconnect()
            assert roles.end() == [0]
        finally:
            for process in roles.running:
                process.kill()
                process.wait()


def test_http_mode_needs_an_address(tmp_path: Path, store: Store) -> None:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SLACK_", "CLAWBACK_"))}
    env |= {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": SECRET, "REDIS_URL": store.url}
    command = [sys.executable, "-c", "from bot.cli import main; main()", "bot", "--http"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "CLAWBACK_HTTP is not set, expected host:port" in done.stderr
