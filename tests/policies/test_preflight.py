"""What is told before anything is restarted: holders, wrappers, managed files, files that systemd has not read."""

from __future__ import annotations

from typing import Any

import pytest

from bot.messages import strict
from policies import preflight as looks
from policies.aftermath.journal import about, tail
from policies.aftermath.limit import reached
from policies.devices import left_over, strangers
from policies.facts import DeviceHolder, LogTail, ProcessEnv
from policies.finding import Finding
from policies.gates import environment
from policies.preflight.managed import manager_of
from policies.proof import prove
from policies.wrapper import Wrapped, counted, wraps
from tests.policies import builders as b
from tests.policies.systemd_tree import file_text

GPU = "/dev/nvidia0"


def preflight(*args: Any) -> tuple[Finding, ...]:
    """What is told before, each of it with a sentence that its values fill."""
    found = looks.preflight(*args)
    assert all(strict(finding) for finding in found)
    return found


@pytest.mark.parametrize(
    ("command", "main", "found"),
    [
        ("/usr/bin/docker run --rm vllm", "docker", ("container", "docker")),
        ("/usr/bin/docker run --rm vllm", None, ("container", "docker")),
        ("/usr/bin/podman run x", "conmon", ("container", "conmon")),
        ("/bin/sh -c 'exec docker run x'", "docker", ("container", "docker")),
        ("/bin/sh -c 'exec docker run x'", None, ("container", "docker")),
        ("/bin/sh -c 'python -m engine & wait'", "sh", ("starter", "sh")),
        ("/bin/sh -c 'python -m engine & wait'", None, ("starter", "sh")),
        ("/bin/sh -c 'exec python -m engine'", "python3", None),
        ("/bin/sh -c 'exec python -m engine'", None, None),
        ("/bin/bash /srv/start.sh", "bash", ("starter", "bash")),
        ("/bin/bash /srv/start.sh", "python3", None),
        ("/usr/bin/nohup python", None, ("starter", "nohup")),
        ("/usr/bin/nohup python", "python3", None),
        ("/usr/bin/screen -DmS x python", "screen", ("starter", "screen")),
        ("/usr/bin/tmux new -d python", "tmux: server", ("starter", "tmux: server")),
        ("/opt/sgl/bin/python -m sglang.launch_server", "python", None),
        ("/opt/sgl/bin/python docker run", None, None),
        ("", None, None),
    ],
)
def test_a_wrapper_is_known_by_what_runs_and_else_by_its_command(
    command: str, main: str | None, found: tuple[str, str] | None
) -> None:
    seen = wraps(tuple(command.split()), main)
    assert ((seen.kind, seen.program) if seen else None) == found


def process(name: str, value: str | None, *, main: bool = False, answer: str | None = None) -> ProcessEnv:
    return b.process(value, answer=answer, main=main).model_copy(update={"name": name, "pid": sum(name.encode())})


@pytest.mark.parametrize(
    ("kind", "children", "verdict"),
    [
        ("starter", [("python", "512")], "live"),
        ("starter", [("python", "512"), ("tee", None)], "live"),
        ("starter", [("python", None)], "not_live"),
        ("starter", [("python", "256")], "not_live"),
        ("starter", [("python", "512"), ("worker", None)], "mixed"),
        ("starter", [("python", "unreadable")], "unproven"),
        ("starter", [("bash", "512")], "unproven"),
        ("starter", [], "unproven"),
        ("container", [], "unproven"),
        ("container", [("python", "512")], "unproven"),
        ("container", [("python", "256")], "unproven"),
    ],
)
def test_a_wrappers_own_environment_proves_nothing(
    kind: Any, children: list[tuple[str, str | None]], verdict: str
) -> None:
    seen = [process("sh", "512", main=True)]
    for name, value in children:
        unreadable = value == "unreadable"
        seen.append(process(name, None if unreadable else value, answer="unreadable" if unreadable else None))
    proof = prove(
        instance="d@h", variable=b.ENV, wanted="512", processes=seen, effective="512", wraps=Wrapped(kind, "sh")
    )
    assert proof.verdict == verdict
    assert (proof.rung == "environment") is (verdict == "live")
    assert f"proof.{kind}" in {f.code for f in proof.findings}
    assert (environment.judge(proof).answer == "pass") is (verdict == "live")


