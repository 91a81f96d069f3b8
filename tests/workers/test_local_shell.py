"""Commands on this machine follow the rules of remote ones."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from policies.errors import HostAnswerLost, HostUnreachable
from policies.fleet import Host
from workers.shells import Done
from workers.shells.local import LocalShell

HOST = Host(name="here", address="localhost", user="me")


def run(
    *argv: str, stdin: bytes = b"", deadline_s: float = 20.0, cap: int = 1 << 20, shell: LocalShell | None = None
) -> Done:
    return (shell or LocalShell()).run(HOST, argv, stdin=stdin, deadline_s=deadline_s, max_output_bytes=cap)


def python(code: str, **options: object) -> Done:
    return run(sys.executable, "-I", "-c", code, **options)  # type: ignore[arg-type]  # options of run above


def test_arguments_arrive_as_they_are() -> None:
    assert run("printf", "%s|", "a b", "$HOME", ";reboot").stdout == b"a b|$HOME|;reboot|"


def test_status_and_both_outputs_are_given() -> None:
    done = run("sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.exit_status, done.stdout, done.stderr, done.signal) == (7, b"out\n", b"err\n", "")


def test_a_killed_command_names_its_signal() -> None:
    done = run("sh", "-c", "kill -9 $$")
    assert (done.exit_status, done.signal) == (137, "KILL")


def test_three_megabytes_on_stderr_before_stdout_do_not_block() -> None:
    done = python("import sys; sys.stderr.write('e' * 3_000_000); sys.stderr.flush(); print('end')", cap=4_000_000)
    assert (len(done.stderr), done.stdout) == (3_000_000, b"end\n")


def test_large_input_is_written_while_output_is_read() -> None:
    data = b"x" * 3_000_000
    assert run("cat", stdin=data, cap=4_000_000).stdout == data


def test_input_that_nobody_reads_does_no_harm() -> None:
    assert run("true", stdin=b"x" * 3_000_000).exit_status == 0


def test_output_beyond_the_cap_is_cut_and_said_to_be() -> None:
    done = python("print('a' * 100_000)", cap=1000)
    assert (done.stdout, done.truncated) == (b"a" * 1000, True)


def test_a_child_in_the_background_does_not_hold_the_answer() -> None:
    done = run("sh", "-c", "sleep 30 & echo up")
    assert (done.exit_status, done.stdout) == (0, b"up\n")
    assert done.took_s < 20  # the deadline; the child lives for 30


def test_a_command_beyond_its_deadline_is_killed_with_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    with pytest.raises(HostAnswerLost, match=r"no end within 0\.5 s"):
        run("sh", "-c", f"sh -c 'sleep 2; touch {mark}' & wait", deadline_s=0.5)
    time.sleep(2.5)
    assert not mark.exists()


def test_a_command_that_talks_for_ever_ends_at_its_deadline() -> None:
    with pytest.raises(HostAnswerLost):
        run("yes", deadline_s=0.5, cap=1000)


def test_a_program_that_is_not_there_means_that_nothing_was_done() -> None:
    with pytest.raises(HostUnreachable, match="nothing was done"):
        run("/nonexistent/program")


def test_environment_and_folder_are_those_given(tmp_path: Path) -> None:
    shell = LocalShell(env={"ONLY": "this"}, cwd=tmp_path)
    assert run("/usr/bin/env", shell=shell).stdout == b"ONLY=this\n"
    assert run("/bin/pwd", shell=shell).stdout.decode().strip() == str(tmp_path.resolve())
