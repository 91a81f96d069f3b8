"""When an effect that is there now began: the time before it is what it is compared with.

Seen backwards from the effect, what a claim needs held at every moment that was measured, until one at which it did
not. Everything after that moment is the effect; what came before is judged like any other baseline, so that an effect
that comes and goes is still no verified one.
"""

from __future__ import annotations

from dataclasses import replace

from policies.causes.statement import Compared, Statement, atoms_of
from policies.causes.truth import truth_of
from policies.causes.window import Window


def before_onset(needs: Statement | None, earlier: Window) -> Window:
    """The part of the time before an effect that ends where the effect began.

    All of it where needs held at no moment of its end, held throughout, or is about trends or states, which no single
    moment has.
    """
    if needs is None or not all(isinstance(atom, Compared) for atom in atoms_of(needs)):
        return earlier
    times = {reading.at for one in earlier.measured.values() for reading in earlier.within(one)}
    for at in sorted(times, reverse=True):
        if truth_of(needs, replace(earlier, start=at, end=at)).word == "fails":
            return replace(earlier, end=at)
    return earlier
