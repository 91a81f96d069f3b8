"""What is different between the plan that was approved and the plan that would be made now."""

from __future__ import annotations

from collections.abc import Mapping

from policies.facts import Incarnation, UnitFacts
from policies.finding import Finding
from policies.plan import Plan, RestartStep, Step
from policies.planning.steps import files

NOBODY = Incarnation(main_pid=0, started=0, invocation_id="")


def differences(approved: Plan, now: Plan) -> tuple[Finding, ...]:
    """One finding for each file, incarnation, value or policy result that moved; never empty when digests differ."""
    found = [*_files(approved, now), *_lives(approved, now), *_targets(approved, now)]
    if approved.fleet_sha256 != now.fleet_sha256:
        found.append(_note("replan.fleet-file", before=approved.fleet_sha256[:12], now=now.fleet_sha256[:12]))
    if approved.policy != now.policy:
        codes = {f.code for f in approved.policy} ^ {f.code for f in now.policy}
        found.append(_note("replan.policy", codes=", ".join(sorted(codes)) or "values"))
    if not found:
        found.append(_note("replan.steps", before=approved.digest[:12], now=now.digest[:12]))
    return tuple(found)


def rebased(approved: Plan, now: Plan, left: Mapping[str, tuple[str, Incarnation]]) -> tuple[Finding, ...] | None:
    """One finding for each process that is another one, where changes of ours account for all of them and all else is
    as it was approved; else None.

    left: by instance, the change that restarted it last and the process that it left healthy.
    """
    if _without_lives(approved) != _without_lives(now):
        return None
    before, after, found = dict(approved.incarnations), dict(now.incarnations), []
    for instance, life in after.items():
        if before.get(instance) == life:
            continue
        change, ours = left.get(instance, (None, None))
        was = before.get(instance)
        if ours != life or was is None:
            return None
        values: dict[str, str | int | float | None] = {"instance": instance, "change": change}
        values |= {"was": was.main_pid, "pid": life.main_pid}
        found.append(Finding(code="rebase.restarted", effect="note", values=values))
    return tuple(found) or None


def _without_lives(plan: Plan) -> str:
    """What an approver agrees to, whichever processes run."""

    def bare(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(s.model_copy(update={"before": NOBODY}) if isinstance(s, RestartStep) else s for s in steps)

    update = {"steps": bare(plan.steps), "undo": bare(plan.undo), "incarnations": ()}
    return plan.model_copy(update=update).digest


def _note(code: str, **values: str | int | None) -> Finding:
    return Finding(code=code, effect="refuse", values=dict(values))


def _files(approved: Plan, now: Plan) -> list[Finding]:
    before = {(f.host, f.path): f for f in approved.files}
    after = {(f.host, f.path): f for f in now.files}
    return [
        _note("replan.file", host=key[0], path=key[1])
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
    ]


def _lives(approved: Plan, now: Plan) -> list[Finding]:
    after = dict(now.incarnations)
    found: list[Finding] = []
    for instance, life in approved.incarnations:
        other = after.get(instance)
        if other != life:
            pid = other.main_pid if other else None
            found.append(_note("replan.incarnation", instance=instance, planned_pid=life.main_pid, pid=pid))
    return found


def _targets(approved: Plan, now: Plan) -> list[Finding]:
    after = {t.instance: t for t in now.targets}
    return [
        _note(
            "replan.value",
            instance=t.instance,
            before=t.now,
            now=other.now if (other := after.get(t.instance)) else None,
        )
        for t in approved.targets
        if after.get(t.instance) != t
    ]


def moved_files(plan: Plan, unit: UnitFacts) -> tuple[str, ...]:
    """Files of a unit that are not as they were planned; our own drop-in is left out, it is the plan's own work."""
    planned = {f.path: f for f in plan.files if f.host == unit.host}
    now = {f.path: f for f in files(("this",), {"this": unit})}
    gone = [path for path in planned if f"/{unit.unit}.d/" in path and path not in now]
    moved = [path for path, state in now.items() if planned.get(path) != state]
    return tuple(path for path in (*moved, *gone) if path != unit.dropin_path)
