"""The doctor on a real host: what it sees there, in what order it gives up, and that it changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.doctor.check import Patient
from bot.doctor.hosts import hosts
from bot.settings import Settings
from policies.deploys.strategy import DeployEntry, Releases, VersionSource
from policies.fleet import Fleet
from sandbox.fleet.units import unit_name
from tests.real.stage import Stage
from workers.checkup import look, release_folder
from workers.shells import Done, Shell

pytestmark = pytest.mark.real


def patient(stage: Stage, fleet: Fleet | None = None) -> Patient:
    settings = Settings(clawback_ssh_key=str(stage.fleet.ssh_key), clawback_fleet=stage.fleet.fleet_yaml)
    made = Patient(settings)
    made.__dict__["fleet"] = fleet or stage.document
    return made


def seen(stage: Stage, fleet: Fleet | None = None) -> dict[str, tuple[bool, str, str]]:
    return {check.name: (check.ok, check.detail, check.fix) for check in hosts(patient(stage, fleet))}


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


def test_a_host_that_is_well_is_well_in_everything_and_is_left_as_it_was(stage: Stage) -> None:
    before = files_below(stage.units)
    pids = [stage.pid(role) for role in ("prefill", "decode", "router")]
    found = seen(stage)
    assert {name: detail for name, (ok, detail, _) in found.items() if not ok} == {}
    roles = ("prefill", "decode", "router")
    assert set(found) == {
        *(f"{what}:gpu1" for what in ("host-key", "ssh", "python", "clock")),
        *(f"{what}:{role}@gpu1" for role in roles for what in ("rights", "health")),
        *(f"metrics:{role}@gpu1" for role in roles if stage.document.services[role].metrics),
        *(f"releases:{role}@gpu1" for role in roles if release_folder(stage.document.services[role])),
    }
    assert found["python:gpu1"][1].startswith("Python 3.")
    assert "can be written and it can be restarted" in found["rights:decode@gpu1"][1]
    assert files_below(stage.units) == before
    assert [stage.pid(role) for role in roles] == pids


def test_a_wrong_key_port_unit_and_endpoint_are_each_told_with_what_to_do(stage: Stage) -> None:
    fleet = stage.document
    host, decode = fleet.hosts["gpu1"], fleet.services["decode"]
    other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
    strange = fleet.model_copy(update={"hosts": {"gpu1": host.model_copy(update={"host_key": other})}})
    assert {name: ok for name, (ok, _, _) in seen(stage, strange).items()} == {
        "host-key:gpu1": False,
        "ssh:gpu1": False,
    }
    quiet = decode.health.model_copy(update={"url": stage.fleet.url("decode", "/nowhere")})
    lost = decode.model_copy(update={"unit": "no-such.service", "health": quiet})
    found = seen(stage, fleet.model_copy(update={"services": {"decode": lost}}))
    assert found["rights:decode@gpu1"][:2] == (False, "no-such.service on gpu1 is not-found")
    assert "answered 404, expected 200" in found["health:decode@gpu1"][1]
    assert found["health:decode@gpu1"][2]


def test_a_folder_that_may_not_be_written_is_told(stage: Stage) -> None:
    unit = unit_name("decode")
    (stage.units / f"{unit}.d").write_text("a file where a folder has to be")
    try:
        (told,) = look(stage.document, stage.pool)
        assert told.rights is not None
        rights = {one.unit: one for one in told.rights.units}
        assert rights[unit].dropin == str(stage.units / f"{unit}.d" / "zz-clawback.conf")
        assert rights[unit].dropin_writable is False
        ok, detail, fix = seen(stage)["rights:decode@gpu1"]
        assert (ok, detail.endswith("zz-clawback.conf")) == (False, True)
        assert "manager: user" in fix
    finally:
        (stage.units / f"{unit}.d").unlink()


def test_the_folder_of_releases_must_be_there_and_writable(stage: Stage, tmp_path: Path) -> None:
    def with_folder(path: Path) -> tuple[bool, str, str]:
        version = VersionSource(http=stage.fleet.url("decode", "/server_info"), field="version")
        entry = DeployEntry(strategy=Releases(path=str(path)), version=version, restarts=("decode-only",))
        decode = stage.document.services["decode"].model_copy(update={"deploy": entry})
        services = {**stage.document.services, "decode": decode}
        return seen(stage, stage.document.model_copy(update={"services": services}))["releases:decode@gpu1"]

    assert with_folder(tmp_path)[0] is True
    assert with_folder(tmp_path / "none")[:2] == (False, f"{tmp_path / 'none'} is no folder on gpu1")


class Broken:
    """A shell on which some commands do not work."""

    def __init__(self, shell: Shell, answers: dict[str, Done]) -> None:
        self._shell = shell
        self._answers = answers
        self.kept = shell.kept

    def __getattr__(self, name: str) -> object:
        return getattr(self._shell, name)

    def run(self, host: object, argv: list[str], **how: object) -> Done:
        """The prepared answer of a command that ends with this word, else the real one."""
        return self._answers.get(argv[-1]) or self._shell.run(host, argv, **how)  # type: ignore[arg-type]  # passed on


def test_a_host_without_python_and_a_clock_that_is_off_are_told_apart(stage: Stage) -> None:
    broken = Broken(stage.pool, {"-V": Done(127, b"", b"no such file", 0.0)})
    (without,) = look(stage.document, broken)  # type: ignore[arg-type]  # what of a shell is used
    assert (without.stage, without.error is not None) == ("python", True)
    from time import time

    (late,) = look(stage.document, stage.pool, lambda: time() - 60)
    assert late.skew_s == pytest.approx(60, abs=5)