def test_without_a_wrapper_every_process_counts() -> None:
    seen = (process("sh", "512", main=True), process("tee", "512"))
    assert counted(seen, None) == seen


def holder(**more: Any) -> DeviceHolder:
    given: dict[str, Any] = {
        "path": GPU, "pid": 9, "name": "python", "cgroup": "/user.slice", "started": 100, "since": b.NOW - 60,
        "in_unit": False,
    }  # fmt: skip
    return DeviceHolder.model_validate({**given, **more})


def fleet_with_devices(**more: tuple[str, ...]) -> Any:
    fleet = b.fleet()
    services = {
        name: service.model_copy(update={"devices": more.get(name, ())}) for name, service in fleet.services.items()
    }
    return fleet.model_copy(update={"services": services})


@pytest.mark.parametrize(
    ("held", "sharers", "strange"),
    [
        (holder(), {}, True),
        (holder(in_unit=True), {}, False),
        (holder(name="nvidia-persiste"), {}, False),
        (holder(name="dcgm-exporter"), {}, False),
        (holder(cgroup="/system.slice/sgl-prefill.service"), {"prefill": (GPU,)}, False),
        (holder(cgroup="/system.slice/sgl-prefill.service/sub"), {"prefill": (GPU,)}, False),
        (holder(cgroup="/system.slice/sgl-prefill.service"), {"prefill": ("/dev/nvidia1",)}, True),
        (holder(cgroup="/system.slice/sgl-prefill.service"), {}, True),
        (holder(cgroup="/system.slice/not-sgl-prefill.service"), {"prefill": (GPU,)}, True),
        (holder(cgroup=None), {"prefill": (GPU,)}, True),
    ],
)
def test_a_device_is_shared_only_with_those_that_declare_it(
    held: DeviceHolder, sharers: dict[str, tuple[str, ...]], strange: bool
) -> None:
    fleet = fleet_with_devices(decode=(GPU,), **sharers)
    unit = b.unit(device_holders=(held,))
    assert (strangers(fleet, unit) == (held,)) is strange
    codes = [f.code for f in preflight(fleet, ["decode@gpu1"], {"decode@gpu1": unit}, {})]
    assert codes == (["plan.device-held"] if strange else [])


def test_what_an_earlier_life_left_in_the_unit_is_left_over_after_a_start_and_no_stranger_before() -> None:
    unit = b.unit(device_holders=(holder(in_unit=True, started=1), holder(in_unit=True, started=10**9, pid=10)))
    fleet = fleet_with_devices(decode=(GPU,))
    assert strangers(fleet, unit) == ()
    assert [h.pid for h in left_over(fleet, unit)] == [9]


def test_a_process_with_many_devices_is_named_once_with_all_of_them() -> None:
    held = tuple(holder(path=f"/dev/nvidia{n}") for n in range(8))
    fleet = fleet_with_devices(decode=tuple(h.path for h in held))
    unit = b.unit(device_holders=held, devices_unseen=3)
    found = preflight(fleet, ["decode@gpu1"], {"decode@gpu1": unit}, {})
    assert [f.code for f in found] == ["plan.device-held", "plan.devices-not-all-seen"]
    assert str(found[0].values["device"]).count("/dev/nvidia") == 8


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Ansible managed: /srv/x.j2\n[Service]\n", (1, "Ansible")),
        ("[Service]\n  ; This file is managed by Puppet. DO NOT EDIT\n", (2, "Puppet")),
        ("# Generated by Chef for gpu1\n", (1, "Chef")),
        ("# created by cloud-init on instance boot\n", (1, "cloud-init")),
        ("# managed by the salt minion\n", (1, "salt")),
        ("# managed by our-own-tool.\n", (1, "our-own-tool")),
        ("# ansible-managed\n", (1, "ansible")),
        ("# written by clawback: edits made here by hand are seen as drift\n", None),
        ("# written by ben after the incident\n", None),
        ("# tuned by ansible's author\n", None),
        ("# managed by systemd\n", None),
        ("Environment=NOTE=Ansible managed\n", None),
        ("", None),
    ],
)
def test_a_file_that_names_its_manager_is_known_by_its_comment(text: str, found: tuple[int, str] | None) -> None:
    assert manager_of(file_text("/etc/x", text)) == found


