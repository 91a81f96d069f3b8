"""Leases on a real Valkey: all or nothing, tokens only grow, and a holder that was asleep finds out by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from policies.errors import LeaseLost
from tests.conftest import Store
from workers.lease import KEY, TOKEN, Leases, steady
from workers.store import connect

ROOT = Path(__file__).parents[2]
SLEEPER = """
import sys, time
from policies.errors import LeaseLost
from workers.lease import Leases
from workers.store import connect

held = Leases(connect(sys.argv[1])).take(["decode@gpu1"], "sleeper", float(sys.argv[2]))
held.check()
print("held", flush=True)
sys.stdin.readline()
try:
    held.check()
    print("still mine", flush=True)
except LeaseLost as error:
    print("lost:", error, flush=True)
"""


@pytest.fixture
def leases(store: Store) -> Leases:
    return Leases(store.redis)


def test_a_lease_is_held_until_it_is_released(leases: Leases) -> None:
    held = leases.take(["decode@gpu1", "prefill@gpu1"], "w1", 10)
    assert leases.holder("decode@gpu1") == "w1"
    assert leases.holder("router@gpu1") is None
    held.check()
    held.release()
    assert leases.holder("decode@gpu1") is None
    with pytest.raises(LeaseLost, match="it was released"):
        held.check()


def test_taking_is_all_or_nothing_and_names_the_holder(leases: Leases, store: Store) -> None:
    with leases.take(["decode@gpu1"], "w1", 10):
        with pytest.raises(LeaseLost, match="`decode@gpu1` is held by `w1`"):
            leases.take(["a@gpu1", "decode@gpu1", "prefill@gpu1"], "w2", 10)
        assert leases.holder("a@gpu1") is None
        assert leases.holder("prefill@gpu1") is None
    assert store.redis.keys(KEY + "*") == []


def test_the_same_owner_does_not_hold_twice(leases: Leases) -> None:
    with leases.take(["decode@gpu1"], "w1", 10), pytest.raises(LeaseLost):
        leases.take(["decode@gpu1"], "w1", 10)


def test_tokens_only_grow_also_when_redis_forgot_the_counter(leases: Leases, store: Store) -> None:
    seen = []
    for _ in range(3):
        with leases.take(["b@h", "a@h"], "w1", 10) as held:
            seen += [held.tokens["a@h"], held.tokens["b@h"]]
    assert seen == sorted(set(seen))
    store.redis.set(TOKEN, 7)
    store.redis.delete(TOKEN)
    with leases.take(["a@h"], "w1", 10) as held:
        assert held.tokens["a@h"] > 1_600_000_000


def test_a_take_whose_answer_was_lost_gives_the_same_tokens(leases: Leases) -> None:
    real = leases._take
    answers: list[list[bytes]] = []

    def lossy(keys: list[str], args: list[str | int]) -> list[bytes]:
        answers.append(real(keys=keys, args=args))
        answers.append(real(keys=keys, args=args))
        return answers[-1]

    leases._take = lossy  # type: ignore[assignment]
    leases.take(["a@h", "b@h"], "w1", 10).release()
    assert answers[0] == answers[1]


def test_the_thread_keeps_a_lease_alive_beyond_its_length(leases: Leases) -> None:
    with leases.take(["decode@gpu1"], "w1", 2.0) as held:
        first = held._sure
        deadline = time.monotonic() + 30
        while held._sure < first + 2.0 and time.monotonic() < deadline:
            time.sleep(0.05)
        held.check()
        assert leases.holder("decode@gpu1") == "w1"


def test_a_lease_that_vanished_in_redis_is_lost_at_the_next_renewal(leases: Leases, store: Store) -> None:
    with leases.take(["decode@gpu1", "a@gpu1"], "w1", 30) as held:
        store.redis.delete(KEY + "decode@gpu1")
        with pytest.raises(LeaseLost, match="`decode@gpu1` is not ours any more"):
            held.renew()
        with pytest.raises(LeaseLost):
            held.check()


def test_a_renewal_never_prolongs_what_another_took(leases: Leases, store: Store) -> None:
    with leases.take(["decode@gpu1"], "w1", 30) as held:
        store.redis.delete(KEY + "decode@gpu1")
        with leases.take(["decode@gpu1"], "w2", 5):
            with pytest.raises(LeaseLost):
                held.renew()
            assert 0 < store.redis.pttl(KEY + "decode@gpu1") <= 5000
            held.release()
            assert leases.holder("decode@gpu1") == "w2"


def test_a_holder_whose_clock_ran_past_the_lease_stops_for_good(store: Store) -> None:
    now = [100.0]
    held = Leases(store.redis, lambda: now[0]).take(["decode@gpu1"], "w1", 30)
    now[0] = 130.5
    with pytest.raises(LeaseLost, match=r"the last renewal was 30.5 s ago, the lease is 30 s"):
        held.check()
    now[0] = 101.0
    with pytest.raises(LeaseLost):
        held.renew()
    held.release()


def test_a_lease_of_a_dead_holder_ends_by_itself(leases: Leases, store: Store) -> None:
    held = leases.take(["decode@gpu1"], "w1", 0.3)
    held._done.set()
    held._thread.join()
    deadline = time.monotonic() + 30
    while leases.holder("decode@gpu1") and time.monotonic() < deadline:
        time.sleep(0.02)
    with leases.take(["decode@gpu1"], "w2", 10) as second:
        assert second.tokens["decode@gpu1"] > held.tokens["decode@gpu1"]


def test_a_paused_process_finds_its_lease_lost_when_it_wakes(store: Store, leases: Leases) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SLEEPER, store.url, "1.0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "held\n"
        os.kill(child.pid, signal.SIGSTOP)
        deadline = time.monotonic() + 30
        while leases.holder("decode@gpu1") and time.monotonic() < deadline:
            time.sleep(0.05)
        stopped_at = steady()
        with leases.take(["decode@gpu1"], "heir", 10):
            while steady() < stopped_at + 1.1:
                time.sleep(0.05)
            child.stdin.write("\n")
            child.stdin.flush()
            os.kill(child.pid, signal.SIGCONT)
            assert child.stdout.readline().startswith("lost: lost the lease on decode@gpu1")
            assert leases.holder("decode@gpu1") == "heir"
        child.communicate(timeout=30)
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()


def test_of_many_takers_one_holds_and_no_token_is_given_twice(store: Store) -> None:
    gate = threading.Barrier(8)
    tokens: list[int] = []
    inside: list[int] = [0, 0]
    guard = threading.Lock()

    def work() -> None:
        client = connect(store.url)
        leases = Leases(client)
        gate.wait(30)
        got = 0
        deadline = time.monotonic() + 30
        while got < 4 and time.monotonic() < deadline:
            try:
                held = leases.take(["a@h", "b@h"], "w", 10)
            except LeaseLost:
                time.sleep(0.002)
                continue
            with guard:
                inside[0] += 1
                inside[1] = max(inside[1], inside[0])
            got += 1
            tokens.extend(held.tokens.values())
            with guard:
                inside[0] -= 1
            held.release()
        client.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert inside[1] == 1
    assert len(tokens) == len(set(tokens)) == 64
