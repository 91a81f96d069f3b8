"""`clawback demo --story rolling` as people run it: three replicas of decode behind a real sglang-router."""

from __future__ import annotations

import re

import pytest

from sandbox.replica_judge import Away, Replica, kept
from sandbox.rolling import BY_HAND, UNABLE, Rolling
from sandbox.stage import KNOB_VALUE
from tests.real.demo_runs import Ran, run
from tests.shared import skip_or_fail

pytestmark = pytest.mark.real

FIRST, GOOD = "0.5.23", "0.5.24"
DECODES = ("decode@gpu1", "decode@gpu2", "decode@gpu3")


@pytest.fixture(scope="module")
def played() -> Ran:
    """The story, played once."""
    ran = run("--story", "rolling")
    if ran.code == 2:
        skip_or_fail(ran.stderr)
    return ran


def test_every_check_of_the_story_of_replicas_holds_and_nothing_is_left_behind(played: Ran) -> None:
    assert played.failed == [], played.why
    assert played.code == 0
    assert tuple(played.checks) == Rolling.NAMES
    assert "Traceback" not in played.stderr
    assert (played.left_processes, played.left_cgroups, played.kept) == ([], [], False)


def test_each_replica_is_told_apart_in_the_plan_in_the_thread_and_in_the_end(played: Ran) -> None:
    thread, channel = played.said("thread"), played.said("channel")
    for instance in DECODES:
        assert f"{instance}: the link names `{GOOD}` now, was {FIRST}" in thread
    assert f"gate incarnation of {UNABLE} did not pass" in thread
    assert f"version {GOOD} needs a newer driver than this host has" in thread  # its own log is quoted
    assert f"undo: {DECODES[0]}: the link names {FIRST} again" in thread
    assert f"{BY_HAND}: the link names {FIRST} again" not in thread  # what was not touched is not brought back
    for instance in DECODES:
        assert f"{instance} is out of router@gpu1, and nothing was in flight" in thread
        assert f"{instance} is registered at router@gpu1, healthy there, breaker closed" in thread
    assert f"decode is mixed now: {GOOD} on {DECODES[0]}, {DECODES[1]}; {FIRST} on {BY_HAND}" in channel


@pytest.mark.parametrize(("name", "version"), [("undone-exactly", FIRST), ("rolled-exactly", GOOD)])
def test_the_exact_end_names_version_and_process_of_each_replica(played: Ran, name: str, version: str) -> None:
    told = re.findall(r"(decode@gpu\d) on (\S+) \(pid (\d+)\)", played.detail(name))
    assert [(instance, found) for instance, found, _ in told] == [(instance, version) for instance in DECODES]
    assert len({pid for _, _, pid in told}) == len(DECODES)


@pytest.mark.parametrize("name", ["no-request-cut", "no-request-cut-again"])
def test_no_request_is_cut_by_a_restart_that_was_drained(played: Ran, name: str) -> None:
    told = re.fullmatch(
        r"(\d+) requests were answered, none failed; 3 stops, each with 0 in flight", played.detail(name)
    )
    assert told is not None, played.detail(name)
    assert int(told[1]) > 100


def test_a_replica_that_differs_in_one_thing_is_not_exactly_there() -> None:
    well = Replica(UNABLE, 7, "active", 200, [7], GOOD, GOOD, KNOB_VALUE, "has it as well")
    assert well.problems(GOOD) == []
    assert well.problems(FIRST) == [f"{UNABLE}: the link names {GOOD}", f"{UNABLE}: its process says {GOOD}"]
    other = Replica(UNABLE, 7, "failed", 0, [8, 7], GOOD, FIRST, None, "does not list it")
    assert [said.removeprefix(f"{UNABLE}: ").split()[0:2] for said in other.problems(GOOD)] == [
        ["its", "process"],
        ["systemd", "calls"],
        ["its", "health"],
        ["its", "port"],
        ["SGLANG_SM120_MMA_TARGET_CTAS", "is"],
        ["the", "router"],
    ]


def test_two_replicas_that_are_away_at_one_moment_are_found() -> None:
    first, second = Away(DECODES[0], 10.0, 12.0), Away(DECODES[1], 11.5, 14.0)
    assert kept([first, second]) == (False, f"{DECODES[1]} went away 0.50 s before {DECODES[0]} was back")
    assert kept([first, Away(DECODES[1], 12.0, 14.0)])[0]
    assert not kept([])[0]
    never = Away(DECODES[0], 10.0, float("inf"))
    assert not kept([never, Away(DECODES[1], 99.0, 100.0)])[0]
