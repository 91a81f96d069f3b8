"""Contracts: settings that services must have alike, such as the page size of a prefill and a decode engine.

A contract names a knob, or where each service's engine reports the setting, or both. What one side alone would get is
refused before anything is restarted; a mismatch that is there already is told wherever its values are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Contract, Fleet, Knob
from policies.gates.reported import reported_value
from policies.plan import Agreement
from policies.planning.placement import effective_now

Values = dict[str, str | int | float | None]
MOST_NAMED = 6
UNSET = "unset"


def services_of(fleet: Fleet, contract: Contract) -> tuple[str, ...]:
    """The services that have to agree."""
    knob = fleet.knobs.get(contract.knob or "")
    return tuple(dict.fromkeys((*(knob.on if knob is not None else ()), *contract.reported)))


def partners(fleet: Fleet, service: str) -> tuple[str, ...]:
    """The instances of every other service that this one has to agree with."""
    others = [s for c in fleet.contracts.values() if service in (of := services_of(fleet, c)) for s in of]
    return tuple(i for other in dict.fromkeys(others) if other != service for i in fleet.instances(other))


def of_knob(fleet: Fleet, knob: str) -> Contract | None:
    """The contract that says that this knob is alike everywhere."""
    return next((one for one in fleet.contracts.values() if one.knob == knob), None)


def one_sided(
    fleet: Fleet, knob: Knob, value: str | None, instances: Sequence[str], facts: Mapping[str, UnitFacts]
) -> Finding | None:
    """Why a value may not be given to these instances alone; None where everybody who has to agree then agrees."""
    contract = of_knob(fleet, knob.name)
    if contract is None:
        return None
    others = [i for service in knob.on for i in fleet.instances(service) if i not in instances]
    left = {i: effective_now(facts[i], knob.variable(facts[i].service)).value for i in others}
    if all(other == value for other in left.values()):
        return None
    values: Values = {"contract": contract.name, "knob": knob.name, "value": value}
    values |= {"here": _named(dict.fromkeys(instances, value)), "there": _named(left)}
    return Finding(code="contract.one-side", effect="refuse", values=values)


def mismatches(fleet: Fleet, facts: Mapping[str, UnitFacts]) -> tuple[Finding, ...]:
    """Every contract that does not hold among these instances, with what each of them has."""
    found: list[Finding] = []
    for contract in fleet.contracts.values():
        reported, configured = _reported(contract, facts), _set(fleet, contract, facts)
        if _differ(reported):
            found.append(Finding(code="contract.differs-reported", effect="warn", values=_values(contract, reported)))
        elif _differ(configured):
            found.append(Finding(code="contract.differs-set", effect="warn", values=_values(contract, configured)))
    return tuple(found)


def _differ(seen: Mapping[str, str]) -> bool:
    """More than one value, among instances of more than one service."""
    return len(set(seen.values())) > 1 and len({instance.split("@")[0] for instance in seen}) > 1


def _values(contract: Contract, seen: Mapping[str, str]) -> Values:
    return {"contract": contract.name, "found": _named(seen), "instance": next(iter(seen))}


def agreements(
    fleet: Fleet,
    service: str,
    changed: Mapping[str, tuple[str | None, str | None]],
    facts: Mapping[str, UnitFacts],
    knob: str | None = None,
) -> tuple[Agreement, ...]:
    """What the engines of a service must report when they are back, so that contracts hold.

    changed: (value then, value after an undo) by instance, of a knob; for a version neither is known, and what the
    other side reports now is asked for.
    """
    made: list[Agreement] = []
    for contract in fleet.contracts.values():
        path = contract.reported.get(service)
        if path is None or (knob is not None and contract.knob != knob):
            continue
        told = _other_side(contract, service, facts)
        for instance, (then, back) in changed.items():
            wanted, before = (then, back) if knob is not None else (told, told)
            if wanted is not None:
                common = {"contract": contract.name, "instance": instance, "path": path}
                made.append(Agreement.model_validate({**common, "then": wanted, "back": before}))
    return tuple(made)


def unknown(fleet: Fleet, service: str, facts: Mapping[str, UnitFacts]) -> tuple[Finding, ...]:
    """Contracts that a new version cannot be held against: the other side says nothing, or two things."""
    return tuple(
        Finding(code="contract.unknown", effect="warn", values={"contract": one.name, "service": service})
        for one in fleet.contracts.values()
        if service in one.reported and _other_side(one, service, facts) is None
    )


def _other_side(contract: Contract, service: str, facts: Mapping[str, UnitFacts]) -> str | None:
    """What the engines of the other services report, where that is one value."""
    found = {value for i, value in _reported(contract, facts).items() if i.split("@")[0] != service}
    return found.pop() if len(found) == 1 else None


def _reported(contract: Contract, facts: Mapping[str, UnitFacts]) -> dict[str, str]:
    """What the engines say, as far as they say it."""
    found: dict[str, str] = {}
    for instance, unit in facts.items():
        path = contract.reported.get(unit.service)
        info = next((a for a in unit.http if a.id == "server_info" and a.status == 200), None)
        said = reported_value(info.body, path) if path is not None and info is not None else None
        if said is not None:
            found[instance] = said
    return found


def _set(fleet: Fleet, contract: Contract, facts: Mapping[str, UnitFacts]) -> dict[str, str]:
    """What the units would start with."""
    knob = fleet.knobs.get(contract.knob or "")
    if knob is None:
        return {}
    units = {i: unit for i, unit in facts.items() if unit.service in knob.on}
    return {i: effective_now(unit, knob.variable(unit.service)).value or UNSET for i, unit in units.items()}


def _named(values: Mapping[str, str | None]) -> str:
    """`prefill@gpu1 64, decode@gpu1 32`."""
    names = [f"{instance} {UNSET if value is None else value}" for instance, value in values.items()]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
