"""Somebody else at the unit's port or devices: an orphan of an earlier run is found before it is met."""

from __future__ import annotations

from collections.abc import Iterator

from policies.devices import strangers, told
from policies.finding import Finding
from policies.gates.port import taken
from policies.preflight.look import Look


def check(look: Look) -> Iterator[Finding]:
    """The port first: whoever holds it answers every probe in the unit's stead."""
    unit, owner = look.unit, look.unit.port
    if owner is not None and taken(owner):
        yield look.finding(
            "plan.port-foreign",
            port=owner.port,
            pid=owner.pid,
            name=owner.name,
            since=owner.since,
            cgroup=owner.cgroup,
            main_pid=unit.incarnation.main_pid or None,
        )
    yield from told("plan.device-held", "warn", unit, strangers(look.fleet, unit))
    if unit.devices_unseen and look.service.devices:
        yield look.finding("plan.devices-not-all-seen", n=unit.devices_unseen)
