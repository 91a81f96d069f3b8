"""Does the unit itself listen on its port, or does somebody else answer there?"""

from __future__ import annotations

from policies.facts import Incarnation, PortOwner
from policies.finding import Finding, Verdict
from policies.gates import Values, failed, passed, undecided


def judge(instance: str, owner: PortOwner | None, now: Incarnation, *, waited_s: float) -> Verdict:
    """Pass only when the listener is in the unit and not older than its main process.

    A foreign owner, or one left over from an earlier life, is a fail, whatever the port answers.
    """
    if owner is None:
        return undecided("gate.port.not-read", {"instance": instance})
    values: Values = {
        "instance": instance,
        "port": owner.port,
        "pid": owner.pid,
        "cgroup": owner.cgroup,
        "main_pid": now.main_pid,
        "waited_s": waited_s,
    }
    if owner.state == "free":
        return failed("gate.port.free", values)
    if owner.state == "hidden":
        return undecided("gate.port.hidden", values)
    if not owner.in_unit:
        return _with_holder(failed("gate.port.foreign", values), instance, owner)
    if now.main_pid != 0 and owner.started is not None and owner.started < now.started:
        return _with_holder(failed("gate.port.older", values), instance, owner)
    return passed("gate.port.owned", values)


def _with_holder(verdict: Verdict, instance: str, owner: PortOwner) -> Verdict:
    """The verdict, with who that is and since when: to be looked at by a person, never ended by us."""
    if owner.since is None or owner.name is None:
        return verdict
    values: Values = {"instance": instance, "port": owner.port, "pid": owner.pid, "name": owner.name}
    values |= {"since": owner.since, "cgroup": owner.cgroup}
    holder = Finding(code="gate.port.holder", effect="note", values=values)
    return verdict.model_copy(update={"findings": (*verdict.findings, holder)})


def taken(owner: PortOwner | None) -> bool:
    """Somebody outside of the unit listens there: the unit cannot, however often it is started."""
    return owner is not None and owner.state == "owned" and not owner.in_unit
