"""`clawback up` as one process tree: real Bolt, real rq, real Valkey, the local Slack; the host is out of reach."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from bot.cli.up import ROLES, pause_after
from sandbox.slack import SlackSandbox
from tests.shared import shared

FLEET = """\
version: 1
name: lab
hosts:
  gpu1:
    address: 127.0.0.1
    port: 1
    user: nobody
    host_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f
services:
  decode:
    on: [gpu1]
    unit: decode.service
    health: {url: "http://127.0.0.1:30001/health", from: host, timeout: 25s, boot: 300s}
    metrics: {url: "http://127.0.0.1:30001/metrics", from: host}
restarts:
  decode-only: [decode]
knobs:
  TARGET_CTAS:
    env: TARGET_CTAS
    on: [decode]
    type: int
    range: [1, 4096]
    restarts: [decode-only]
roles: {engineers: {users: [U0ANA, U0BEN]}, approvers: {users: [U0BEN]}}
rules:
  - {match: {kind: knob}, ask: engineers, approvals: 1, by: approvers, expires: 30m}
"""
WAIT_S = 60.0
TAKEOVER_START_S = 6.0  # a process starts in 1 to 2 s on two busy cores, the sweep comes every second


class Up:
    """The process tree, its log and its people."""

    def __init__(self, slack: SlackSandbox, folder: Path) -> None:
        self.data = folder / "data"
        fleet = folder / "fleet.yaml"
        fleet.write_text(FLEET)
        env = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        env |= {
            "SLACK_BOT_TOKEN": slack.bot_token,
            "SLACK_APP_TOKEN": slack.app_token,
            "SLACK_API_URL": slack.base_url,
            "CLAWBACK_FLEET": str(fleet),
            "CLAWBACK_DATA": str(self.data),
            # a proxy for other machines must not be asked for this one
            "HTTP_PROXY": "http://127.0.0.1:9",
            "HTTPS_PROXY": "http://127.0.0.1:9",
        }
        env.pop("REDIS_URL", None)
        env["CLAWBACK_SSH_KEY"] = str(_key_file(folder))
        self.slack = slack
        self.log_path = folder / "log"
        with self.log_path.open("wb") as log:
            command = [sys.executable, "-c", "from bot.cli import main; main()", "up"]
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        self.children: set[int] = set()

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def pids(self) -> set[int]:
        """The processes whose parent is the tree's root."""
        found = {
            int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if _parent(path) == self.process.pid
        }
        self.children |= found
        return found

    def ephemeral(self, user: str) -> list[str]:
        found: list[dict[str, Any]] = self.slack.people.transcript("C0PERF", seen_by=user)
        return [m["text"] for m in found if m["ephemeral_to"] == user]

    def complete(self) -> set[int]:
        """The processes once every role runs, and Valkey."""
        assert waits(lambda: len(self.pids()) == len(ROLES) + 1), self.log
        return self.pids()

    def asks(self, words: str) -> tuple[str, str, str]:
        """Ana types it; the name of her change, and the card and the line that came of it."""
        while True:
            told = len(self.ephemeral("U0ANA"))
            self.slack.people.command("ana", "perf", words).wait()
            assert waits(lambda told=told: len(self.ephemeral("U0ANA")) > told), self.log
            found = re.match(r"(C-\d+) asked: reading hosts; the plan follows here$", self.ephemeral("U0ANA")[told])
            if found:
                break
            # a machine may stand still for longer than Slack waits; then she does what she is told to
            assert "whether this was recorded" in self.ephemeral("U0ANA")[told], self.ephemeral("U0ANA")
        assert waits(lambda: len(self.drawn(found[1])) == 2), self.log
        card, line = self.drawn(found[1])
        return found[1], card, line

    def drawn(self, change: str) -> list[str]:
        """The card of a change that was refused, and the lines below it."""
        found: list[dict[str, Any]] = self.slack.people.transcript("C0PERF")
        cards = [m["ts"] for m in found if f" · change {change} · refused: " in m["text"] and not m["ephemeral_to"]]
        return [m["text"] for m in found if m["ts"] in cards or m["thread_ts"] in cards]

    def end(self) -> int:
        self.pids()
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def _key_file(folder: Path) -> Path:
    """A fresh private key that opens nothing."""
    path = folder / "id_ed25519"
    private = ed25519.Ed25519PrivateKey.generate()
    form = serialization.PrivateFormat.OpenSSH
    path.write_bytes(private.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    path.chmod(0o600)
    return path


def _parent(path: Path) -> int:
    try:
        return int(path.read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError, ValueError):
        return -1


def waits(predicate: Any, timeout_s: float = WAIT_S) -> bool:
    """Whether it came true within a generous time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if predicate():
            return True
        time.sleep(0.1)
    return False


@contextmanager
def tree_up(folder: Path) -> Iterator[Up]:
    with SlackSandbox(reference=shared("slack")) as slack:
        slack.workspace.add_user("ana", user_id="U0ANA")
        slack.workspace.add_user("ben", user_id="U0BEN")
        slack.workspace.add_channel("perf", ("U0ANA", "U0BEN"), channel_id="C0PERF")
        tree = Up(slack, folder)
        try:
            assert waits(lambda: slack.sockets.connected or tree.process.poll() is not None)
            assert tree.process.poll() is None, tree.log
            yield tree
        finally:
            if tree.process.poll() is None:
                tree.end()
            assert slack.workspace.violations == []


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One tree for several tests: whatever died in one of them, the next one finds it complete."""
    with tree_up(tmp_path_factory.mktemp("up")) as tree:
        yield tree


def test_a_command_is_answered_planned_and_drawn_by_the_whole_tree(up: Up) -> None:
    change, card, line = up.asks("/knob restore TARGET_CTAS=512")
    assert card.startswith(f"Restore TARGET_CTAS = 512 · asked by <@U0ANA> · change {change} · refused: ")
    assert "so nothing was done there" in line
    told = len(up.ephemeral("U0BEN"))
    assert up.slack.people.command("ben", "perf", "/knob status").wait()
    assert waits(lambda: len(up.ephemeral("U0BEN")) > told), up.log
    assert f"{change} refused" in up.ephemeral("U0BEN")[told]
    # the host is scraped by one process of all, and met quietly
    assert waits(lambda: "a host cannot be scraped" in up.log), up.log
    assert up.log.count("a host cannot be scraped") == 1
    assert "xoxb-" not in up.log
    assert "xapp-" not in up.log


def test_a_role_that_dies_is_started_again_and_loses_nothing(up: Up) -> None:
    pids, before = up.complete(), len(up.log)
    victims = [pid for pid in pids if b"worker" in _command(pid) or b"narrator" in _command(pid)]
    assert len(victims) == 5
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    up.asks("/knob restore TARGET_CTAS=512")
    assert "again_in_s" in up.log[before:]
    assert not up.complete() & set(victims)


def test_a_valkey_that_is_killed_is_started_again_and_every_role_goes_on(up: Up) -> None:
    one, _, _ = up.asks("/knob restore TARGET_CTAS=512")
    pids, before = up.complete(), len(up.log)
    first = _number(up.data / "valkey.pid")
    os.kill(first, signal.SIGKILL)
    assert waits(lambda: "valkey ended and is started again" in up.log[before:])
    assert waits(lambda: _number(up.data / "valkey.pid") not in {0, first})
    two, _, _ = up.asks("/knob restore TARGET_CTAS=256")
    assert int(two[2:]) == int(one[2:]) + 1
    assert pids - {first} <= up.pids()  # nobody but Valkey was started again


def test_a_valkey_that_cannot_be_started_is_tried_again_until_it_can_and_people_are_told_meanwhile(up: Up) -> None:
    data, away = up.data, up.data.with_name("away")
    one, _, _ = up.asks("/knob restore TARGET_CTAS=512")
    first, before, told = _number(data / "valkey.pid"), len(up.log), len(up.ephemeral("U0BEN"))
    data.rename(away)
    os.kill(first, signal.SIGKILL)
    assert waits(lambda: up.log[before:].count("valkey does not start") >= 2), up.log
    assert f"the folder `{data}` of the embedded Valkey is not what it was" in up.log
    assert up.process.poll() is None
    up.slack.people.command("ben", "perf", "/knob restore TARGET_CTAS=256")
    assert waits(lambda: any("nothing was recorded" in text for text in up.ephemeral("U0BEN")[told:]))

    away.rename(data)
    assert waits(lambda: _number(data / "valkey.pid") not in {0, first}), up.log
    two, _, _ = up.asks("/knob restore TARGET_CTAS=256")
    assert int(two[2:]) == int(one[2:]) + 1
    assert "Traceback" not in up.log[before:]


def test_all_of_the_tree_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    with tree_up(tmp_path) as tree:
        tree.complete()
        assert tree.end() == 0
        assert all(not Path(f"/proc/{pid}").exists() for pid in tree.children)


def test_the_longest_pause_of_a_role_leaves_time_for_a_takeover() -> None:
    assert [pause_after(deaths) for deaths in (1, 2, 3, 4, 5, 6, 100)] == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    # every worker may have died at once and over and over: a pause, the start of a process and a sweep stay below 15 s
    assert pause_after(1000) + TAKEOVER_START_S <= 15.0


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def test_the_children_end_when_the_root_is_killed(tmp_path: Path) -> None:
    with tree_up(tmp_path) as tree:
        pids = tree.complete()
        tree.process.kill()
        tree.process.wait()
        assert waits(lambda: all(_parent(Path(f"/proc/{pid}/stat")) < 0 for pid in pids)), pids


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_missing_token_is_named_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SLACK_", "CLAWBACK_", "REDIS_"))}
    env |= {"CLAWBACK_FLEET": str(tmp_path / "fleet.yaml"), "CLAWBACK_DATA": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-c", "from bot.cli import main; main()", "up"],
        check=False,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "SLACK_BOT_TOKEN is not set, expected the bot's token" in done.stderr
    assert not (tmp_path / "data").exists()
