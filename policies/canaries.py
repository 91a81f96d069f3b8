"""Judges the replica that went first: its life and its failure counters, then the conditions that the fleet file names.

A condition without data is not known and is never a pass; one that does not hold is a failure of this change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.statement import Metric, Statement, metrics_of
from policies.causes.truth import citations_of, truth_of
from policies.causes.window import Window
from policies.change import Change
from policies.citation import Citation
from policies.events import CanaryFailed, CanaryPassed, Required
from policies.finding import Finding, Verdict
from policies.plan import CanaryWatch, Plan

Values = dict[str, str | int | float | None]


def watches_of(plan: Plan) -> tuple[CanaryWatch, ...]:
    """The canaries of a plan that are to be watched or judged by more than their gates."""
    found = (rolling.canary for rolling in plan.rolling)
    return tuple(one for one in found if one is not None and (one.watch_s > 0 or one.require))


def watches_due(change: Change, index: int | None) -> tuple[CanaryWatch, ...]:
    """The canaries that are judged now: the first wave is through and nothing of the next one was begun.

    index: of the step that comes next, None where none is left.
    """
    if change.plan is None or change.undoing or change.canary_passed or change.abort is not None:
        return ()
    if index is not None and change.plan.steps[index].wave == 1:
        return ()
    return watches_of(change.plan)


def conditions_of(watch: CanaryWatch) -> dict[str, Statement | Malformed]:
    """Each condition as it is written, read."""
    return {text: read_statement(text) for text in watch.require}


def metrics_asked(watch: CanaryWatch) -> tuple[Metric, ...]:
    """What must be read on the instance."""
    read = (one for one in conditions_of(watch).values() if not isinstance(one, Malformed))
    return tuple(dict.fromkeys(metric for statement in read for metric in metrics_of(statement)))


def required(watch: CanaryWatch, window: Window) -> tuple[Required, ...]:
    """Each condition, judged on what was read of the instance at the end of the watch."""
    return tuple(_required(watch, text, read, window) for text, read in conditions_of(watch).items())


def _required(watch: CanaryWatch, text: str, read: Statement | Malformed, window: Window) -> Required:
    if isinstance(read, Malformed):
        values: Values = {"condition": text, "problem": read.message}
        why = Finding(code="canary.malformed", effect="note", values=values)
        return Required(instance=watch.instance, condition=text, word="unknown", n=0, why=(why,))
    truth = truth_of(read, window)
    found = [window.of(metric) for metric in metrics_of(read)]
    counts = [len(window.within(one)) if one is not None else 0 for one in found]
    return Required(
        instance=watch.instance,
        condition=text,
        word=truth.word,
        n=min(counts, default=0),
        citations=citations_of(read, window),
        why=truth.why,
    )


def judge(against: Sequence[Finding], missed: Finding | None, judged: Sequence[Required]) -> Verdict:
    """against: what the watch found against the change; missed: its last look failed."""
    failing = [_not_held(one) for one in judged if one.word == "fails"]
    if against or failing:
        return Verdict(answer="fail", findings=(*against, *failing))
    unknown = [finding for one in judged if one.word == "unknown" for finding in (_not_known(one), *one.why)]
    if missed is not None or unknown:
        return Verdict(answer="inconclusive", findings=(*([missed] if missed is not None else []), *unknown))
    return Verdict(answer="pass", findings=())


def ended(
    instances: tuple[str, ...], verdict: Verdict, judged: tuple[Required, ...], watched: tuple[Finding, ...]
) -> CanaryPassed | CanaryFailed:
    """The event that ends the watch."""
    if verdict.answer == "pass":
        return CanaryPassed(instances=instances, findings=watched, required=judged)
    return CanaryFailed(instances=instances, verdict=verdict, required=judged)


def read_as(citations: Sequence[Citation]) -> str:
    """The readings of a condition, the newest of each query: `ttft_s 0.8 s, queue_reqs 3 requests`."""
    newest: Mapping[str, Citation] = {one.name or one.query: one for one in citations}
    return ", ".join(f"{name} {_number(one)} {one.unit}".rstrip() for name, one in newest.items())


def _number(citation: Citation) -> str:
    beyond = "more than " if citation.beyond else ""
    most = f" to {citation.most:.4g}" if citation.most is not None else ""
    return f"{beyond}{citation.value:.4g}{most}"


def _values(one: Required) -> Values:
    return {"instance": one.instance, "condition": one.condition, "n": one.n, "read": read_as(one.citations) or None}


def _not_held(one: Required) -> Finding:
    return Finding(code="canary.not-held", effect="refuse", values=_values(one))


def _not_known(one: Required) -> Finding:
    return Finding(code="canary.not-known", effect="refuse", values=_values(one))
