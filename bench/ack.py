"""Slash commands: how soon each is acknowledged, and that none of a busy minute is lost or answered twice.

    .venv/bin/python -m bench.ack [--http] [--one-by-one 200] [--in-a-minute 300] [--seconds 60]

A real `clawback bot` (Bolt, in Socket Mode, or with --http over signed requests), a real `clawback worker`, a real
Valkey that syncs every write, and the local workspace, which takes the time from sending an envelope to its
acknowledgement. Slack gives up after 3 s.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import asyncssh
from rich.console import Console
from rich.table import Table

from sandbox.fleet.document import HostEntry, People, Where, fleet_text
from sandbox.fleet.layout import Layout
from sandbox.slack.records import Envelope
from sandbox.slack.server import SlackSandbox
from workers.live import EmbeddedStore

PROGRAM = Path(sys.executable).parent / "clawback"
ANA, CHANNEL = "U01ANA", "C0SERVING"
LISTENS_S = 60.0
ANSWERED_S = 60.0
STOP_S = 10.0
TAG = re.compile(r"\bno-such-knob-([0-9]+)\b")


@contextmanager
def role(*words: str, env: dict[str, str], log: Path) -> Iterator[None]:
    """One process of the product."""
    with log.open("ab") as out:
        process = subprocess.Popen([str(PROGRAM), *words], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def send(slack: SlackSandbox, number: int) -> Envelope:
    """Type one command that is answered with its own number and asks no host."""
    return slack.people.command(ANA, CHANNEL, f"/knob show no-such-knob-{number}")


def answers(slack: SlackSandbox) -> Counter[int]:
    """How often each command was answered."""
    told = [str(message["text"]) for message in slack.people.transcript(CHANNEL, seen_by=ANA)]
    return Counter(int(number) for text in told for number in set(TAG.findall(text)))


def one_by_one(slack: SlackSandbox, count: int) -> list[Envelope]:
    """Each after the acknowledgement of the one before."""
    sent: list[Envelope] = []
    for number in range(count):
        sent.append(send(slack, number))
        sent[-1].wait(10.0)
    return sent


def busy(slack: SlackSandbox, first: int, count: int, seconds: float) -> list[Envelope]:
    """At random moments of the time, as people do: some close together, some apart."""
    began = time.monotonic()
    sent: list[Envelope] = []
    for number, moment in enumerate(sorted(random.uniform(0, seconds) for _ in range(count)), start=first):
        time.sleep(max(0.0, began + moment - time.monotonic()))
        sent.append(send(slack, number))
    return sent


def row(table: Table, name: str, sent: list[Envelope], counted: Counter[int], first: int) -> bool:
    """One line of the table; true when none was lost, late or doubled."""
    times_ms = sorted(e.acked_ms for e in sent if e.acked_ms is not None)
    unacknowledged = len(sent) - len(times_ms)
    late = sum(e.late or e.expired for e in sent)
    again = sum(e.attempts > 1 for e in sent)
    numbers = range(first, first + len(sent))
    lost = sum(counted[number] == 0 for number in numbers)
    doubled = sum(counted[number] > 1 for number in numbers)
    shown = [quantile(times_ms, share) for share in (0.5, 0.99, 1.0)]
    table.add_row(name, str(len(sent)), *shown, *(str(n) for n in (unacknowledged, late, again, lost, doubled)))
    return not (unacknowledged or late or lost or doubled)


def quantile(times: list[float], share: float) -> str:
    """The time below which this share of them lies."""
    return f"{times[max(0, round(share * len(times)) - 1)]:.1f}" if times else "-"


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table; 1 when a command was lost, late or doubled."""
    parser = argparse.ArgumentParser(prog="python -m bench.ack", description="acknowledgement of slash commands")
    parser.add_argument("--one-by-one", type=int, default=200)
    parser.add_argument("--in-a-minute", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the busy minute is")
    parser.add_argument("--http", action="store_true", help="signed HTTP requests instead of Socket Mode")
    told = parser.parse_args(argv)
    secret = secrets.token_hex(16)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cb-ack-")))
        store = stack.enter_context(EmbeddedStore(folder / "data"))
        slack = stack.enter_context(
            SlackSandbox(request_url="", signing_secret=secret) if told.http else SlackSandbox()
        )
        slack.workspace.add_user("ana", user_id=ANA)
        slack.workspace.add_channel("serving", [ANA], channel_id=CHANNEL)
        env = {
            **{key: value for key, value in os.environ.items() if key in {"PATH", "HOME", "LANG", "TMPDIR"}},
            "SLACK_BOT_TOKEN": slack.bot_token,
            "SLACK_API_URL": slack.base_url,
            "REDIS_URL": store.url,
            "CLAWBACK_FLEET": str(fleet_file(folder)),
            "CLAWBACK_DATA": str(folder / "data"),
            "CLAWBACK_SSH_AGENT": "1",  # how hosts would be reached; none is
        }
        if told.http:
            address = f"127.0.0.1:{free_port()}"
            env |= {"SLACK_SIGNING_SECRET": secret, "CLAWBACK_HTTP": address}
            slack.http.request_url = f"http://{address}/slack/events"
        else:
            env["SLACK_APP_TOKEN"] = slack.app_token
        log = folder / "clawback.log"
        stack.enter_context(role("bot", env=env, log=log))
        stack.enter_context(role("worker", "--queue", "ask", env=env, log=log))
        total = told.one_by_one + told.in_a_minute
        if slack.people.wait_for(lambda: listens(slack, env), LISTENS_S):
            send(slack, total)  # this one pays for imports and connections
        if not slack.people.wait_for(lambda: answers(slack)[total], LISTENS_S):
            print(f"bot or worker do not answer: {log.read_text()[-2000:]}", file=sys.stderr)
            return 2
        first = one_by_one(slack, told.one_by_one)
        second = busy(slack, told.one_by_one, told.in_a_minute, told.seconds)
        slack.people.wait_for(lambda: len(answers(slack)) > total, ANSWERED_S)
        time.sleep(2.0)  # time enough for a second answer to show itself
        counted = answers(slack)
    table = Table(
        "commands", "sent", "p50 ms", "p99 ms", "max ms", "unacknowledged", "late", "again", "lost", "doubled"
    )
    whole = row(table, "one by one", first, counted, 0)
    whole &= row(table, f"within {told.seconds:g} s", second, counted, told.one_by_one)
    Console(width=120).print(table)
    return 0 if whole else 1


def listens(slack: SlackSandbox, env: dict[str, str]) -> bool:
    """Whether the bot can be spoken to."""
    if "CLAWBACK_HTTP" not in env:
        return slack.sockets.connected > 0
    host, _, port = env["CLAWBACK_HTTP"].partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fleet_file(folder: Path) -> Path:
    """A fleet in which ana may ask; nobody asks its hosts anything here."""
    key = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode("ascii")
    host = HostEntry("gpu1", 22, " ".join(key.split()[:2]), "nobody")
    ports = {"prefill": 30000, "decode": 30001, "router": 30080}
    people = People(engineers=(ANA,), approvers=(ANA,))
    path = folder / "fleet.yaml"
    path.write_text(fleet_text([host], Where(Layout.spread(1), ports), dict.fromkeys(ports, 1.0), people, {}))
    return path


if __name__ == "__main__":
    sys.exit(main())
