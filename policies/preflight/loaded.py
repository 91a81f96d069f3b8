"""Files that systemd has not read yet: what is on the disk is not what a restart starts."""

from __future__ import annotations

from collections.abc import Iterator

from policies.finding import Finding
from policies.preflight.look import Look


def check(look: Look) -> Iterator[Finding]:
    """NeedDaemonReload, and drop-ins that the manager does not know.

    Source: FACTS-serving 4.1, NeedDaemonReload stays `no` when a unit's first drop-in folder appears (systemd 252).
    """
    unit = look.unit
    known = set(unit.loaded_dropins)
    missed = [d.path for d in unit.dropins if d.text and d.path not in known]
    if missed:
        yield look.finding("plan.dropin-not-loaded", files=", ".join(missed))
    elif unit.need_daemon_reload:
        yield look.finding("plan.not-reloaded", path=unit.fragment.path)
