"""`clawback demo` as people run it: as it is, and with things broken by hand; two runs at a time."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from sandbox.story import CONTESTED, Story
from tests.real import demo_breaks
from tests.real.demo_runs import Ran, run
from tests.shared import skip_or_fail

pytestmark = pytest.mark.real

RUNS: dict[str, Callable[[], Ran]] = {
    "port_taken": demo_breaks.port_taken_by_a_foreign_process,
    "dying_engine": demo_breaks.engine_that_dies_of_the_value,
    "untouched": demo_breaks.untouched,
    "worker_killed": demo_breaks.worker_killed,
    "by_hand": demo_breaks.unit_restarted_by_hand,
    "edited_unit": demo_breaks.unit_edited_after_the_approval,
    "interrupted": demo_breaks.asked_to_end,
}
UNSEEN = ["one-execution", "order", "timestamps", "knob-live", "cause-cited", "concluded"]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Ran]]]:
    """The runs that the chosen tests ask for, longest first."""
    names = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(play) for name, play in RUNS.items() if name in names}


def outcome(runs: dict[str, Future[Ran]], name: str) -> Ran:
    """A run that took place; what it left behind is looked at here, for each of them."""
    ran = runs[name].result()
    if ran.code == 2:
        skip_or_fail(ran.stderr)
    assert set(ran.document) == {"checks", "transcript"}
    assert [set(check) for check in ran.document["checks"]] == [{"name", "ok", "detail"}] * len(Story.NAMES)
    assert [set(line) for line in ran.document["transcript"]] == [{"ts", "who", "where", "text"}] * len(
        ran.document["transcript"]
    )
    assert "Traceback" not in ran.stderr
    assert ran.left_processes == []
    assert ran.left_cgroups == []
    assert ran.kept == (ran.code == 1)
    return ran


@pytest.fixture
def untouched(runs: dict[str, Future[Ran]]) -> Ran:
    """Nothing was broken."""
    return outcome(runs, "untouched")


@pytest.fixture
def edited_unit(runs: dict[str, Future[Ran]]) -> Ran:
    """Decode's unit was edited after the approval."""
    return outcome(runs, "edited_unit")


@pytest.fixture
def dying_engine(runs: dict[str, Future[Ran]]) -> Ran:
    """Decode dies of the new value."""
    return outcome(runs, "dying_engine")


@pytest.fixture
def port_taken(runs: dict[str, Future[Ran]]) -> Ran:
    """Something else took decode's port."""
    return outcome(runs, "port_taken")


@pytest.fixture
def by_hand(runs: dict[str, Future[Ran]]) -> Ran:
    """Decode was restarted by hand before the click."""
    return outcome(runs, "by_hand")


@pytest.fixture
def worker_killed(runs: dict[str, Future[Ran]]) -> Ran:
    """The workers that act were killed after the approval."""
    return outcome(runs, "worker_killed")


@pytest.fixture
def interrupted(runs: dict[str, Future[Ran]]) -> Ran:
    """SIGTERM came while everything booted."""
    return outcome(runs, "interrupted")


def test_every_check_of_the_story_holds(untouched: Ran) -> None:
    assert {name: untouched.detail(name) for name in untouched.failed} == {}
    assert untouched.code == 0
    assert list(untouched.checks) == list(Story.NAMES)


def test_the_transcript_tells_the_story_in_order(untouched: Ran) -> None:
    lines = untouched.document["transcript"]
    assert [line["ts"] for line in lines] == sorted(line["ts"] for line in lines)
    assert {line["where"] for line in lines} == {"channel", "thread", "command", "button", "only @ana", "only @ben"}
    assert [line["text"] for line in lines if line["where"] == "command"] == [
        "/deploy restart decode via co-restart",
        "/deploy restart decode via decode-only",
        '/knob revert TARGET_CTAS because "multi-round hang"',
        '/cause "cold start"',
        "/knob reclaim",
        "/knob restore TARGET_CTAS=512",
        f'/cause dispute st-1 because "{CONTESTED}"',
    ]
    clicks = [(line["who"], line["text"]) for line in lines if line["where"] == "button"]
    assert clicks == [
        ("ben", "[Confirm co-restart]"),
        ("ben", "[Confirm decode-only]"),
        ("ben", "[Confirm decode-only]"),
        ("ana", "[Confirm co-restart]"),
        ("ben", "[Confirm co-restart]"),
        ("ben", "[Confirm co-restart]"),
    ]
    assert len([line for line in lines if line["where"] == "channel"]) == 5  # four cards and what ana made up
    healthy = re.findall(
        r"^[0-9:]{8} UTC (prefill|decode|router)\b.*\bhealthy\b", untouched.said("thread"), re.MULTILINE
    )
    assert healthy == ["prefill", "decode", "router", "decode", "decode", "prefill", "decode", "router"]


