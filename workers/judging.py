"""Claims about causes, judged over a window and the one before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from policies.causes.claim import Claim, catalogue, metrics_needed
from policies.causes.judge import judge
from policies.causes.statement import Statement
from policies.causes.verdict import Verdict
from policies.causes.window import Window
from policies.finding import Finding
from policies.fleet import Fleet
from policies.onset import before_onset
from policies.statement import Judgement, Times
from workers.measuring import Measuring


@dataclass(frozen=True, slots=True)
class Span:
    """When an effect was there, and the time before it.

    ongoing: it is there now and may have begun within that time; else the time before it is that before a change.
    """

    effect: Times
    baseline: Times | None
    ongoing: bool = False


class Seen:
    """An effect and the time before it, measured once for many claims. Units: now is epoch seconds."""

    def __init__(self, span: Span, effect: Window, earlier: Window | None, rivals: Sequence[Claim], now: float) -> None:
        self.span = span
        self.effect = effect
        self.earlier = earlier
        self._rivals = rivals
        self._now = now

    def baseline(self, needs: Statement | None) -> Window | None:
        """What a claim is compared with: the time before the effect began."""
        if self.earlier is None or not self.span.ongoing:
            return self.earlier
        return before_onset(needs, self.earlier)

    def verdict(self, claim: Claim) -> Verdict:
        """What the readings say of a claim."""
        return judge(claim, self.effect, self.baseline(claim.needs), self._rivals, self._now)


class Judging:
    """`clock` gives epoch seconds. Raises everywhere: StoreUnavailable."""

    def __init__(self, fleet: Fleet, measuring: Measuring, clock: Callable[[], float]) -> None:
        self._fleet = fleet
        self._m = measuring
        self._clock = clock

    def look(self, claims: Sequence[Claim], span: Span, services: Sequence[str]) -> Seen:
        """Measure all that these claims and those of the catalogue need."""
        rivals = catalogue(self._fleet)
        needed = metrics_needed(Claim(None), (*claims, *rivals))
        seen = self._m.window(span.effect, needed, services)
        earlier = self._m.window(span.baseline, needed, services) if span.baseline is not None else None
        return Seen(span, seen, earlier, rivals, max(self._clock(), span.effect.end))

    def judged(self, claim: Claim, span: Span, services: Sequence[str]) -> Judgement:
        """The judgement on one claim, with what the readings agree with instead."""
        seen = self.look((claim,), span, services)
        others = (seen.verdict(rival) for rival in catalogue(self._fleet) if rival.name != claim.name)
        holding = tuple(verdict for verdict in others if verdict.word in {"verified", "consistent"})
        return self._judgement(seen, claim.needs, seen.verdict(claim), holding)

    def all(
        self, claims: Sequence[Claim], span: Span, services: Sequence[str]
    ) -> tuple[Judgement, tuple[Verdict, ...]]:
        """Every claim of some, and the judgement on the one of which most can be said."""
        seen = self.look(claims, span, services)
        verdicts = tuple(seen.verdict(claim) for claim in claims)
        best, others = strongest(verdicts)
        needs = next((claim.needs for claim, verdict in zip(claims, verdicts, strict=True) if verdict is best), None)
        return self._judgement(seen, needs, best, others), verdicts

    def probed(self, span: Span, services: Sequence[str]) -> Judgement:
        """What the catalogue's causes come to over the time of a probe."""
        return self.all(catalogue(self._fleet), span, services)[0]

    def _judgement(
        self, seen: Seen, needs: Statement | None, verdict: Verdict, others: tuple[Verdict, ...]
    ) -> Judgement:
        before = seen.baseline(needs)
        return Judgement(
            at=max(self._clock(), seen.effect.end),
            effect=Times(start=seen.effect.start, end=seen.effect.end),
            baseline=None if before is None else Times(start=before.start, end=before.end),
            ongoing=seen.span.ongoing,
            verdict=verdict,
            others=others,
            state=seen.effect.state,
            load=self._m.load(seen.effect),
        )


def strongest(verdicts: Sequence[Verdict]) -> tuple[Verdict, tuple[Verdict, ...]]:
    """The verdict of which most may be said, and the others that the readings agree with."""
    holding = [v for word in ("verified", "consistent") for v in verdicts if v.word == word]
    if not holding:
        none = Finding(code="statement.none-holds", effect="note", values={"n": len(verdicts)})
        return Verdict(word="unverified", reason=none), ()
    return holding[0], tuple(holding[1:])
