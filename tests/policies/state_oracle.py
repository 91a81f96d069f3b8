"""A second opinion on states, by trying everything that is not known; nothing of the product is used.

A look is a dict: time, start (None: not told), counters {name: value}, own and router {name: value}; a value None is
not known. The words come from one world at a time, in which everything is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

SOME = (0, 1, 37, 40)
Look = dict[str, Any]


def possible(before: Look | None, now: Look) -> set[str]:
    """Every state that some completion of the readings allows."""
    if before is None or before["time"] >= now["time"] or began_anew(before, now):
        return {word for world in worlds(now) for word in at_once(world)}
    return {word for a in worlds(before) for b in worlds(now) for word in between(a, b)}


def began_anew(before: Look, now: Look) -> bool:
    """Another process answers."""
    if before["start"] is not None and now["start"] is not None and before["start"] != now["start"]:
        return True
    return any(now["counters"].get(name, old) < old for name, old in before["counters"].items())


def worlds(look: Look) -> Iterator[Look]:
    """The look with every unknown reading filled in."""
    for own in filled(look["own"]):
        for router in filled(look["router"]):
            yield {**look, "own": own, "router": router}


def filled(readings: dict[str, int | None]) -> Iterator[dict[str, int]]:
    """All ways to fill in what is unknown."""
    names = list(readings)
    for values in product(*(SOME if (known := readings[name]) is None else (known,) for name in names)):
        yield dict(zip(names, values, strict=True))


def at_once(world: Look) -> set[str]:
    """One look: work excludes idle, and no work anywhere excludes what needs some."""
    if any(world["own"].values()):
        return {"busy", "hung", "saturated"}
    return {"idle", "busy"} if not any(world["router"].values()) else {"idle", "busy", "hung", "saturated"}


def between(before: Look, now: Look) -> set[str]:
    """Two looks at one process."""
    gap = now["time"] - before["time"]
    shared = [name for name in now["counters"] if name in before["counters"]]
    gained = any(now["counters"][name] > before["counters"].get(name, 0) for name in now["counters"])
    work = [bool(any(look["own"].values())) for look in (before, now)]
    working = {"busy", "hung", "saturated"}
    if gained:
        was, is_ = before["own"]["queued"], now["own"]["queued"]
        return {"saturated"} if was and is_ and is_ >= was else {"busy"}
    same_process = None not in {before["start"], now["start"]} or any(now["counters"][name] for name in shared)
    if not shared or not same_process:
        return working if work[1] else {"idle", *working}
    if work == [True, True]:
        return {"hung"} if gap >= 30 else working
    if work[1]:
        return working
    if work[0] or any(look["router"][name] for look in (before, now) for name in look["router"]):
        return {"idle", "hung"}
    return {"idle"} if gap >= 1 else {"idle", "busy"}
