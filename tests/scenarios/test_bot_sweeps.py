"""A bot that is alone rings for recorded work that nobody does; whoever comes then does it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies import events as e
from sandbox.slack import SlackSandbox
from tests.conftest import Store
from tests.scenarios.test_http_mode import Roles, until
from tests.workers import events as make
from workers.ledger import Ledger, text_of

pytestmark = pytest.mark.real


@pytest.fixture
def roles(store: Store, tmp_path: Path) -> Iterator[Roles]:
    """A bot, and nobody else; its store holds what others left behind a minute ago."""
    ledger = Ledger(store.redis, lambda: time.time() - 60)
    lives: dict[str, list[e.Event]] = {
        "C-1": [make.asked()],
        "C-2": [make.asked(), make.planned(expires_at=time.time() - 30)],
        "C-3": [make.asked(), make.planned(), make.approved(), make.started()],
        "C-4": [make.asked(), make.planned(expires_at=time.time() + 3600)],
    }
    for name, events in lives.items():
        for version, event in enumerate(events):
            ledger.append(name, event, expect_version=version)
    with SlackSandbox() as slack:
        made = Roles(slack, store.url, tmp_path, SLACK_APP_TOKEN=slack.app_token)
        yield made
        for process in made.running:
            process.kill()
            process.wait()


def test_a_bot_alone_rings_again_for_lost_bells_and_what_is_late_expires(roles: Roles, store: Store) -> None:
    until(lambda: len(bells(store, "ask")) == 2 and bells(store, "act") == ["execute-C-3"], "the bot rang")
    assert sorted(bells(store, "ask")) == ["expire-C-2", "prepare-C-1"]
    ledger = Ledger(store.redis, time.time)
    assert [ledger.load(f"C-{number}").state for number in (1, 2, 3, 4)] == ["asked", "planned", "running", "planned"]

    roles.start("worker", "--queue", "ask")
    until(lambda: ledger.load("C-2").state == "expired", "the change expired")
    until(lambda: ledger.load("C-1").state == "refused", "the change was planned: its host is out of reach")
    assert ledger.load("C-4").state == "planned"
    assert "Traceback" not in roles.log("bot")
    assert roles.end() == [0, 0]


def test_a_bot_whose_store_goes_away_says_so_once_and_sweeps_when_it_is_back(roles: Roles, store: Store) -> None:
    until(lambda: bells(store, "act") == ["execute-C-3"], "the bot rang")
    assert store.server.pid is not None
    os.kill(store.server.pid, signal.SIGKILL)
    until(lambda: "a tick did not do all of its work" in roles.log("bot"), "the bot noticed")
    store.server.revive()
    store.redis.flushall()
    Ledger(store.redis, lambda: time.time() - 60).append("C-9", make.asked(), expect_version=0)
    until(lambda: bells(store, "ask") == ["prepare-C-9"], "the bot rang again")
    assert roles.log("bot").count("a tick did not do all of its work") <= 3
    assert "Traceback" not in roles.log("bot")


def bells(store: Store, queue: str) -> list[str]:
    """The jobs that wait in a queue."""
    return [text_of(bell) for bell in store.redis.lrange(f"rq:queue:{queue}", 0, -1)]
