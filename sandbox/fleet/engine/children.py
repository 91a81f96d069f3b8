"""Child processes of an engine: one renames itself and so wipes its environment area, one stays plain."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path


def spawn(kinds: list[str], role: str) -> int:
    """Fork one child per kind (`renamed` or `plain`); they end when the returned descriptor closes.

    To be called before any thread starts and before a port is bound.
    """
    hold_read, hold_write = os.pipe()
    ready_read, ready_write = os.pipe()
    for number, kind in enumerate(kinds):
        if os.fork() == 0:
            os.close(hold_write)
            os.close(ready_read)
            _child(kind, role, number, hold_read, ready_write)
    os.close(hold_read)
    os.close(ready_write)
    while os.read(ready_read, 1):  # until every child did its renaming
        continue
    os.close(ready_read)
    return hold_write


def _child(kind: str, role: str, number: int, hold: int, ready: int) -> None:
    # the unit's stop signal goes to every process of the unit; children leave when their parent has drained
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if kind == "renamed":
            rename(f"sglang::scheduler_{role.upper()}{number}")
        os.close(ready)
        while os.read(hold, 1):
            continue
    finally:
        os._exit(0)


def rename(title: str) -> None:
    """Change the process title the way setproctitle does: over the argument and the environment area.

    Afterwards the kernel shows /proc/PID/environ as NUL bytes only.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(title[:15], encoding="ascii")
    stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    fields = stat.rpartition(")")[2].split()
    # the first field after the name is number 3 of proc(5); 48-51 are arg_start, arg_end, env_start, env_end
    arg_start, arg_end, env_start, env_end = (int(fields[number - 3]) for number in (48, 49, 50, 51))
    shown = title.encode()[: arg_end - arg_start - 1]
    handle = os.open("/proc/self/mem", os.O_RDWR)
    try:
        os.pwrite(handle, shown.ljust(arg_end - arg_start, b"\0"), arg_start)
        os.pwrite(handle, b"\0" * (env_end - env_start), env_start)
    except OSError as error:
        print(f"cannot rename: {error}", file=sys.stderr, flush=True)
    finally:
        os.close(handle)
