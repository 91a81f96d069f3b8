"""What people break in the demo by hand, each as one run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.real.demo_runs import Paused, Ran, run

FOREIGN = Path(__file__).with_name("demo_foreign.py")
UNIT = "sglang-demo-decode.service"
KNOB = "SGLANG_SM120_MMA_TARGET_CTAS"


def untouched() -> Ran:
    """Nothing is broken."""
    return run()


def unit_edited_after_the_approval() -> Ran:
    """Somebody adds a line to decode's unit between the approver's click and the first step."""

    def edit(paused: Paused) -> None:
        unit = paused.units / UNIT
        unit.write_text(unit.read_text() + 'Environment="SOMEBODY=was here"\n')

    return run(pause_before="execute", meanwhile=edit)


def engine_that_dies_of_the_value() -> Ran:
    """The engine is changed so that it ends at once when it gets the value that the change brings."""

    def edit(paused: Paused) -> None:
        main = paused.engines / "__main__.py"
        check = (
            f'    if "decode" in sys.argv and os.environ.get("{KNOB}") == "512":\n        sys.exit("no such kernel")\n'
        )
        text = main.read_text()
        assert "    options = read(sys.argv[1:])\n" in text
        main.write_text(
            text.replace("    options = read(sys.argv[1:])\n", check + "    options = read(sys.argv[1:])\n")
        )

    return run(pause_before="confirm", meanwhile=edit)


def port_taken_by_a_foreign_process() -> Ran:
    """A process that is no engine takes decode's port while decode restarts, and answers 200."""
    started: list[subprocess.Popen[bytes]] = []

    def take(paused: Paused) -> dict[str, Any]:
        process = subprocess.Popen([sys.executable, str(FOREIGN), str(paused.ports["decode"])])
        started.append(process)
        return {"foreign": process.pid}

    try:
        return run(pause_before="execute", meanwhile=take)
    finally:
        for process in started:
            process.kill()
            process.wait()


def unit_restarted_by_hand() -> Ran:
    """Somebody restarts decode after the plan was made and before it is confirmed."""

    def restart(paused: Paused) -> None:
        paused.ctl("restart", UNIT)

    return run(pause_before="confirm", meanwhile=restart)


def worker_killed() -> Ran:
    """Both workers that act are killed after the approval."""

    def kill(paused: Paused) -> dict[str, Any]:
        pids = [pid for pid, words in _commands(str(paused.folder)) if "worker" in words and "act" in words]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return {"killed": pids}

    return run(pause_before="execute", meanwhile=kill)


def store_killed() -> Ran:
    """The ledger's store stops answering after the plan was made."""

    def stop(paused: Paused) -> dict[str, Any]:
        pid = int((paused.folder / "data" / "valkey.pid").read_text())
        os.kill(pid, signal.SIGSTOP)
        return {"stopped": pid}

    return run(pause_before="confirm", meanwhile=stop)


def asked_to_end() -> Ran:
    """SIGTERM while hosts and services boot."""
    return run(signalled_at_boot=signal.SIGTERM)


def _commands(word: str) -> list[tuple[int, list[str]]]:
    found: list[tuple[int, list[str]]] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and word.encode() in (entry / "environ").read_bytes():
                found.append((int(entry.name), (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")))
        except OSError:
            continue
    return found
