"""Drift on a real host: nothing after a change of ours, and everything that somebody else did since."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner

from bot.cli import main
from policies.deploys.strategy import VersionSource
from policies.fleet import Fleet
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.units import unit_name
from tests.ports import free_port
from tests.real.stage import Stage
from workers.drift import FleetLook, VersionLook, _of_build, _of_version, fleet_drift
from workers.drift_told import drift_round

pytestmark = pytest.mark.real


def codes(look: FleetLook, effect: str) -> list[tuple[str, str]]:
    found = [(i.instance, one.code) for i in look.instances for one in i.findings if one.effect == effect]
    return [(instance, code.removeprefix("drift.")) for instance, code in found]


def test_a_fleet_that_nobody_changed_has_no_drift(stage: Stage) -> None:
    stage.restart_by_hand("decode")  # the process may be one that an earlier change started without the knob
    look = fleet_drift(stage.w)
    assert (codes(look, "refuse"), codes(look, "note"), look.drifted, look.unread) == ([], [], False, {})
    assert [one.instance for one in look.instances] == ["prefill@gpu1", "decode@gpu1", "router@gpu1"]
    decode = look.instances[1]
    assert decode.incarnation.main_pid == stage.pid("decode")
    assert (decode.left, decode.build) == (None, stage.fleet.engines.version)
    value = decode.values[KNOB]
    assert (value.managed, value.configured, value.live, value.drift) == (False, "512", "512", False)


def test_what_somebody_did_after_our_change_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    done = stage.execute(stage.approved())
    assert done.state == "succeeded"
    after = fleet_drift(stage.w)
    assert (codes(after, "refuse"), codes(after, "note")) == ([], [])
    assert after.instances[1].left == after.instances[1].incarnation
    assert after.instances[1].values[KNOB].desired is None

    folder = stage.units / f"{unit_name('decode')}.d"
    folder.mkdir(exist_ok=True)
    (folder / "zzz-by-hand.conf").write_text(f"[Service]\nUnsetEnvironment=\nEnvironment={KNOB_ENV}=64\n")
    edited = fleet_drift(stage.w)
    assert codes(edited, "refuse") == [("decode@gpu1", "configured"), ("decode@gpu1", "live")]
    assert ("decode@gpu1", "not-loaded") in codes(edited, "note")
    stage.systemctl("daemon-reload")
    stage.systemctl("restart", unit_name("decode"))
    stage.fleet.wait_healthy()
    restarted = fleet_drift(stage.w)
    assert codes(restarted, "refuse") == [("decode@gpu1", "configured")]
    later = replace(stage.w, clock=lambda: time.time() + 600)  # the change ended a moment ago
    assert (drift_round(later), drift_round(later)) == (["dr-1"], [])
    assert codes(restarted, "note") == [("decode@gpu1", "other-process")]

    for name, value in {
        "REDIS_URL": stage.url,
        "CLAWBACK_FLEET": str(stage.fleet.fleet_yaml),
        "CLAWBACK_SSH_KEY": str(stage.fleet.ssh_key),
    }.items():
        monkeypatch.setenv(name, value)
    answer = CliRunner().invoke(main, ["fleet", "drift", "--json"])
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["ok"], document["errors"]) == (1, False, [])
    decode = document["instances"][1]
    (knob,) = decode["knobs"]
    assert (knob["desired"], knob["configured"], knob["live"], knob["drift"]) == (None, "64", "64", True)
    assert knob["configured_by"].endswith("zzz-by-hand.conf:3")
    assert [one["code"] for one in decode["drift"]] == ["drift.configured"]
    said = CliRunner().invoke(main, ["fleet", "drift"]).stdout
    assert f"drift  decode@gpu1: {KNOB} should be unset by its last change" in said
    assert said.endswith("3 instances, 1 values of knobs, 1 differ\n")


def test_a_host_that_cannot_be_asked_is_told_and_the_answer_is_no(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.restart_by_hand("decode")  # as above
    document = stage.document
    gone = document.hosts["gpu1"].model_copy(update={"name": "gpu2", "port": free_port()})
    router = document.services["router"].model_copy(update={"on": ("gpu2",)})
    hosts = {**document.hosts, "gpu2": gone}
    stage.rewire(document.model_copy(update={"hosts": hosts, "services": {**document.services, "router": router}}))
    look = fleet_drift(stage.w)
    assert [one.instance for one in look.instances] == ["prefill@gpu1", "decode@gpu1"]
    assert list(look.unread) == ["gpu2"]
    assert not look.drifted
    monkeypatch.setattr("bot.cli.store.open_from_terminal", lambda: stage.w)
    answer = CliRunner().invoke(main, ["fleet", "drift", "--json"])
    (error,) = json.loads(answer.stdout)["errors"]
    assert (answer.exit_code, error["code"], error["message"].startswith("gpu2: ")) == (1, "host.not-asked", True)
    assert set(error) == {"file", "line", "code", "message", "hint"}


def test_a_version_that_nobody_deployed_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    decode = fleet_drift(stage.w).instances[1]
    assert decode.version is not None
    runs = decode.version.configured
    assert (decode.version.desired, runs is not None, decode.findings) == (None, True, ())
    monkeypatch.setattr("workers.drift.deployed", lambda *_: {"decode@gpu1": "9.9.9"})
    other = fleet_drift(stage.w)
    assert codes(other, "refuse") == [("decode@gpu1", "version-configured")]
    entry = stage.document.services["decode"].deploy
    assert entry is not None
    for look, code in (
        (VersionLook("1", "1", "2"), "drift.version-live"),
        (VersionLook("1", "2", "2"), "drift.version-configured"),
        (VersionLook("1", "1", None, "it is away"), "drift.version-unknown"),
        (VersionLook(None, None, "2"), "drift.version-unknown"),
    ):
        plain = stage.document.services["decode"].model_copy(
            update={"deploy": entry.model_copy(update={"version": VersionSource(file="/version")})}
        )
        fleet: Fleet = stage.document.model_copy(update={"services": {"decode": plain}})
        assert [one.code for one in _of_version(fleet, "decode@gpu1", look)] == [code]


def test_replicas_with_different_builds_are_drift(stage: Stage) -> None:
    service = stage.document.services["decode"].model_copy(update={"on": ("a", "b", "c")})
    fleet: Fleet = stage.document.model_copy(update={"services": {"decode": service}})
    builds = {"decode@a": "0.5.23", "decode@b": "0.5.22", "decode@c": None}
    told = [_of_build(fleet, instance, "decode", builds) for instance in builds]
    assert [[one.code for one in found] for found in told] == [[], ["drift.builds"], []]
    assert told[1][0].values["other_build"] == "0.5.23"
