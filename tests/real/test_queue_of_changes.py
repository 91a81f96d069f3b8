"""Several changes at once on real services: overlapping ones by the time of their approval, others beside them."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from policies import events as e
from policies.change import Change
from policies.intents import Restart
from tests.real.stage import CAT, PYTHON, WAIT_S, Stage, lookalike, plan_of
from tests.shared import ROOT
from workers.execute import execute
from workers.reaper import LOCK, sweep

pytestmark = pytest.mark.real


def restart(stage: Stage, scope: str) -> Change:
    """A restart that was confirmed."""
    return stage.approved(scope, Restart(scope=scope))


def places(stage: Stage, change: Change) -> list[tuple[int, tuple[str, ...]]]:
    """Each place that was recorded of a change."""
    return [(x.position, x.behind) for x in stage.events(change) if isinstance(x, e.Queued)]


def rung(stage: Stage) -> list[tuple[str, str]]:
    """What one sweep rings, whoever swept a moment ago."""
    stage.w.redis.delete(LOCK)
    return [
        (name, change) for _, name, change in sweep(stage.ledger, stage.w.leases, stage.w.doorbell, stage.w.clock())
    ]


def test_overlapping_changes_have_their_turn_as_they_were_approved_and_a_disjoint_one_runs_beside(stage: Stage) -> None:
    second = stage.ask(Restart(scope="decode"))
    third = stage.ask(Restart(scope="decode"))
    beside = stage.ask(Restart(scope="prefill"))
    first = stage.ask(Restart(scope="decode"))
    for change, order in ((first, "decode"), (third, "decode"), (second, "decode"), (beside, "prefill")):
        stage.confirm(change, order)  # approved in another order than they were asked
    other = lookalike(stage.w, "w2")
    seen: list[object] = []

    def meanwhile() -> None:
        for change in (second, third, beside):
            execute(other, change.id)
        late = stage.ask(Restart(scope="decode"))
        seen.append([(f.code, f.values["behind"]) for f in plan_of(late, "decode").warnings if "queue" in f.code])
        stage.say(late, "deny")
        seen.extend(
            [
                rung(stage),
                [(p.change, p.position) for p in stage.w.client.line().values()],
                stage.w.client.change(beside.id).state,
            ]
        )

    stage.once("step_started", None, meanwhile)
    assert stage.execute(first).state == "succeeded"

    ahead = ", ".join((first.id, third.id, second.id))
    assert seen.pop(0) == [("queue.would-wait", ahead)]
    assert seen[0] == []  # nobody is rung for a place that was told
    assert seen[1] == [(third.id, 2), (second.id, 3)]
    assert seen[2] == "succeeded"
    assert places(stage, beside) == []
    assert rung(stage) == [("line", second.id), ("execute", third.id)]
    stage.execute(second)
    assert places(stage, second) == [(3, (first.id, third.id)), (2, (third.id,))]
    assert stage.execute(second).state == "approved"
    assert stage.execute(third).state == "succeeded"
    assert stage.execute(second).state == "succeeded"
    assert places(stage, third) == [(2, (first.id,))]
    assert stage.kinds(second).count("queued") == 2
    # the plan was approved with the process of then; each change ahead restarted it, and nothing else moved
    moved = stage.last(second, e.Rebased)
    assert [finding.values["change"] for finding in moved.findings] == [third.id]
    assert stage.starts() == (1, 3, 0)


def test_a_waiting_change_whose_files_another_one_wrote_is_planned_again(stage: Stage) -> None:
    knob, waiting = stage.approved("decode-only"), restart(stage, "decode")
    stage.once("step_started", None, lambda: execute(lookalike(stage.w, "w2"), waiting.id))
    assert stage.execute(knob).state == "succeeded"
    after = stage.execute(waiting)
    assert places(stage, waiting) == [(2, (knob.id,))]
    assert (after.state, stage.kinds(waiting)[-1]) == ("asked", "replan")


def test_nobody_overtakes_a_change_whose_worker_was_killed(stage: Stage, tmp_path: Path) -> None:
    first, second = stage.approved("decode-only"), restart(stage, "decode")
    argv = [PYTHON, "-m", "tests.real.worker_process", str(stage.fleet.fleet_yaml), stage.url, str(stage.fleet.ssh_key)]
    with (tmp_path / "worker.log").open("wb") as log:
        child = subprocess.Popen(
            [*argv, first.id, "SIGKILL", "after", "step_done", "1"], cwd=ROOT, stdout=log, stderr=log
        )
    assert child.wait(WAIT_S) == -signal.SIGKILL
    stage.free()
    assert rung(stage) == [("execute", first.id), ("line", second.id)]
    assert stage.execute(second).state == "approved"  # the lease is free, its turn has not come
    assert places(stage, second) == [(2, (first.id,))]


def test_behind_a_held_change_everybody_waits_until_a_person_decides(stage: Stage) -> None:
    stage.guard("router", "exit 3")
    first, second = restart(stage, "router"), restart(stage, "router")
    assert stage.execute(first).state == "held"
    assert stage.execute(second).state == "approved"
    assert stage.last(second, e.Queued).held == first.id
    assert rung(stage) == []
    assert stage.say(first, "keep", CAT).code == "click.ok"
    assert rung(stage) == [("execute", second.id)]
