"""The services' own clocks: every life of a service, as its engine wrote it down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

TIMES = {
    "port_bound": "bound",
    "healthy": "healthy",
    "health_answered": "answered",
    "sigterm": "told_to_stop",
    "exit": "ended",
}


@dataclass(frozen=True, slots=True)
class Life:
    """One process of a service. `knob` is the text in its environment, `read` the value it runs with.

    Units: epoch seconds; None: it did not come to that.
    """

    pid: int
    started: float
    knob: str | None
    read: int | None
    bound: float | None = None
    healthy: float | None = None
    answered: float | None = None
    told_to_stop: float | None = None
    ended: float | None = None


def lives(events: Iterable[Mapping[str, JsonValue]]) -> list[Life]:
    """The lives in the order in which they began."""
    found: list[Life] = []
    for event in events:
        pid, at = event["pid"], event["time"]
        if not isinstance(pid, int) or not isinstance(at, (int, float)):
            raise TypeError(f"the clock line {event!r} has no process id or no time")
        if event["event"] == "started":
            knob, read = event.get("knob"), event.get("read")
            found.append(Life(pid, at, None if knob is None else str(knob), read if isinstance(read, int) else None))
            continue
        name = TIMES.get(str(event["event"]))
        index = next((i for i in reversed(range(len(found))) if found[i].pid == pid), None)
        if name is not None and index is not None and getattr(found[index], name) is None:
            found[index] = _with(found[index], name, at)
    return found


def _with(life: Life, name: str, at: float) -> Life:
    times: dict[str, float | None] = {known: getattr(life, known) for known in TIMES.values()}
    return Life(life.pid, life.started, life.knob, life.read, **(times | {name: at}))
