"""Reads what each replica has when a change stops or ends: hosts at once, and whoever of them is away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from policies.errors import OpsError
from policies.plan import Plan
from policies.standing import Stand, Standing, value_of
from workers.trouble import about_host
from workers.versions import Versions

if TYPE_CHECKING:
    from workers.wiring import Wiring


def replicas_of(wiring: Wiring, plan: Plan) -> tuple[str, ...]:
    """Every instance of the services whose value or version the plan is about, where they have several."""
    services = dict.fromkeys(t.instance.split("@")[0] for t in plan.targets)
    found = (wiring.fleet.instances(service) for service in services if service in wiring.fleet.services)
    return tuple(instance for instances in found if len(instances) > 1 for instance in instances)


def standing(wiring: Wiring, plan: Plan) -> Standing | None:
    """What each of them has now; None where no service of the plan has replicas."""
    instances = replicas_of(wiring, plan)
    if not instances:
        return None
    knob = wiring.fleet.knobs.get(plan.knob) if plan.knob is not None else None
    if knob is None and plan.deploy is None:
        return None
    of: Literal["value", "version"] = "version" if knob is None else "value"
    stands = tuple(
        _stand(wiring, instance, None if knob is None else knob.variable(instance.split("@")[0]))
        for instance in instances
    )
    return Standing(of=of, at=wiring.clock(), stands=stands)


def _stand(wiring: Wiring, instance: str, variable: str | None) -> Stand:
    """A host that cannot be asked says nothing of the others."""
    try:
        return _version(wiring, instance) if variable is None else _value(wiring, instance, variable)
    except OpsError as error:
        if not about_host(error):
            raise
        return Stand(instance=instance, word="unknown", why=error.message)


def _value(wiring: Wiring, instance: str, variable: str) -> Stand:
    return value_of(instance, wiring.hosts.observe([instance], [variable]).units[instance], variable)


def _version(wiring: Wiring, instance: str) -> Stand:
    unit, said = Versions(wiring.fleet, wiring.hosts).of_life(instance)
    if unit.incarnation.main_pid == 0:
        return Stand(instance=instance, word="down")
    if said.text is None:
        return Stand(instance=instance, word="unknown", why=said.error)
    return Stand(instance=instance, word="has", value=said.text)
