"""The claim that a change did it, judged on three times: before, while it was in force, and after it went."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policies.blame import Blame, if_guilty
from policies.causes.claim import Claim, catalogue, metrics_needed
from policies.causes.judge import judge
from policies.causes.last_change import Blamed, judge_change
from policies.causes.named_change import LAST, change_id
from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.statement import Statement, metrics_of
from policies.causes.verdict import Verdict
from policies.causes.window import Window
from policies.change import Change
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import RevertKnob, Rollback
from policies.metrics.promql import Query, compile_query
from policies.statement import Judgement, Times
from workers.courses import Course, Courses
from workers.measuring import Measuring

if TYPE_CHECKING:
    from workers.wiring import Wiring

GAP_S = 1.0
BASELINE_S = 600.0
AGAIN_S = 60.0  # that the old state is looked at, once it is there again, and a look more
LOOK_S = 30.0
RANGE = re.compile(r"\[([0-9]+)([smhd])")
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
SETTLE_S = 5.0  # what is measured earlier is of the restart


@dataclass(frozen=True, slots=True)
class Three:
    """The times on which a change is judged; None: there is none (yet)."""

    after: Times | None
    before: Times | None
    again: Times | None


class BlamedChanges:
    """Of one fleet. Raises everywhere: StoreUnavailable; NotFound for a change that is not recorded."""

    def __init__(self, wiring: Wiring, measuring: Measuring) -> None:
        self._w = wiring
        self._m = measuring
        self._courses = Courses(wiring)

    def named(self, claim: Claim, about: Change | None, without: Collection[str] = ()) -> Claim:
        """The claim with the change that is meant.

        The last change of a thread is the one that is told there; of one that takes something back, the one before.
        without: is not meant.
        """
        meant = claim.change
        if meant == LAST:
            if about is not None and not _takes_back(about):
                meant = about.id
            else:
                before = about.started_at or about.asked_at if about is not None else self._w.clock()
                meant = self._courses.last(before, (*without, *(() if about is None else (about.id,))))
        if meant is None:
            return replace(claim, change=None)
        change = self._w.ledger.load(meant)
        return replace(claim, change=change.id, name=change.id, about=f"the change {change.id}")

    def _must(self, change: Change) -> Statement | None:
        """What would be seen if the knob that a change altered did it."""
        plan = change.plan
        knob = self._w.fleet.knobs.get(plan.knob or "") if plan is not None else None
        return if_guilty(knob) if knob is not None else None

    def judged(self, claim: Claim, services: Sequence[str], seen: Times | None = None) -> Judgement:
        """The judgement on a claim that names its change. seen: when the effect was looked at; else it is found out."""
        change = self._w.ledger.load(claim.change or "")
        course = self._courses.of(change)
        if course is None:
            done = "claim.change-did-nothing" if change.ended else "claim.change-not-over"
            return self._unmeasured(claim, change, done)
        back_s = self.back_s(claim.needs)
        three = self._three(course, seen, back_s)
        rivals = catalogue(self._w.fleet)
        must = self._must(change)
        needed = metrics_needed(Claim(claim.needs, must), rivals)
        after, before, again = (
            self._m.window(times, needed, services) if times is not None else None
            for times in (three.after, three.before, three.again)
        )
        if after is None:  # what the effect is read from still holds what was before the change
            return self._unmeasured(claim, change, "claim.change-not-over")
        now = max(self._w.clock(), *(window.end for window in (after, again) if window is not None))
        blamed = Blamed(
            change.id, claim.needs, after, before, again, self._others(course, three), self._m.points(), rivals, must
        )
        verdict = judge_change(blamed, now)
        others = tuple(judge(rival, after, before, rivals, now) for rival in rivals)
        return Judgement(
            at=now,
            effect=_times(after),
            baseline=_times(before) if before is not None else None,
            again=_times(again) if again is not None else None,
            verdict=verdict,
            others=tuple(one for one in others if one.word in {"verified", "consistent"}),
            state=after.state,
            load=self._m.load(after),
        )

    def back_s(self, effect: Statement | None) -> float:
        """How far before its moment a reading of an effect begins: 45 for `rate(...[45s]) > 1`."""
        known = self._w.fleet.metrics
        queries = [known[m.text].query if m.text in known else m.text for m in (metrics_of(effect) if effect else ())]
        return max((range_of(query) for query in queries), default=0.0)

    def claim_about(self, change: Change) -> Claim | None:
        """That a change did it; of one that takes another back, that the other one did. None: it changed nothing."""
        plan = change.plan
        if not change.started_at or plan is None or (plan.knob is None and plan.deploy is None):
            return None
        if not _takes_back(change):
            return self.named(Claim(None, change=change.id), None)
        course = self._courses.takes_back(change)
        blame = change.planned.blame if change.planned is not None else None
        effect = effect_of_blame(blame) if blame is not None else None
        return self.named(Claim(effect, change=course.change.id), None) if course is not None else None

    def told_at(self, blamed: str, of: str | None) -> str:
        """The change whose thread it belongs to: the revert that took the blamed one back, else what was named."""
        course = self._courses.of(self._w.ledger.load(blamed))
        later = self._w.ledger.load(course.undone_by) if course is not None and course.undone_by is not None else None
        return later.id if later is not None and _takes_back(later) else of or blamed

    def course(self, change: Change) -> Course | None:
        """What became of a change."""
        return self._courses.of(change)

    def _three(self, course: Course, seen: Times | None, back_s: float) -> Three:
        clock = self._w.clock
        if seen is None:
            seen = self._seen(course)
        after = Times(start=max(seen.start, course.since + back_s), end=seen.end)
        end = course.began - GAP_S
        quiet = self._courses.quiet_since(end, {course.change.id})
        before = Times(start=max(end - BASELINE_S, quiet), end=end)
        again = None
        if course.gone is not None and clock() >= (start := course.gone + SETTLE_S + back_s):
            again = Times(start=start, end=min(clock(), start + AGAIN_S + LOOK_S))
        return Three(after if after.start <= after.end else None, before, again)

    def _seen(self, course: Course) -> Times:
        """When the effect was there: as it was blamed, now where the change is in force, else just before it went."""
        if course.undone_by is None:
            return self._m.look()
        later = self._w.ledger.load(course.undone_by)
        blame = later.planned.blame if later.planned is not None else None
        if blame is not None and blame.effect.start >= course.since:
            return blame.effect
        end = (course.leaving or course.since) - GAP_S
        return Times(start=max(course.since, end - AGAIN_S), end=max(course.since, end))

    def _others(self, course: Course, three: Three) -> tuple[str, ...] | None:
        ends = [course.since, *(times.end for times in (three.after, three.again) if times is not None)]
        without = {course.change.id, course.undone_by or ""}
        start = three.before.start if three.before is not None else course.began
        found = self._courses.others(start, max(ends), without)
        looked = course.gone if three.again is not None and course.gone is not None else course.since
        return found if self._courses.watched_since(looked) else None

    def _unmeasured(self, claim: Claim, change: Change, code: str) -> Judgement:
        """A change that was never carried out did nothing; one that works, or is just done, has not done it yet."""
        now = self._w.clock()
        word = "refuted" if code == "claim.change-did-nothing" else "unverified"
        reason = Finding(code=code, effect="note", values={"change": change.id})
        needs = str(claim.needs) if claim.needs is not None else ""
        said = {"word": word, "name": claim.name, "about": claim.about, "needs": needs, "reason": reason}
        return Judgement(at=now, effect=Times(start=now, end=now), baseline=None, verdict=Verdict.model_validate(said))


def range_of(query: str) -> float:
    """How far a query looks back, in seconds; as it is written where only Prometheus can answer it."""
    found = compile_query(query)
    if isinstance(found, Query):
        return found.range_s
    return max((float(n) * UNITS_S[unit] for n, unit in RANGE.findall(query)), default=0.0)


def effect_of_blame(blame: Blame) -> Statement | None:
    """What a revert cites as seen."""
    cited = next((v.needs for v in blame.verdicts if v.needs and (not v.name or change_id(v.name))), None)
    found = read_statement(cited) if cited else None
    return found if found is not None and not isinstance(found, Malformed) else None


def _takes_back(change: Change) -> bool:
    return change.asked is not None and isinstance(change.asked.intent, RevertKnob | Rollback)


def _times(window: Window) -> Times:
    return Times(start=window.start, end=window.end)


def of_fleet(fleet: Fleet, change: Change | None) -> tuple[str, ...]:
    """Services whose engines are asked for their state: those of a change, else all."""
    if change is None or change.plan is None:
        return tuple(fleet.services)
    knob = fleet.knobs.get(change.plan.knob or "")
    named = knob.on if knob is not None else tuple(i.partition("@")[0] for i in change.plan.services)
    return tuple(dict.fromkeys(name for name in named if name in fleet.services))
