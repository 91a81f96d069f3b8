"""What a drain will meet at a router, found before anything is touched."""

from __future__ import annotations

from collections.abc import Sequence

from policies.finding import Finding
from policies.plan import DrainStep, Registration
from policies.routers.listed import Listed, differs, is_ranked, matching

Values = dict[str, str | int | float | None]


def foreseen(at: Registration, together: Sequence[DrainStep], listed: tuple[Listed, ...] | Finding) -> list[Finding]:
    """About the drains of one wave at one router; `at` is its registration of any of them.

    A router that cannot be asked now may be there later; one that wants a key, or that lists the ranks of a data
    parallel worker, cannot be worked with: by the id of a rank it removes nobody (sglang-router 0.3.2).
    """
    if isinstance(listed, Finding):
        effect = "refuse" if listed.code == "router.forbidden" else "warn"
        return [listed.model_copy(update={"effect": effect})]
    found: list[Finding] = []
    away: list[Listed] = []
    for step in together:
        for one in (one for one in step.at if one.router == at.router):
            mine = matching(listed, one.worker)
            away += mine
            found += _about(step, one, mine)
    kinds = {one.kind for one in away}
    left = {kind: [o for o in listed if o.kind == kind and o.healthy and o not in away] for kind in kinds}
    names = ", ".join(f"{step.service}@{step.host}" for step in together)
    for kind in sorted(kinds):
        if not left[kind]:
            values: Values = {"instances": names, "router": at.router, "kind": kind}
            found.append(Finding(code="plan.last-worker", effect="warn", values=values))
    return found


def _about(step: DrainStep, at: Registration, mine: tuple[Listed, ...]) -> list[Finding]:
    values: Values = {"instance": f"{step.service}@{step.host}", "router": at.router, "worker": at.worker}
    if not mine:
        return [Finding(code="plan.not-registered", effect="warn", values=values)]
    if any(is_ranked(one.url) for one in mine):
        return [Finding(code="plan.ranked-worker", effect="refuse", values=values)]
    other = "; ".join(dict.fromkeys(text for one in mine for text in differs(at, one)))
    if not other:
        return []
    return [Finding(code="plan.as-registered", effect="note", values={**values, "differs": other})]
