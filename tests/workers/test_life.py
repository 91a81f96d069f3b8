"""A process is called ended only when the kernel surely says so."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests.conftest import Store
from tests.shared import ROOT
from workers.drawn import Drawn
from workers.lease import Leases
from workers.life import has_ended, own_life
from workers.store import connect

HOLDER = """
import sys
from workers.drawn import Drawn
from workers.lease import Leases
from workers.life import own_life
from workers.store import connect

client = connect(sys.argv[1])
held = Leases(client).take(["decode@gpu1", "prefill@gpu1"], "other", 600)
with Drawn(client).lock("C-1") as lock:
    print(own_life(), flush=True)
    sys.stdin.readline()
"""


def start(url: str) -> tuple[subprocess.Popen[str], str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert child.stdout is not None
    return child, child.stdout.readline().strip()


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate()


def test_this_process_lives() -> None:
    assert not has_ended(own_life())


def test_a_process_that_was_killed_has_ended_and_one_that_is_stopped_has_not(store: Store) -> None:
    child, life = start(store.url)
    try:
        assert not has_ended(life)
        os.kill(child.pid, 19)
        assert not has_ended(life)
    finally:
        end(child)
    assert has_ended(life)


def test_a_number_that_was_given_to_a_later_process_belongs_to_one_that_has_ended() -> None:
    before, _, began = own_life().rpartition("/")
    assert has_ended(f"{before}/{int(began) - 1}")


@pytest.mark.parametrize("change", ["boot", "numbering"])
def test_nothing_is_said_about_processes_of_another_machine_or_container(change: str) -> None:
    boot, numbering, _pid, began = own_life().split("/")
    boot, numbering = ("0" * len(boot), numbering) if change == "boot" else (boot, "pid:[1]")
    assert not has_ended(f"{boot}/{numbering}/999999999/{began}")


@pytest.mark.parametrize("life", ["", "/", "///", "a/b/c/d", "x"])
def test_what_names_no_process_has_not_ended(life: str) -> None:
    assert not has_ended(life)


def test_the_lease_of_a_killed_process_is_free_at_once_and_that_of_a_living_one_is_not(store: Store) -> None:
    leases = Leases(store.redis)
    child, life = start(store.url)
    try:
        assert not leases.give_up_dead(["decode@gpu1", "prefill@gpu1"])
        assert leases.holder("decode@gpu1") == "other"
        first = int(store.redis.hget("clawback:lease:decode@gpu1", "token") or 0)
    finally:
        end(child)
    assert has_ended(life)
    assert leases.give_up_dead(["decode@gpu1", "prefill@gpu1"])
    with leases.take(["decode@gpu1", "prefill@gpu1"], "heir", 10) as held:
        assert held.tokens["decode@gpu1"] > first
        assert not leases.give_up_dead(["decode@gpu1"])
        held.check()


def test_a_drawing_that_a_killed_narrator_held_is_free_at_once(store: Store) -> None:
    client = connect(store.url)
    drawn = Drawn(client)
    child, _ = start(store.url)
    try:
        with drawn.lock("C-1") as lock:
            assert lock is None
    finally:
        end(child)
    with drawn.lock("C-1") as lock:
        assert lock is not None
    client.close()


def test_a_drawing_that_could_not_be_given_back_is_free_for_this_process_and_one_that_goes_on_is_not(
    store: Store,
) -> None:
    drawn, client = Drawn(store.redis), connect(store.url)
    with drawn.lock("C-1") as first:
        assert first is not None
        with Drawn(client).lock("C-1") as second:
            assert second is None
        owner = first.owner
    store.redis.set("clawback:drawing:C-1", owner, px=30_000)  # as if giving it back had failed
    with Drawn(client).lock("C-1") as third:
        assert third is not None
    client.close()


def test_a_drawing_that_is_begun_and_not_finished_is_due_again(store: Store) -> None:
    drawn = Drawn(store.redis)
    now = time.time()
    drawn.later("C-1", now)
    assert drawn.due(now) == ["C-1"]
    assert drawn.due(now + 1) == []  # it was given out
    assert drawn.due(now + 6) == ["C-1"]  # and nobody drew it
    drawn.begun("C-1", now + 7)
    drawn.later("C-1", now + 60)
    drawn.finished("C-1")
    assert drawn.due(now + 59) == []
    assert drawn.due(now + 60) == ["C-1"]