def test_a_unit_that_is_edited_after_the_approval_is_planned_again_and_nothing_restarts(edited_unit: Ran) -> None:
    assert edited_unit.code == 1
    assert edited_unit.failed == UNSEEN, edited_unit.why
    assert (
        edited_unit.detail("order") == "prefill was not restarted; decode was not restarted; router was not restarted"
    )
    assert "Confirm co-restart" in edited_unit.detail("concluded")
    assert re.search(r"sglang-demo-decode\.service` on gpu1 changed", edited_unit.said("thread"))


def test_a_value_that_the_engine_dies_of_is_taken_back(dying_engine: Ran) -> None:
    assert dying_engine.code == 1
    assert dying_engine.failed == UNSEEN[:-1], dying_engine.why
    assert re.search(r"in its environment: None, its engine reports 256$", dying_engine.detail("knob-live"))
    assert "router was not restarted" in dying_engine.detail("order")
    assert "rolled back" in dying_engine.detail("concluded")


def test_a_foreign_process_on_the_port_is_never_taken_for_the_engine(port_taken: Ran) -> None:
    assert port_taken.code == 1
    assert port_taken.failed == [*UNSEEN[:4], "healthy", "canary", *UNSEEN[4:]], port_taken.why
    assert f"is held by pid {port_taken.seen['foreign']}" in port_taken.detail("healthy")
    assert "router was not restarted" in port_taken.detail("order")
    assert f"belongs to pid {port_taken.seen['foreign']}" in port_taken.said("thread")


def test_a_unit_that_is_restarted_by_hand_before_the_click_is_planned_again(by_hand: Ran) -> None:
    assert by_hand.code == 1
    assert by_hand.failed == UNSEEN, by_hand.why
    assert re.search(r"decode was told to stop [0-9.]+ s before the approver's click", by_hand.detail("one-execution"))
    assert "prefill was started 0 times" in by_hand.detail("one-execution")
    assert re.search(r"decode@gpu1 runs as pid \d+, planned was pid \d+", by_hand.said("thread"))


def test_killed_workers_are_replaced_and_the_story_holds_all_the_same(worker_killed: Ran) -> None:
    assert len(worker_killed.seen["killed"]) == 2
    assert {name: worker_killed.detail(name) for name in worker_killed.failed} == {}
    assert worker_killed.code == 0


def test_a_signal_ends_the_demo_with_a_document_and_nothing_left(interrupted: Ran) -> None:
    assert interrupted.code == 128 + 15
    assert interrupted.detail("healthy") == "not reached: interrupted by SIGTERM"
    assert not any(interrupted.checks.values())


def test_a_port_that_is_taken_is_said_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = run("--port", str(taken.getsockname()[1]))
    assert ran.code == 2
    assert re.fullmatch(r"the demo cannot run here: the workspace cannot listen on port .*--port\)\n", ran.stderr)
    assert not any(ran.checks.values())


def test_a_folder_in_which_no_host_can_boot_is_said_in_one_sentence(tmp_path_factory: pytest.TempPathFactory) -> None:
    deep = tmp_path_factory.mktemp("x" * 60) / ("y" * 60)
    deep.mkdir()
    ran = run(env={"TMPDIR": str(deep)})
    assert ran.code == 2
    assert re.fullmatch(r"the demo cannot run here: .* is too long a path: .*\n", ran.stderr)
    assert list(deep.iterdir()) == []
    assert ran.left_cgroups == []
