"""The store dies or falls silent while a change is carried out. Judged by how often services were started."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from policies import events as e
from policies.change import Change
from sandbox.fleet.document import KNOB_ENV
from tests.conftest import Store
from tests.real.stage import WAIT_S, Stage, until

pytestmark = pytest.mark.real

LEASE_S = 2.0
AWAY_S = 3 * LEASE_S


@pytest.fixture
def threads() -> Iterator[list[threading.Thread]]:
    """Whatever was started is over when the test is."""
    started: list[threading.Thread] = []
    yield started
    for thread in started:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def once_each(stage: Stage, change: Change) -> None:
    """No step and no gate was recorded twice, and the chain holds."""
    named = [
        (event.kind, getattr(event, "part", ""), getattr(event, "index", -1), getattr(event, "gate", ""))
        for event in stage.events(change)
        if not isinstance(event, e.Started)
    ]
    assert [name for name, count in Counter(named).items() if count > 1] == []
    assert stage.w.ledger.verify() == []


@pytest.mark.parametrize(
    ("kind", "index"), [("started", None), ("step_started", 1), ("step_done", 1), ("gate_passed", 1), ("proved", None)]
)
def test_a_store_that_is_killed_and_started_again_costs_no_step_and_doubles_none(
    stage: Stage, store: Store, threads: list[threading.Thread], kind: str, index: int | None
) -> None:
    change = stage.approved("decode-only")

    def revive() -> None:
        until(lambda: not store.server.alive, "it does not end")
        time.sleep(0.3)
        store.server.revive()

    def kill() -> None:
        assert store.server.pid is not None
        os.kill(store.server.pid, signal.SIGKILL)
        threads.append(threading.Thread(target=revive))
        threads[-1].start()

    stage.once(kind, index, kill)
    done = stage.execute(change)
    assert isinstance(done.last, e.Succeeded)
    assert stage.starts() == (0, 1, 0)
    assert KNOB_ENV not in stage.environ()
    assert stage.kinds(done).count("started") == 1
    once_each(stage, done)


@pytest.mark.parametrize(("kind", "index"), [("step_started", 0), ("step_started", 1), ("step_done", 1)])
def test_a_store_that_is_silent_for_longer_than_the_lease_ends_the_turn_and_the_next_one_goes_on(
    stage: Stage, store: Store, threads: list[threading.Thread], kind: str, index: int
) -> None:
    timing = stage.document.timing.model_copy(update={"lease_s": LEASE_S})
    stage.rewire(stage.document.model_copy(update={"timing": timing}))
    change = stage.approved("decode-only")
    pid = store.server.pid
    assert pid is not None

    def thaw() -> None:
        time.sleep(AWAY_S)
        os.kill(pid, signal.SIGCONT)

    def freeze() -> None:
        os.kill(pid, signal.SIGSTOP)
        threads.append(threading.Thread(target=thaw))
        threads[-1].start()

    stage.once(kind, index, freeze)
    cut = stage.execute(change)
    assert cut.state == "running"
    assert stage.kinds(cut).count("started") == 1
    stage.free()
    done = stage.execute(cut)
    assert isinstance(done.last, e.Succeeded)
    assert stage.starts() == (0, 1, 0)
    once_each(stage, done)


def test_nothing_new_starts_while_the_store_is_away_and_what_was_approved_is_done_when_it_is_back(
    stage: Stage, store: Store, threads: list[threading.Thread]
) -> None:
    change = stage.approved("decode-only")
    assert store.server.pid is not None
    os.kill(store.server.pid, signal.SIGKILL)
    until(lambda: not store.server.alive, "it does not end")
    with pytest.raises(Exception, match="redis"):
        stage.execute(change)
    assert stage.starts() == (0, 0, 0)
    store.server.revive()
    assert isinstance(stage.execute(change).last, e.Succeeded)
    assert stage.starts() == (0, 1, 0)
