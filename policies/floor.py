"""The floor: how many other instances of a service must serve while some of them are away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.facts import UnitFacts
from policies.finding import Finding
from policies.gates.port import taken
from policies.plan import Rolling

Values = dict[str, str | int | float | None]


def out_of_service(instance: str, unit: UnitFacts) -> Finding | None:
    """Why an instance does not serve, as one look at it tells; None when it does."""
    if unit.active_state != "active" or unit.incarnation.main_pid == 0:
        values: Values = {"instance": instance, "state": f"{unit.active_state} ({unit.sub_state})"}
        return Finding(code="floor.not-active", effect="note", values=values)
    answer = next((a for a in unit.http if a.id == "health"), None)
    if answer is None or answer.status != 200 or taken(unit.port):
        values = {"instance": instance, "status": answer.status if answer is not None else None}
        values["error"] = "somebody else has its port" if taken(unit.port) else answer.error if answer else None
        return Finding(code="floor.not-healthy", effect="note", values=values)
    return None


def below(
    rolling: Rolling, away: Sequence[str], others: Mapping[str, Finding | None], mine: Mapping[str, Finding | None]
) -> tuple[Finding, ...]:
    """Why `away` may not be taken out of service now: the count, then who does not serve and why; empty when it may.

    others, mine: by instance, why it does not serve; None: it does. Where none of `away` serves, nothing is taken away.
    """
    serving = [instance for instance, why in others.items() if why is None]
    if len(serving) >= rolling.keep or all(why is not None for why in mine.values()):
        return ()
    values: Values = {
        "service": rolling.service,
        "away": ", ".join(away),
        "keep": rolling.keep,
        "serving": len(serving),
        "others": len(others),
        "which": ", ".join(serving),
    }
    found = Finding(code="hold.floor", effect="refuse", values=values)
    return (found, *(why for why in others.values() if why is not None))
