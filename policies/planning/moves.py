"""What a deploy does to one instance before its restart, and what its undo does: one function a strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from policies.deploys.goal import DeployGoal
from policies.deploys.seen import ReleasesSeen, Seen, Verified
from policies.deploys.strategy import CommandLine, Releases, Variable, filled
from policies.facts import UnitFacts
from policies.finding import Effect, Finding
from policies.plan import CommandStep, FileState, GateKind, Step, SwitchStep, Target, VersionAim
from policies.planning.placement import Placement, place
from policies.planning.steps import write

MOST_THERE = 5
Values = dict[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class Move:
    """Steps before the restart of one instance. `undo` None: what is done cannot be undone.

    settled: it has the version already, in its files and as it is read back. manifest: the file that lists the release.
    """

    target: Target
    version: VersionAim
    do: tuple[Step, ...]
    undo: tuple[Step, ...] | None
    gates: tuple[GateKind, ...]
    undo_gates: tuple[GateKind, ...]
    settled: bool
    manifest: FileState | None = None
    findings: tuple[Finding, ...] = ()


def move(goal: DeployGoal, unit: UnitFacts, seen: Seen) -> Move | list[Finding]:
    """How one instance gets the version; or every reason why it cannot."""
    strategy = goal.entry.strategy
    match strategy:
        case Releases():
            return _switched(goal, strategy, unit, seen)
        case Variable():
            return _written(goal, strategy, unit, seen)
        case CommandLine():
            return _commanded(goal, strategy, unit, seen)
        case _:
            assert_never(strategy)


def _aim(goal: DeployGoal, seen: Seen, *, same: bool) -> VersionAim:
    """What must be read back: after the change, and after an undo what was read before it.

    same: nothing but the restart is done, so that an undo brings back nothing else.
    """
    source = goal.entry.version
    then = source.of(goal.ref) or goal.ref
    back = then if same else seen.version.text
    if back is None and seen.now is not None:
        back = source.of(seen.now)
    return VersionAim(instance=seen.instance, now=seen.version.text, then=then, back=back)


def _finding(code: str, effect: Effect, seen: Seen, **values: str | int | None) -> Finding:
    return Finding(code=code, effect=effect, values={"instance": seen.instance, **values})


def _read_back(goal: DeployGoal, seen: Seen) -> list[Finding]:
    """What is odd about the version that runs now."""
    source, said = goal.entry.version, seen.version
    if said.text is None:
        return [_finding("deploy.version-unread", "warn", seen, source=said.source, error=said.error)]
    expected = source.of(seen.now) if seen.now is not None else None
    if expected is not None and said.text != expected:
        return [_finding("deploy.version-differs", "warn", seen, version=said.text, expected=expected, ref=seen.now)]
    return []


def _undo_gates(gates: tuple[GateKind, ...], aim: VersionAim) -> tuple[GateKind, ...]:
    return gates if aim.back is not None else tuple(gate for gate in gates if gate != "version")


def _switched(goal: DeployGoal, strategy: Releases, unit: UnitFacts, seen: Seen) -> Move | list[Finding]:
    there = seen.releases
    if there is None:
        return [_finding("deploy.no-releases", "refuse", seen, path=strategy.path)]
    found = there.of(goal.ref)
    refusals = _not_whole(goal, strategy, seen, there, found)
    link = there.link
    if link.state in {"not-a-link", "outside"}:
        refusals.append(_finding("deploy.link-foreign", "refuse", seen, path=strategy.link, target=link.target))
    if refusals or found is None:
        return refusals
    same = link.release == goal.ref
    aim = _aim(goal, seen, same=same)
    name = {"host": unit.host, "service": unit.service, "unit": unit.unit}
    step = SwitchStep(
        **name, releases=strategy, before=link.release, to=goal.ref, manifest_sha256=found.manifest_sha256
    )
    back = SwitchStep(**name, releases=strategy, before=goal.ref, to=link.release, manifest_sha256=None)
    can_go_back = link.release is not None and link.exists
    manifest = FileState(
        host=unit.host,
        path=f"{strategy.place(goal.ref)}/{strategy.manifest}",
        sha256=found.manifest_sha256,
        mode=None,
    )
    gates: tuple[GateKind, ...] = ("version",)
    stands = {one.release for one in there.runs if one.main}
    return Move(
        target=_target(seen, strategy.link, goal.ref),
        version=aim,
        do=() if same else (step,),
        undo=(() if same else (back,)) if can_go_back else None,
        gates=gates,
        undo_gates=_undo_gates(gates, aim),
        settled=same and seen.version.text == aim.then and stands <= {goal.ref},
        manifest=manifest,
        findings=(
            *_about_releases(goal, strategy, unit, seen, found, can_go_back=can_go_back),
            *_read_back(goal, seen),
        ),
    )


def _not_whole(
    goal: DeployGoal, strategy: Releases, seen: Seen, there: ReleasesSeen, found: Verified | None
) -> list[Finding]:
    if found is None or not found.exists:
        names = ", ".join(one.name for one in there.releases[:MOST_THERE]) or None
        return [
            _finding(
                "deploy.release-missing", "refuse", seen, ref=goal.ref, place=strategy.place(goal.ref), there=names
            )
        ]
    if found.error is not None:
        return [_finding("deploy.manifest-unusable", "refuse", seen, ref=goal.ref, error=found.error)]
    if not found.whole:
        told = ", ".join(found.names)
        counts = {"missing": found.missing, "differing": found.differing, "files": found.files}
        return [_finding("deploy.release-broken", "refuse", seen, ref=goal.ref, **counts, names=told)]
    return []


def _about_releases(
    goal: DeployGoal, strategy: Releases, unit: UnitFacts, seen: Seen, found: Verified, *, can_go_back: bool
) -> list[Finding]:
    told: list[Finding] = []
    texts = [unit.fragment.text, *(d.text for d in unit.dropins), *(f.text for f in unit.env_files)]
    if not any(strategy.link in text for text in texts if text is not None):
        told.append(_finding("deploy.link-not-used", "warn", seen, path=strategy.link, unit=unit.unit))
    file = goal.entry.version.file
    if file is not None and file.startswith(f"{strategy.path}/"):
        told.append(_finding("deploy.version-on-disk", "warn", seen, path=file))
    if found.extra:
        told.append(_finding("deploy.extra-files", "note", seen, ref=goal.ref, n=found.extra))
    if not can_go_back:
        told.append(_finding("deploy.no-way-back", "warn", seen, ref=seen.now))
    return told


def _written(goal: DeployGoal, strategy: Variable, unit: UnitFacts, seen: Seen) -> Move | list[Finding]:
    found = place(unit, strategy.env, goal.ref)
    if isinstance(found, Finding):
        return [found]
    same = found.target.now == goal.ref
    aim = _aim(goal, seen, same=same)
    changes = found.before != found.after and not same
    back = Placement(found.after, found.before, found.target, ())
    main = next((p for p in unit.processes if p.main and p.variable == strategy.env), None)
    lives = main is not None and (main.answer, main.value) == ("present", goal.ref)
    gates: tuple[GateKind, ...] = ("environment", "version")
    return Move(
        target=found.target,
        version=aim,
        do=(write(unit, found),) if changes else (),
        undo=(write(unit, back),) if changes else (),
        gates=gates,
        undo_gates=_undo_gates(gates, aim),
        settled=same and lives and seen.version.text == aim.then,
        findings=(*found.findings, *_read_back(goal, seen)),
    )


def _commanded(goal: DeployGoal, strategy: CommandLine, unit: UnitFacts, seen: Seen) -> Move | list[Finding]:
    checked = seen.checks.get(goal.ref)
    if strategy.check and (checked is None or checked.error is not None):
        said = checked.error if checked is not None else None
        return [_finding("deploy.check-failed", "refuse", seen, ref=goal.ref, error=said)]
    settled = seen.version.text == (goal.entry.version.of(goal.ref) or goal.ref)
    aim = _aim(goal, seen, same=settled)
    name = {"host": unit.host, "service": unit.service, "unit": unit.unit}
    limits = {"user": strategy.user, "limit_s": strategy.timeout_s}
    step = CommandStep(**name, ref=goal.ref, argv=filled(strategy.argv, goal.ref), **limits)
    undo: tuple[Step, ...] | None = None
    if strategy.undo and (seen.now is not None or filled(strategy.undo, "") == strategy.undo):
        argv = filled(strategy.undo, seen.now or "")
        undo = (CommandStep(**name, ref=seen.now or "", argv=argv, **limits),)
    told = [] if undo is not None else [_finding("deploy.no-way-back", "warn", seen, ref=seen.now)]
    gates: tuple[GateKind, ...] = ("version",)
    return Move(
        target=_target(seen, "version", goal.ref),
        version=aim,
        do=() if settled else (step,),
        undo=() if settled else undo,
        gates=gates,
        undo_gates=_undo_gates(gates, aim),
        settled=settled,
        findings=(*told, *_read_back(goal, seen)),
    )


def _target(seen: Seen, variable: str, ref: str) -> Target:
    """Where no line of a file decides: the link, or whatever the command does."""
    by = variable if variable.startswith("/") else None
    return Target(
        instance=seen.instance, variable=variable, now=seen.now, now_decided_by=by, then=ref, then_decided_by=by
    )
