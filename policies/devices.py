"""Who holds a device that a service declares: somebody else before a restart, and what was left over after one."""

from __future__ import annotations

from policies.facts import DeviceHolder, UnitFacts
from policies.finding import Effect, Finding
from policies.fleet import Fleet

# Keep a GPU's device file open for as long as the machine runs and none of its memory for a model.
# Names as the kernel cuts them, at 15 characters.
KEEPERS = frozenset({"nvidia-persiste", "nv-hostengine", "dcgm-exporter", "nvidia-smi", "nvidia_gpu_expo", "nvtop"})
MOST = 4  # holders named at once


def strangers(fleet: Fleet, unit: UnitFacts) -> tuple[DeviceHolder, ...]:
    """Holders outside of the unit, without those that belong there.

    Those are the keepers of the driver, and other services of the fleet that declare the same device.
    """
    sharers = [
        (path, f"/{other.unit}")
        for other in fleet.services.values()
        if other.unit != unit.unit and unit.host in other.on
        for path in other.devices
    ]
    return tuple(
        holder
        for holder in unit.device_holders
        if not holder.in_unit
        and holder.name not in KEEPERS
        and not any(path == holder.path and _within(holder.cgroup, name) for path, name in sharers)
    )


def _within(cgroup: str | None, unit: str) -> bool:
    return cgroup is not None and (cgroup.endswith(unit) or f"{unit}/" in cgroup)


def left_over(fleet: Fleet, unit: UnitFacts) -> tuple[DeviceHolder, ...]:
    """Holders that are not of the life that runs: strangers, and processes of the unit older than its main process."""
    older = (h for h in unit.device_holders if h.in_unit and h.started < unit.incarnation.started)
    return (*strangers(fleet, unit), *older)


def told(code: str, effect: Effect, unit: UnitFacts, holders: tuple[DeviceHolder, ...]) -> tuple[Finding, ...]:
    """A finding for each holder, the oldest first; with several devices of one process each process once."""
    first: dict[int, DeviceHolder] = {}
    for holder in sorted(holders, key=lambda h: (h.started, h.pid, h.path)):
        first.setdefault(holder.pid, holder)
    return tuple(
        Finding(
            code=code,
            effect=effect,
            values={
                "instance": f"{unit.service}@{unit.host}",
                "device": ", ".join(h.path for h in holders if h.pid == holder.pid),
                "pid": holder.pid,
                "name": holder.name,
                "since": holder.since,
                "cgroup": holder.cgroup,
            },
        )
        for holder in list(first.values())[:MOST]
    )
