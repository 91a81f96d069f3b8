"""What keeps one change from being overtaken by another, or by somebody who edits a file in the middle."""

from __future__ import annotations

import pytest

from policies import events as e
from policies.intents import RestoreKnob, RevertKnob
from sandbox.fleet.document import KNOB, KNOB_ENV
from tests.real.stage import Stage
from tests.real.test_execute_held import canary_gate

pytestmark = pytest.mark.real


def held_restore(stage: Stage) -> str:
    """A co-restart that is held at the router's canary, with its value live in decode."""
    assert stage.execute(stage.approved("decode-only")).state == "succeeded"
    stage.give_evidence("512")
    fleet = stage.document
    services = {**fleet.services, "router": fleet.services["router"].model_copy(update={"canary": canary_gate(stage)})}
    stage.rewire(fleet.model_copy(update={"services": services}))
    change = stage.execute(stage.approved("co-restart", RestoreKnob(knob=KNOB, value="512")))
    assert change.state == "held"
    return change.id


def test_a_held_change_keeps_its_instances_until_a_person_has_decided(stage: Stage) -> None:
    held = held_restore(stage)

    other = stage.ask(RevertKnob(knob=KNOB, because="again"))

    assert other.state == "refused"
    (finding,) = [f for f in stage.last(other, e.Refused).findings if f.code == "plan.held-by"]
    assert finding.values["change"] == held
    starts = stage.starts()

    assert stage.say(stage.w.client.change(held), "undo").code == "click.ok"
    assert stage.execute(stage.w.client.change(held)).undoing
    assert KNOB_ENV not in stage.environ()
    assert stage.starts() > starts


def test_a_change_that_was_approved_before_another_was_held_is_not_started_over_it(stage: Stage) -> None:
    other = stage.approved("decode-only", RevertKnob(knob=KNOB, because="the same, asked twice"))
    waiting = stage.approved("decode-only")
    stage.once("step_started", 0, lambda: stage.write("decode", "50-theirs.conf", "[Service]\n"))
    held = stage.execute(other)
    assert held.state == "held", stage.kinds(held)
    starts = stage.starts()

    again = stage.execute(waiting)

    assert again.state == "approved"
    assert stage.last(again, e.Queued).held == other.id
    assert stage.starts() == starts


def test_a_file_that_is_edited_while_another_service_boots_stops_the_change_before_the_restart(stage: Stage) -> None:
    assert stage.execute(stage.approved("decode-only")).state == "succeeded"
    stage.give_evidence("512")
    approved = stage.approved("co-restart", RestoreKnob(knob=KNOB, value="512"))
    decode = stage.pid("decode")
    stage.once(
        "step_done", 0, lambda: stage.write("decode", "50-theirs.conf", f'[Service]\nEnvironment="{KNOB_ENV}=300"\n')
    )

    done = stage.execute(approved)

    assert done.state == "held"
    (finding,) = stage.last(done, e.Held).findings
    assert finding.code == "hold.files-moved"
    assert "50-theirs.conf" in str(finding.values["paths"])
    assert stage.pid("decode") == decode
    assert KNOB_ENV not in stage.environ()


def test_a_revert_of_a_revert_is_refused_because_giving_a_value_back_needs_its_evidence(stage: Stage) -> None:
    assert stage.execute(stage.approved("decode-only")).state == "succeeded"

    again = stage.ask(RevertKnob(knob=KNOB, because="again"))

    assert again.state == "refused"
    assert [f.code for f in stage.last(again, e.Refused).findings] == ["plan.already-taken-away"]


def test_the_plan_says_when_the_process_runs_with_another_value_than_its_files_give(stage: Stage) -> None:
    runs_with = stage.environ().get(KNOB_ENV)
    stage.write("decode", "50-theirs.conf", f'[Service]\nEnvironment="{KNOB_ENV}=128"\n')
    stage.host.manager.systemctl("daemon-reload")
    stage.give_evidence("256")

    change = stage.ask(RestoreKnob(knob=KNOB, value="256"))

    plans = change.planned.plans if change.planned else ()
    findings = [f for plan in plans for f in plan.warnings] or list(stage.last(change, e.Refused).findings)
    (found, *_) = [f for f in findings if f.code == "plan.live-differs"]
    assert (found.values["live"], found.values["configured"]) == (runs_with, "128")
    assert runs_with != "128"
