"""The reaper rings for recorded work that nobody does, once a second for all processes together."""

from __future__ import annotations

import pytest

from policies import events as e
from policies.errors import StoreUnavailable
from policies.finding import Finding
from tests.conftest import Store
from tests.workers import events as make
from workers import reaper
from workers.lease import Leases
from workers.ledger import STREAM, Ledger
from workers.queue import Doorbell
from workers.reaper import LOCK, sweep
from workers.store import connect
from workers.ticks import TICK_S

Bell = tuple[str, str, str]


class Bench:
    """A ledger with its neighbours; `at` is the time of appended events."""

    def __init__(self, store: Store) -> None:
        self.redis = store.redis
        self.ledger = Ledger(store.redis, lambda: 1000.0)
        self.leases = Leases(store.redis)
        self.doorbell = Doorbell(store.redis)

    def change(self, name: str, *events: e.Event) -> None:
        for number, event in enumerate(events):
            self.ledger.append(name, event, expect_version=number)

    def sweep(self, now: float) -> list[Bell]:
        self.redis.delete(LOCK)
        return sweep(self.ledger, self.leases, self.doorbell, now)


@pytest.fixture
def bench(store: Store) -> Bench:
    return Bench(store)


def _up_to(kind: str) -> list[e.Event]:
    events = make.whole_life()
    return events[: [str(event.kind) for event in events].index(kind) + 1]


def test_a_change_asked_long_ago_is_prepared(bench: Bench) -> None:
    bench.change("C-1", make.asked())
    assert bench.sweep(1005.0) == []
    assert bench.sweep(1005.1) == [("ask", "prepare", "C-1")]
    assert bench.redis.lrange("rq:queue:ask", 0, -1) == [b"prepare-C-1"]


def test_an_unapproved_change_expires_when_its_time_is_over(bench: Bench) -> None:
    bench.change("C-1", make.asked(), make.planned(expires_at=1800.0))
    assert bench.sweep(1799.0) == []
    assert bench.sweep(1800.0) == [("ask", "expire", "C-1")]


@pytest.mark.parametrize("kind", ["approval_given", "started", "step_started", "gate_passed"])
def test_work_without_a_worker_is_executed(bench: Bench, kind: str) -> None:
    bench.change("C-1", *_up_to(kind))
    assert bench.sweep(1001.0) == [("act", "execute", "C-1")]


def test_an_undo_and_an_unknown_step_without_a_worker_are_executed(bench: Bench) -> None:
    why = (Finding(code="x.y", effect="note"),)
    bench.change("C-1", *_up_to("step_started"), e.UndoStarted(actor=None, findings=why))
    bench.change("C-2", *_up_to("step_started"), e.Unknown(findings=why))
    assert bench.sweep(1001.0) == [("act", "execute", "C-1"), ("act", "execute", "C-2")]


def test_work_with_a_live_lease_is_left_alone_and_taken_up_when_the_lease_ends(bench: Bench) -> None:
    bench.change("C-1", *_up_to("started"))
    with bench.leases.take([make.INSTANCE], "w1", 10):
        assert bench.sweep(1001.0) == []
    assert bench.sweep(1001.0) == [("act", "execute", "C-1")]


def test_what_waits_for_people_or_has_ended_is_left_alone(bench: Bench) -> None:
    bench.change("C-1", *make.whole_life())
    bench.change("C-2", *_up_to("started"), e.Held(findings=()))
    bench.change("C-3", make.asked(), make.planned(expires_at=9e9))
    assert bench.sweep(5000.0) == []


def test_processes_share_one_sweep(bench: Bench, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reaper.LOCK_MS < 1000 * TICK_S  # so that every tick has its sweep
    monkeypatch.setattr(reaper, "LOCK_MS", 60_000)
    bench.change("C-1", make.asked())
    assert sweep(bench.ledger, bench.leases, bench.doorbell, 2000.0) == [("ask", "prepare", "C-1")]
    assert sweep(bench.ledger, bench.leases, bench.doorbell, 2000.0) == []
    assert 0 < store.redis.pttl(LOCK) <= 60_000


def test_a_broken_change_does_not_hide_the_others(bench: Bench) -> None:
    bench.change("C-1", make.asked())
    bench.change("C-2", make.asked())
    bench.redis.xdel(STREAM, "1-0")
    assert bench.sweep(2000.0) == [("ask", "prepare", "C-2")]


def test_a_sweep_without_redis_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    client = connect(f"unix://{tmp_path_factory.mktemp('none')}/no.sock", retries=0)
    with pytest.raises(StoreUnavailable):
        sweep(Ledger(client, lambda: 1.0), Leases(client), Doorbell(client), 1.0)
    client.close()
