"""Deploys and rollbacks of a real service: the right release runs, a bad one is undone, and nothing is done twice."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from policies import events as e
from policies.change import Change
from policies.deploys.strategy import CommandLine, Variable, VersionSource
from policies.finding import Finding
from policies.intents import Actor, Deploy, Restart, Rollback, UnlockScope
from policies.plan import PruneStep, SwitchStep
from sandbox.fleet.releases import BAD, BROKEN, GOOD
from tests.real.stage import ANA, BEN, PYTHON, WAIT_S, Stage, plan_of, quick
from tests.shared import ROOT
from workers.wiring import load_fleet

pytestmark = pytest.mark.real
FIRST = "0.5.23"
PATIENCE_S = 2.5  # with a release that never gets well


@pytest.fixture
def deploys(stage: Stage) -> Stage:
    """The fleet waits a shorter time for a boot."""
    stage.rewire(quick(load_fleet(stage.fleet.fleet_yaml), boot_s=PATIENCE_S))
    assert stage.fleet.releases.names == FIRST
    return stage


def to(ref: str, **more: Any) -> Deploy:
    return Deploy(service="decode", ref=ref, **more)


def running(stage: Stage) -> str:
    """What decode says of itself."""
    with urllib.request.urlopen(stage.fleet.url("decode", "/server_info"), timeout=20) as answer:
        return str(json.load(answer)["version"])


def deployed(stage: Stage, ref: str) -> Change:
    """A deploy that went well."""
    done = stage.execute(stage.approved("decode-only", to(ref)))
    assert done.state == "succeeded", stage.codes(done)
    assert (running(stage), stage.fleet.releases.names) == (ref, ref)
    return done


def why(stage: Stage, change: Change) -> list[Finding]:
    """The findings of a refusal or a hold."""
    assert change.state in {"refused", "held", "nothing_to_do"}, change.state
    last = change.last
    assert isinstance(last, (e.Refused, e.Held, e.NothingToDo))
    return list(last.findings)


def contents(change: Change) -> dict[str, Finding]:
    return {finding.code: finding for finding in plan_of(change).contents}


def test_a_good_release_is_switched_to_restarted_once_read_back_proven_and_old_ones_go(deploys: Stage) -> None:
    before = {path: path.read_bytes() for path in deploys.units.rglob("*") if path.is_file()}
    for number in range(6):
        deploys.fleet.releases.add(f"0.4.{number}", {"version": f"0.4.{number}"}, at=1_600_000_000.0 + number)
    asked = deploys.ask(to(GOOD))
    told = contents(asked)["deploy.contents"].values
    assert (told["against"], told["changed"], told["names"]) == (FIRST, 1, "+changes, ~engine.json")
    assert contents(asked)["deploy.changes"].values["changes"] == "decode steps are quicker"
    assert "deploy.rollback-none" in contents(asked)
    assert deploys.confirm(asked).finding.code == "click.ok"
    done = deploys.execute(asked)
    assert (done.state, running(deploys), deploys.fleet.releases.names) == ("succeeded", GOOD, GOOD)
    assert deploys.starts() == (0, 1, 0)
    end = deploys.last(done, e.Succeeded)
    assert (end.service, end.ref, end.was, end.now) == ("decode", GOOD, {"decode@gpu1": FIRST}, {"decode@gpu1": GOOD})
    proof = deploys.last(done, e.Proved).proofs["decode@gpu1"]
    assert (proof.of, proof.verdict, proof.rung, proof.reported) == ("version", "live", "reported", GOOD)
    gates = [event.gate for event in deploys.events(done) if isinstance(event, e.GatePassed)]
    assert gates == ["incarnation", "port", "health", "version", "canary"]
    assert {path: path.read_bytes() for path in deploys.units.rglob("*") if path.is_file()} == before
    # old releases go after success, and never what runs or ran
    assert [step.protect for step in plan_of(done).steps if isinstance(step, PruneStep)] == [(GOOD, FIRST)]
    assert deploys.fleet.releases.there == [FIRST, GOOD, BAD, BROKEN]  # keep: 3, and what ran before
    assert deploys.kinds(done)[-4:] == ["proved", "step_started", "step_done", "succeeded"]
    pruned = deploys.last(done, e.StepDone)
    assert (pruned.step, pruned.findings[0].values["removed"]) == ("prune", "0.4.5, 0.4.4, 0.4.3, 0.4.2, 0.4.1, 0.4.0")
    (again,) = why(deploys, deploys.ask(to(GOOD)))
    assert again.code == "deploy.nothing-to-do"


def test_a_release_that_never_gets_well_is_undone_by_itself_and_everything_is_as_before(deploys: Stage) -> None:
    pid = deploys.pid("prefill")
    done = deploys.execute(deploys.approved("decode-only", to(BAD)))
    assert done.state == "rolled_back"
    assert (deploys.fleet.releases.names, running(deploys)) == (FIRST, FIRST)
    assert deploys.starts() == (0, 2, 0)  # the bad one, and the one from before
    assert deploys.pid("prefill") == pid
    failed = deploys.last(done, e.GateFailed)
    assert (failed.gate, failed.part) == ("health", "do")
    passed = [event.gate for event in deploys.events(done) if isinstance(event, e.GatePassed) and event.part == "undo"]
    assert passed == ["incarnation", "port", "health", "version", "canary"]
    assert [f.code for f in deploys.last(done, e.RolledBack).findings] == ["undo.deploy-done"]
    assert deploys.fleet.releases.there == [FIRST, GOOD, BAD, BROKEN]
    (refused,) = why(deploys, deploys.ask(Rollback(service="decode")))
    assert (refused.code, refused.values["ref"]) == ("rollback.undone-already", BAD)
    again = deploys.ask(to(BAD, dry=True))
    assert "deploy.bad-before" in {finding.code for finding in plan_of(again).warnings}


def test_a_release_that_cannot_be_is_refused_before_anything_is_touched(deploys: Stage) -> None:
    (broken,) = why(deploys, deploys.ask(to(BROKEN)))
    assert (broken.code, broken.values["names"]) == ("deploy.release-broken", "engine/steps.py")
    (missing,) = why(deploys, deploys.ask(to("0.5.99")))
    assert (missing.code, missing.values["there"]) == ("deploy.release-missing", f"{BROKEN}, {BAD}, {GOOD}, {FIRST}")
    assert [f.code for f in why(deploys, deploys.ask(to("..")))] == ["deploy.bad-ref"]
    refused = deploys.ask(to(GOOD), Actor(id="U09EVE", roles=()))
    assert "rule.may-not-ask" in deploys.codes(refused)
    assert deploys.starts() == (0, 0, 0)
    assert deploys.fleet.releases.names == FIRST


def test_a_rollback_goes_to_the_last_proven_release_and_leaves_one_lock_whoever_dies(
    deploys: Stage, tmp_path: Path
) -> None:
    silent, last = "0.5.30", "0.5.31"
    deploys.fleet.releases.add(silent, {"version": ""}, at=1_700_000_010.0)
    deploys.fleet.releases.add(last, {"version": last}, at=1_700_000_011.0)
    proven = deployed(deploys, GOOD)
    held = deploys.execute(deploys.approved("decode-only", to(silent)))
    (unread,) = why(deploys, held)
    assert (unread.code, unread.values["error"]) == ("gate.version.not-read", "it is empty")  # no data is never pass
    assert deploys.say(held, "keep").code == "click.ok"
    asked = newest = deploys.ask(to(last))
    outlook = contents(asked)["deploy.rollback-to"].values
    assert (outlook["ref"], outlook["change"]) == (GOOD, proven.id)
    deploys.confirm(asked)
    assert deploys.execute(asked).state == "succeeded"

    asked = deploys.approved("decode-only", Rollback(service="decode", because="5xx"))
    killed_worker(deploys, tmp_path, asked, "before", "succeeded")
    assert deploys.w.client.locks.standing() == ()
    back = deploys.execute(asked)

    assert (back.state, running(deploys), deploys.fleet.releases.names) == ("succeeded", GOOD, GOOD)
    (lock,) = deploys.w.client.locks.standing()
    assert (lock.id, lock.rollback and lock.rollback.brought) == (f"rl-{back.id[2:]}", (newest.id,))
    assert deploys.last(back, e.Succeeded).was == {"decode@gpu1": last}
    (cascade,) = why(deploys, deploys.ask(Rollback(service="decode")))
    assert (cascade.code, cascade.values["change"]) == ("rollback.cascade", back.id)
    (deploys.fleet.releases.place(GOOD) / "engine/web.py").unlink()
    # what was taken away is not deployed before an approver has confirmed something of it
    locked = why(deploys, deploys.ask(to(last)))[0]
    assert (locked.code, locked.values["taken"], locked.values["because"]) == ("lock.after-rollback", last, "5xx")
    assert deploys.ask(Restart(scope="decode", order="decode-only", dry=True)).state == "planned"
    locks = deploys.w.client.locks
    assert locks.unlock(UnlockScope(scope="decode"), ANA).finding.code == "lock.must-be-confirmed"
    assert locks.unlock(UnlockScope(scope="decode"), BEN).finding.code == "lock.confirmed"
    by_name = deploys.ask(to(last))  # what is proven is broken, and a deploy says so before it starts
    assert by_name.state == "planned"
    assert "1 of its" in str(contents(by_name)["deploy.rollback-broken"].values["why"])
    assert "deploy.bad-before" in {finding.code for finding in plan_of(by_name).warnings}


def test_a_link_that_somebody_switches_is_planned_again_or_held_and_never_fought_over(deploys: Stage) -> None:
    change = deploys.approved("decode-only", to(GOOD))
    deploys.fleet.releases.point(BAD)
    again = deploys.execute(change)
    assert again.state == "asked"
    assert [f.code for f in deploys.last(again, e.Replan).findings] == ["replan.value"]
    deploys.fleet.releases.point(FIRST)
    change = deploys.approved("decode-only", to(GOOD))
    deploys.once("step_started", 0, lambda: deploys.fleet.releases.point(BAD))
    (held,) = why(deploys, deploys.execute(change))
    assert held.code == "hold.link-changed"
    assert deploys.fleet.releases.names == BAD
    assert deploys.starts() == (0, 0, 0)
    assert deploys.say(change, "undo").code == "click.ok"
    assert deploys.execute(change).state == "rolled_back"
    assert deploys.fleet.releases.names == BAD  # the switch was never made, so that one is left alone
    assert deploys.starts() == (0, 0, 0)


def test_a_worker_killed_in_a_switch_is_taken_over_and_each_step_is_done_once(deploys: Stage, tmp_path: Path) -> None:
    change = deploys.approved("decode-only", to(GOOD))
    fleet = deploys.fleet
    killed_worker(deploys, tmp_path, change, "before", "step_done", 0)
    done = deploys.execute(change)
    assert done.state == "succeeded", deploys.codes(done)
    assert (running(deploys), fleet.releases.names, deploys.starts()) == (GOOD, GOOD, (0, 1, 0))
    steps = [(event.step, event.index) for event in deploys.events(change) if isinstance(event, e.StepDone)]
    assert steps == [("switch", 0), ("restart", 1), ("prune", 2)]
    assert deploys.kinds(change).count("succeeded") == deploys.kinds(change).count("proved") == 1


def killed_worker(deploys: Stage, tmp_path: Path, change: Change, when: str, kind: str, index: int = -1) -> None:
    """A worker of its own process goes through the change and is killed at that event."""
    fleet = deploys.fleet
    argv = [PYTHON, "-m", "tests.real.worker_process", str(fleet.fleet_yaml), deploys.url, str(fleet.ssh_key)]
    with (tmp_path / "worker.log").open("wb") as log:
        child = subprocess.Popen(
            [*argv, change.id, "SIGKILL", when, kind, str(index)], cwd=ROOT, stdout=log, stderr=log
        )
    try:
        assert child.wait(WAIT_S) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait(WAIT_S)
    deploys.free()


def with_strategy(stage: Stage, strategy: Variable | CommandLine, version: VersionSource | None = None) -> None:
    """The same service, deployed in another way."""
    service = stage.document.services["decode"]
    assert service.deploy is not None
    entry = service.deploy.model_copy(update={"strategy": strategy, "version": version or service.deploy.version})
    services = {**stage.document.services, "decode": service.model_copy(update={"deploy": entry})}
    stage.rewire(stage.document.model_copy(update={"services": services}))


def test_a_version_in_a_variable_is_written_where_knobs_are_and_proven(deploys: Stage) -> None:
    with_strategy(deploys, Variable(env="ENGINE_VERSION", ref=r"[0-9.]+"))
    done = deploys.execute(deploys.approved("decode-only", to("0.6.1")))
    assert (done.state, running(deploys), deploys.environ()["ENGINE_VERSION"]) == ("succeeded", "0.6.1", "0.6.1")
    assert 'Environment="ENGINE_VERSION=0.6.1"' in deploys.dropin().read_text()
    proof = deploys.last(done, e.Proved).proofs["decode@gpu1"]
    assert (proof.verdict, proof.rung, proof.variable) == ("live", "reported", "ENGINE_VERSION")
    outlook = contents(deploys.ask(to("0.6.2")))
    assert outlook["deploy.rollback-to"].values["ref"] == "0.6.1"
    assert [f.code for f in why(deploys, deploys.ask(to("latest")))] == ["deploy.bad-ref"]


def test_a_command_is_checked_run_read_back_and_undone_with_the_version_before(deploys: Stage) -> None:
    link = str(deploys.fleet.releases.current)
    switch = ("/usr/bin/ln", "-sfn", "releases/{ref}", link)
    check = ("/usr/bin/test", "-d", f"{deploys.fleet.releases.path}/releases/{{ref}}")
    with_strategy(deploys, CommandLine(argv=switch, undo=switch, check=check))
    (no,) = why(deploys, deploys.ask(to("0.5.99")))
    assert (no.code, no.values["error"]) == ("deploy.check-failed", "/usr/bin/test ended with 1")
    done = deploys.execute(deploys.approved("decode-only", to(GOOD)))
    assert (done.state, running(deploys)) == ("succeeded", GOOD)
    assert [s.kind for s in plan_of(done).steps] == ["command", "restart"]
    deploys.fleet.releases.add("0.5.40", {"version": "0.5.39"}, at=1_700_000_010.0)
    undone = deploys.execute(deploys.approved("decode-only", to("0.5.40")))
    assert (undone.state, running(deploys), deploys.fleet.releases.names) == ("rolled_back", GOOD, GOOD)
    assert [f.code for f in deploys.last(undone, e.GateFailed).verdict.findings] == ["gate.version.differs"]
    commands = [x for x in deploys.events(undone) if isinstance(x, e.StepDone) and x.step == "command"]
    assert [x.part for x in commands] == ["do", "undo"]


def test_a_command_that_fails_holds_and_is_run_again_when_a_person_asks(deploys: Stage, tmp_path: Path) -> None:
    script = tmp_path / "install"
    script.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 28\n")
    script.chmod(0o755)
    with_strategy(deploys, CommandLine(argv=(str(script), "{ref}")))
    change = deploys.approved("decode-only", to(GOOD))
    assert [f.code for f in plan_of(change).warnings if "way-back" in f.code] == ["deploy.no-way-back"]
    (held,) = why(deploys, deploys.execute(change))
    assert (held.code, held.values["how"], held.values["lines"]) == (
        "hold.command-failed",
        "it ended with 28",
        "no space left",
    )
    assert deploys.starts() == (0, 0, 0)
    script.write_text(f"#!/bin/sh\nln -sfn releases/$1 {deploys.fleet.releases.current}\n")
    assert deploys.say(change, "retry").code == "click.ok"
    done = deploys.execute(change)
    assert (done.state, running(deploys), deploys.starts()) == ("succeeded", GOOD, (0, 1, 0))


def test_a_version_that_was_right_at_its_gate_and_is_not_any_more_holds(deploys: Stage, tmp_path: Path) -> None:
    said = tmp_path / "version"
    said.write_text("v1\n")
    write = CommandLine(argv=("/usr/bin/sed", "-i", "s/.*/{ref}/", str(said)))
    with_strategy(deploys, write, VersionSource(file=str(said)))
    change = deploys.approved("decode-only", to("v2"))

    def lose(event: e.Event) -> None:
        if isinstance(event, e.GatePassed) and event.gate == "canary":
            said.write_text("v1\n")

    deploys.ledger.after.append(lose)
    (lost,) = why(deploys, deploys.execute(change))
    assert (lost.code, said.read_text()) == ("hold.version-lost", "v1\n")


def test_a_switch_carries_the_digest_of_the_manifest_that_was_approved(deploys: Stage) -> None:
    change = deploys.approved("decode-only", to(GOOD))
    (switch,) = [step for step in plan_of(change).steps if isinstance(step, SwitchStep)]
    deploys.fleet.releases.add(GOOD, {"version": GOOD, "warm-s": 0.1}, at=1_700_000_001.0)
    again = deploys.execute(change)
    assert again.state == "asked"
    paths = {f.values.get("path") for f in deploys.last(again, e.Replan).findings}
    assert paths == {f"{switch.releases.place(GOOD)}/manifest.json"}
    assert deploys.fleet.releases.names == FIRST
