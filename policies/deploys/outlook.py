"""Where a rollback would go after a deploy, and whether it could: found before the deploy starts, not afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.deploys.history import Deployment, Standing, good
from policies.deploys.seen import Seen
from policies.deploys.strategy import CommandLine, Releases, Strategy
from policies.finding import Finding

MOST_CANDIDATES = 2  # proven versions that are looked at on the hosts
Values = dict[str, str | int | float | None]


def candidates(history: Sequence[Deployment], ref: str) -> list[Standing]:
    """The proven versions that a rollback from `ref` could go to, the likeliest first."""
    return good(history, {ref})[:MOST_CANDIDATES]


def outlook(strategy: Strategy, found: Sequence[Standing], seen: Mapping[str, Seen]) -> tuple[Finding, ...]:
    """What a rollback would go to, and what stands in its way on which host."""
    if not found:
        return (Finding(code="deploy.rollback-none", effect="warn", values={}),)
    told: list[Finding] = []
    for one in found:
        values: Values = {"ref": one.ref, "change": one.change, "proven_at": one.at}
        trouble = [(i, said) for i, what in seen.items() if (said := why_not(strategy, what, one.ref)) is not None]
        if not trouble:
            return (*told, Finding(code="deploy.rollback-to", effect="note", values=values))
        instance, said = trouble[0]
        told.append(
            Finding(code="deploy.rollback-broken", effect="warn", values={**values, "instance": instance, "why": said})
        )
    return tuple(told)


def why_not(strategy: Strategy, seen: Seen, ref: str) -> str | None:
    """Why a version could not be brought to one instance, as a word of ours; None where nothing speaks against it."""
    if isinstance(strategy, Releases):
        found = seen.of(ref)
        if found is None:
            return "not looked at"
        if not found.exists:
            return "its release is not there"
        if found.error is not None:
            return found.error
        broken = found.missing + found.differing
        return f"{broken} of its {found.files} files are not as its manifest says" if broken else None
    if isinstance(strategy, CommandLine) and strategy.check:
        answer = seen.checks.get(ref)
        return "not asked" if answer is None else answer.error
    return None
