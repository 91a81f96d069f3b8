"""Which process this is, told so that another process of the same machine can see whether it has ended.

A process id alone is not enough: another machine, another container and a later process have the same numbers.
"""

from __future__ import annotations

import os
from pathlib import Path


def own_life() -> str:
    """This process: the machine's boot, the numbering of processes, the id and when it began; "" where unknown."""
    here = _here()
    began = _began(os.getpid())
    return f"{here}/{os.getpid()}/{began}" if here and began else ""


def has_ended(life: str) -> bool:
    """Surely ended, as the kernel says. False for one of another machine or numbering, and whenever it is not sure."""
    here, _, rest = life.rpartition("/")[0].rpartition("/")
    began = life.rpartition("/")[2]
    if not here or here != _here() or not rest.isdecimal():
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there and belongs to somebody else
        return False
    return _began(int(rest)) not in {began, ""}  # the number was given to a later process


def _here() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux: a lease ends by its time alone
        return ""


def _began(pid: int) -> str:
    """Start time in clock ticks after boot; "" when it cannot be read."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
