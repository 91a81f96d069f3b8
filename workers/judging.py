"""Claims about causes, judged over a window and the one before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


class Seen:
    """An effect and the time before it, measured once for many claims. Units: now is epoch seconds."""

    def __init__(self, effect: Window, earlier: Window | None, rivals: Sequence[Claim], now: float) -> None:
        self.effect = effect
        self.earlier = earlier
        self._rivals = rivals
        self._now = now

    def baseline(self, needs: Statement | None) -> Window | None:
        """What a claim is compared with: the time before the effect began."""
        return None if self.earlier is None else before_onset(needs, self.earlier)

    def verdict(self, claim: Claim) -> Verdict:
        """What the readings say of a claim."""
        return judge(claim, self.effect, self.baseline(claim.needs), self._rivals, self._now)


class Judging:
    """`clock` gives epoch seconds. Raises everywhere: StoreUnavailable."""

    def __init__(self, fleet: Fleet, measuring: Measuring, clock: Callable[[], float]) -> None:
        self._fleet = fleet
        self._m = measuring
        self._clock = clock

    def look(self, claims: Sequence[Claim], effect: Times, baseline: Times | None, services: Sequence[str]) -> Seen:
        """Measure all that these claims and those of the catalogue need."""
        rivals = catalogue(self._fleet)
        needed = metrics_needed(Claim(None), (*claims, *rivals))
        seen = self._m.window(effect, needed, services)
        earlier = self._m.window(baseline, needed, services) if baseline is not None else None
        return Seen(seen, earlier, rivals, max(self._clock(), effect.end))

    def judged(self, claim: Claim, effect: Times, baseline: Times | None, services: Sequence[str]) -> Judgement:
        """The judgement on one claim, with what the readings agree with instead."""
        seen = self.look((claim,), effect, baseline, services)
        others = (seen.verdict(rival) for rival in catalogue(self._fleet) if rival.name != claim.name)
        holding = tuple(verdict for verdict in others if verdict.word in {"verified", "consistent"})
        return self._judgement(seen, claim.needs, seen.verdict(claim), holding)

    def all(
        self, claims: Sequence[Claim], effect: Times, baseline: Times | None, services: Sequence[str]
    ) -> tuple[Judgement, tuple[Verdict, ...]]:
        """Every claim of some, and the judgement on the one of which most can be said."""
        seen = self.look(claims, effect, baseline, services)
        verdicts = tuple(seen.verdict(claim) for claim in claims)
        best, others = strongest(verdicts)
        needs = next((claim.needs for claim, verdict in zip(claims, verdicts, strict=True) if verdict is best), None)
        return self._judgement(seen, needs, best, others), verdicts

    def probed(self, effect: Times, baseline: Times | None, services: Sequence[str]) -> Judgement:
        """What the catalogue's causes come to over the time of a probe."""
        return self.all(catalogue(self._fleet), effect, baseline, services)[0]

    def _judgement(
        self, seen: Seen, needs: Statement | None, verdict: Verdict, others: tuple[Verdict, ...]
    ) -> Judgement:
        before = seen.baseline(needs)
        return Judgement(
            at=max(self._clock(), seen.effect.end),
            effect=Times(start=seen.effect.start, end=seen.effect.end),
            baseline=None if before is None else Times(start=before.start, end=before.end),
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
