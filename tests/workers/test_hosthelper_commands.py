"""The helper's verbs command and read: argument lists that no shell sees, time limits, done once, under the lock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.lab_host import HELPER, LabHost, lab_host

pytestmark = pytest.mark.real
UNIT = "app.service"
WAIT_S = 60.0


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host() as booted:
        booted.unit(UNIT, "ExecStart=/usr/bin/sleep 600")
        yield booted


@pytest.fixture(autouse=True)
def _fresh(host: LabHost) -> None:
    host.state_file(UNIT).unlink(missing_ok=True)


def step(argv: list[str], **more: Any) -> dict[str, Any]:
    return {"unit": UNIT, "token": 1, "change": "C-1", "step": "do-0", "first": 1, "argv": argv, **more}


def test_arguments_reach_the_program_as_they_are_and_no_shell_sees_them(host: LabHost) -> None:
    odd = ["$(reboot)", "a;b", "`id`", "*", " two words ", "'\""]
    done = host.done("command", **step(["/usr/bin/printf", "%s\\n", *odd]))
    assert (done["status"], done["error"], done["already"]) == (0, None, False)
    assert done["lines"] == [word.rstrip() for word in odd]


def test_its_environment_holds_nothing_of_whoever_called(host: LabHost) -> None:
    done = host.done("command", **step(["/usr/bin/env"]))
    names = {line.partition("=")[0] for line in done["lines"]}
    assert names <= {"PATH", "LC_ALL", "HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}


def test_what_ended_well_is_not_run_again_for_its_step_by_whoever_takes_over(host: LabHost, tmp_path: Path) -> None:
    argv = ["/usr/bin/mktemp", str(tmp_path / "ran-XXXXXX")]
    host.done("command", **step(argv))
    again = host.done("command", **step(argv, token=2))
    assert (again["already"], again["status"], len(list(tmp_path.iterdir()))) == (True, 0, 1)
    host.done("command", **step(argv, token=3, first=3))  # another change of the same name, after a store was lost
    host.done("command", **step(argv, token=3, step="undo-0"))
    assert len(list(tmp_path.iterdir())) == 3


def test_what_failed_is_told_with_its_last_lines_and_run_again_when_asked(host: LabHost, tmp_path: Path) -> None:
    script = tmp_path / "install"
    script.write_text("#!/bin/sh\necho fetching\necho 'password=hunter22 no such version' >&2\nexit 3\n")
    script.chmod(0o755)
    done = host.done("command", **step([str(script)]))
    assert (done["status"], done["lines"]) == (3, ["fetching", "password=*** no such version"])
    script.write_text("#!/bin/sh\n")
    assert host.done("command", **step([str(script)]))["status"] == 0
    records = host.done("fence", unit=UNIT, token=2)["records"]
    assert [(r["verb"], r["phase"], r["status"]) for r in records] == [("command", "done", 0)]


def test_a_program_that_cannot_be_run_or_does_not_end_is_said_to_be_that(host: LabHost, tmp_path: Path) -> None:
    assert "No such file" in host.done("command", **step(["/nowhere/install"]))["error"]
    begun = time.monotonic()
    script = tmp_path / "hang"
    script.write_text(f"#!/bin/sh\ntrap '' TERM\necho $$ > {tmp_path}/pid\nsleep 600 &\nwait\nsleep 600\n")
    script.chmod(0o755)
    done = host.done("command", **step([str(script)], limit_s=0.3))
    assert "was stopped" in done["error"]
    assert time.monotonic() - begun < 60  # the program lives for 600
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_program_that_leaves_something_running_has_ended_all_the_same(host: LabHost, tmp_path: Path) -> None:
    script = tmp_path / "daemon"
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/pid\n")
    script.chmod(0o755)
    begun = time.monotonic()
    assert host.done("command", **step([str(script)]))["status"] == 0
    assert time.monotonic() - begun < 60  # what it left lives for 600
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_what_is_no_argument_list_is_refused(host: LabHost) -> None:
    bad: list[Any] = [[], ["install"], [1], ["/bin/a", "b\n"], ["/bin/a", "b\0"], "/bin/a", ["/bin/a"] * 101]
    answers = host.ask_many([{"verb": "command", **step(argv)} for argv in bad])
    assert [a.get("code") for a in answers] == ["bad-request"] * len(bad)


def test_a_user_that_the_host_does_not_have_runs_nothing(host: LabHost) -> None:
    assert host.refused("command", **step(["/bin/true"], user="no-such-user"))["code"] == "forbidden"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_a_program_runs_as_the_user_that_is_declared(host: LabHost) -> None:
    done = host.done("command", **step(["/usr/bin/id", "-un"], user="nobody"))
    assert done["lines"] == ["nobody"]


def test_a_command_holds_the_lock_to_its_end_also_when_the_helper_is_killed(host: LabHost, tmp_path: Path) -> None:
    script = tmp_path / "slow"
    script.write_text(f"#!/bin/sh\necho begun >> {tmp_path}/log\nsleep 1.5\necho ended >> {tmp_path}/log\n")
    script.chmod(0o755)
    request = {"v": 1, "verb": "command", "scope": "user", **step([str(script)])}
    argv = host.manager.wrap(["/usr/bin/python3", "-I", str(HELPER)])
    helper = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert helper.stdin is not None
    helper.stdin.write(json.dumps(request).encode())
    helper.stdin.close()
    until = time.monotonic() + WAIT_S
    while not (tmp_path / "log").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    helper.kill()
    helper.wait()
    records = host.done("fence", unit=UNIT, token=2)["records"]  # waits for the lock, as whoever takes over does
    assert (tmp_path / "log").read_text().split() == ["begun", "ended"]
    assert [(r["verb"], r["phase"]) for r in records] == [("command", "intended")]
    host.done(
        "command", **step([str(script)], token=2)
    )  # how it ended is not known, and it is declared to be repeatable
    assert (tmp_path / "log").read_text().split() == ["begun", "ended"] * 2


def test_texts_are_read_from_files_and_programs_and_say_why_not(host: LabHost, tmp_path: Path) -> None:
    (tmp_path / "version").write_text("  v2\n")
    items = [
        {"file": str(tmp_path / "version")},
        {"file": str(tmp_path / "gone")},
        {"argv": ["/usr/bin/printf", "v3\\n"]},
        {"argv": ["/usr/bin/false"]},
        {"argv": ["/usr/bin/sleep", "600"], "limit_s": 0.2},
    ]
    answers = host.done("read", items=items)["answers"]
    assert [a["text"] for a in answers] == ["v2", None, "v3", None, None]
    assert [a["error"] for a in answers][0::2] == [
        None,
        None,
        "/usr/bin/sleep had not ended after 0.2 s and was stopped",
    ]
    assert answers[1]["error"].endswith("gone: not-found")
    assert answers[3]["error"] == "/usr/bin/false ended with 1"
    assert host.refused("read", items=[{"file": "relative"}])["code"] == "bad-request"