def test_only_files_beside_which_something_is_written_are_warned_of() -> None:
    managed = b.unit("prefill@gpu1", fragment="# Ansible managed\n[Service]\n")
    fleet = b.fleet()
    plan = b.planning(fleet, b.facts(fleet, prefill=managed)).plans[0]
    assert [f.code for f in plan.warnings] == []
    decode = b.unit(env_files={"/etc/e": "# managed by Puppet\nA=1\n"}, fragment="[Service]\nEnvironmentFile=/etc/e\n")
    plan = b.planning(fleet, b.facts(fleet, decode=decode)).plans[0]
    assert [(f.code, f.values["path"]) for f in plan.warnings] == [("plan.managed", "/etc/e")]


def test_a_managed_file_that_wins_is_named_with_the_refusal() -> None:
    fleet = b.fleet()
    text = f"# Ansible managed\n{b.ENV}=1\n"
    decode = b.unit(env_files={"/etc/e": text}, fragment="[Service]\nEnvironmentFile=/etc/e\n")
    found = b.planning(fleet, b.facts(fleet, decode=decode)).findings
    assert [f.code for f in found] == ["plan.place-loses", "plan.managed"]


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"need_daemon_reload": True}, ["plan.not-reloaded"]),
        ({"dropins_": {"a.conf": "[Service]\n"}, "loaded_dropins": ()}, ["plan.dropin-not-loaded"]),
        ({"dropins_": {"a.conf": ""}, "loaded_dropins": ()}, []),  # a mask: systemd reads nothing there
        ({"dropins_": {"a.conf": "[Service]\n"}}, []),
        ({"recent_restarts": 5}, ["plan.start-limit-near"]),
        ({"recent_restarts": 4}, []),
        ({"recent_restarts": 5, "start_limit_interval_s": 0.0}, []),
    ],
)
def test_what_systemd_has_not_read_and_how_often_it_may_start(changes: dict[str, Any], codes: list[str]) -> None:
    given = {"dropins" if key == "dropins_" else key: value for key, value in changes.items()}
    unit = b.unit(**given)
    assert [f.code for f in preflight(b.fleet(), ["decode@gpu1"], {"decode@gpu1": unit}, {})] == codes


@pytest.mark.parametrize(
    ("state", "restarts", "restart", "result", "told"),
    [
        ("failed", 5, "on-failure", "exit-code", True),
        ("failed", 4, "on-failure", "exit-code", False),
        ("failed", 9, "no", "exit-code", False),
        ("failed", 0, "no", "start-limit-hit", True),
        ("activating", 9, "on-failure", "exit-code", False),
    ],
)
def test_a_start_limit_is_said_to_be_reached_when_systemd_tries_no_more(
    state: str, restarts: int, restart: str, result: str, told: bool
) -> None:
    unit = b.unit(active_state=state, restart=restart, result=result)
    assert [f.code for f in reached("d@h", unit, restarts)] == (["gate.start-limit-reached"] if told else [])


def test_a_log_is_quoted_from_its_end_and_silence_is_said() -> None:
    lines = tuple(f"line {n}" for n in range(50))
    (found,) = tail("d@h", b.unit(log=LogTail(source="/var/log/x", lines=lines)))
    assert found.values["text"] == " ⏎ ".join(lines[-6:])
    (found,) = tail("d@h", b.unit(log=LogTail(source="journal", lines=("x" * 5000,))))
    assert len(str(found.values["text"])) == 601
    (found,) = tail("d@h", b.unit(log=LogTail(source="journal", lines=(), error="forbidden")))
    assert (found.code, found.values["error"]) == ("gate.log-none", "forbidden")
    assert tail("d@h", b.unit()) == ()


def test_the_last_line_about_a_variable_is_found_and_none_is_made_up() -> None:
    lines = (f"Invalid value for {b.ENV}: old", f"Invalid value for {b.ENV}: '512  # tuned', using default", "other")
    log = LogTail(source="journal", lines=lines)
    (found,) = about("d@h", log, b.ENV)
    assert found.values["text"] == lines[1]
    assert about("d@h", log, "OTHER_NAME") == ()
    assert about("d@h", None, b.ENV) == ()
