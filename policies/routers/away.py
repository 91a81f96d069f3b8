"""Which instances a change took out at their routers and did not give back."""

from __future__ import annotations

from collections.abc import Iterable

from policies import events as e

OUT = frozenset({"hold.drain-over", "hold.drain-unknown"})


def away(entries: Iterable[e.Entry]) -> dict[str, str | None]:
    """service@host -> the routers that send nothing there, None where a drain was begun and its end is not known."""
    out: dict[str, str | None] = {}
    for event in (entry.event for entry in entries):
        if isinstance(event, e.StepStarted) and event.step == "drain":
            out.setdefault(event.instance, None)
        elif isinstance(event, e.Held):
            for found in event.findings:  # held at the end of a drain, which took it out
                if found.code in OUT and isinstance(found.values["routers"], str):
                    out[str(found.values["instance"])] = found.values["routers"]
        elif isinstance(event, e.StepDone) and event.step == "drain":
            routers = dict.fromkeys(taken.router for taken in event.found if taken.found is not None)
            out.pop(event.instance, None)
            if routers:
                out[event.instance] = ", ".join(routers)
        elif isinstance(event, e.StepDone) and event.step == "admit":
            out.pop(event.instance, None)
    return out
