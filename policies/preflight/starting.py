"""Starts that systemd ends before they are done, and limits that never end a loop of them."""

from __future__ import annotations

from collections.abc import Iterator

from policies.finding import Finding
from policies.preflight.look import Look
from policies.systemd.settings import read

# Source: systemd.service(5): with these types a start lasts until the service itself says that it is ready
WAITING_TYPES = frozenset({"notify", "notify-reload", "forking", "dbus"})
RESTARTING = frozenset({"always", "on-failure", "on-abnormal", "on-abort", "on-watchdog"})
CLOSE = 0.8  # of the limit: a boot that took so much of it once may take more the next time


def check(look: Look) -> Iterator[Finding]:
    """The start limit of time against recorded boots (else the fleet file's), then what a loop would meet."""
    unit, limit_s = look.unit, look.unit.timeout_start_s
    burst, interval_s = unit.start_limit_burst, unit.start_limit_interval_s
    if burst is not None and interval_s and unit.recent_restarts >= burst:
        yield look.finding("plan.start-limit-near", recent=unit.recent_restarts, burst=burst, interval_s=interval_s)
    short = False
    if unit.type in WAITING_TYPES and limit_s is not None:
        if look.boots:
            short = max(look.boots) > limit_s * CLOSE
            if short:
                yield look.finding(
                    "plan.start-timeout-recorded",
                    type=unit.type,
                    timeout_start_s=limit_s,
                    last_s=look.boots[-1],
                    longest_s=max(look.boots),
                    n=len(look.boots),
                )
        elif limit_s < look.service.health.boot_s:
            short = True
            boot_s = look.service.health.boot_s
            yield look.finding("plan.start-timeout-short", type=unit.type, timeout_start_s=limit_s, boot_s=boot_s)
    misplaced = [
        finding
        for finding in read(unit.fragment, unit.dropins, unit.unit).findings
        if finding.code == "unit.limit-in-service"
    ]
    yield from misplaced
    if short or misplaced:
        yield from _endless(look, limit_s if short else None)


def _endless(look: Look, try_s: float | None) -> Iterator[Finding]:
    """Whether so many tries fit into the interval that systemd would stop trying.

    try_s: what a try takes until it is ended; None: it may end at once.
    """
    unit = look.unit
    burst, interval_s = unit.start_limit_burst, unit.start_limit_interval_s
    if unit.restart not in RESTARTING or burst is None:
        return
    each_s = (try_s or 0.0) + (unit.restart_s or 0.0)
    if interval_s and burst * each_s <= interval_s:
        return
    yield look.finding(
        "plan.start-limit-never", restart=unit.restart, burst=burst, interval_s=interval_s, each_s=each_s
    )


def refuse(look: Look) -> Iterator[Finding]:
    """A unit whose last start was ended by the time limit, with a limit that is still below its boot.

    While the next try runs systemd shows no result. Then only recorded boots, all of them longer, speak against it.
    """
    unit, limit_s = look.unit, look.unit.timeout_start_s
    if unit.type not in WAITING_TYPES or limit_s is None or unit.active_state == "active":
        return
    ended = unit.result == "timeout"
    again = (unit.active_state, unit.result) == ("activating", "success") and (unit.n_restarts or 0) > 0 and look.boots
    if ended:
        boot_s = max(look.boots, default=look.service.health.boot_s)
    elif again:
        boot_s = min(look.boots)
    else:
        return
    if limit_s < boot_s:
        yield look.finding(
            "plan.start-timeout-below-boot",
            "refuse",
            timeout_start_s=limit_s,
            boot_s=boot_s,
            n=len(look.boots),
            state=f"{unit.active_state} ({unit.sub_state})",
            result=unit.result,
            restarts=unit.n_restarts,
            status=unit.exec_main_status,
        )
