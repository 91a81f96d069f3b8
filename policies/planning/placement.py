"""Where a value is written on one instance, and whether that place wins.

We write one drop-in of ours and then compute, as systemd would, what the unit starts with. A place that loses to
another one (an EnvironmentFile= beats every Environment=) is refused and named,
never written in hope.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from policies import dropin
from policies.facts import FileText, UnitFacts
from policies.finding import Finding
from policies.plan import Target
from policies.systemd.effective import Effective, effective


@dataclass(frozen=True, slots=True)
class Placement:
    """The drop-in before and after (None: no file), and the target that results."""

    before: str | None
    after: str | None
    target: Target
    findings: tuple[Finding, ...]


def place(facts: UnitFacts, variable: str, value: str | None) -> Placement | Finding:
    """How to give `variable` this `value` (None: take it away) on this unit; or the finding that says why it cannot be.

    The first of the candidate texts whose outcome is as wanted is taken.
    """
    ours = next((d for d in facts.dropins if d.path == facts.dropin_path and d.exists), None)
    if ours is not None and ours.text is None:
        return _refuse("plan.dropin-unreadable", facts, path=facts.dropin_path, why=ours.error)
    before = ours.text if ours else None
    try:
        said = dropin.read_dropin(before)
    except dropin.ForeignDropIn as error:
        return _refuse("plan.dropin-foreign", facts, path=facts.dropin_path, found=str(error))
    now = _with(facts, before, variable)
    if value is not None:
        candidates = [said.with_value(variable, value)]
    elif said.variables.get(variable) is None:
        candidates = [said, said.taking_away(variable)]  # our file as it is may do already
    else:
        candidates = [said.without(variable), said.taking_away(variable)]
    outcomes = [(text := c.render(), _with(facts, text, variable)) for c in candidates]
    for after, then in outcomes:
        if then.value == value and then.certain and then.starts:
            target = Target(
                instance=f"{facts.service}@{facts.host}",
                variable=variable,
                now=now.value,
                now_decided_by=_place(now),
                then=then.value,
                then_decided_by=_place(then),
            )
            return Placement(before, after, target, now.warnings)
    loser = outcomes[-1][1]
    code = "plan.place-loses"
    if loser.value == value:
        code = "plan.place-uncertain" if loser.starts else "plan.would-not-start"
    why = "; ".join(f.code for f in loser.warnings)
    return _refuse(
        code,
        facts,
        variable=variable,
        wanted=value,
        effective=loser.value,
        decided_by=_place(loser),
        path=facts.dropin_path,
        why=why,
    )


def effective_now(facts: UnitFacts, variable: str) -> Effective:
    """What the unit would start with as its files are now."""
    return effective(
        facts.fragment,
        facts.dropins,
        {f.path: f for f in facts.env_files},
        facts.unit,
        variable,
        facts.manager_environment,
    )


def _with(facts: UnitFacts, text: str | None, variable: str) -> Effective:
    """As `effective_now`, with our drop-in's text replaced, where systemd would read it: sorted by file name."""
    others = [d for d in facts.dropins if d.path != facts.dropin_path]
    if text is not None:
        raw = text.encode()
        ours = FileText(
            path=facts.dropin_path,
            exists=True,
            text=text,
            sha256=hashlib.sha256(raw).hexdigest(),
            mode=0o644,
            owner=None,
        )
        at = sum(1 for d in others if d.path.rsplit("/", 1)[-1] <= dropin.NAME)
        others.insert(at, ours)
    return effective_now(facts.model_copy(update={"dropins": tuple(others)}), variable)


def _place(found: Effective) -> str | None:
    return f"{found.decided_by.file}:{found.decided_by.line}" if found.decided_by else None


def _refuse(code: str, facts: UnitFacts, **values: str | None) -> Finding:
    return Finding(code=code, effect="refuse", values={"instance": f"{facts.service}@{facts.host}", **values})
