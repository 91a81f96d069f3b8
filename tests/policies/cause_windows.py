"""Windows with readings, for tests of claims: times are seconds after NOW."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.causes.statement import StateWord
from policies.causes.window import Window
from policies.citation import Citation
from policies.finding import Finding
from policies.metrics.measured import Measured, Reading, missing
from policies.states.state import State
from tests.policies.builders import NOW

Values = Sequence[float | Reading]
SOURCE = "scrape of http://127.0.0.1:30001/metrics on gpu1"


def measured(name: str, values: Values, *, start: float, end: float, query: str | None = None) -> Measured:
    """Readings spread evenly over the window, the last at its end; none of them: a missing family."""
    query = query if query is not None else f"sum({name})"
    if not values:
        return missing(name, query=query, unit="", source=SOURCE, start=start, end=end)
    step = (end - start) / max(1, len(values) - 1)
    times = [end - step * back for back in reversed(range(len(values)))]
    readings = tuple(
        value.model_copy(update={"at": at}) if isinstance(value, Reading) else Reading(at=at, value=value)
        for at, value in zip(times, values, strict=True)
    )
    return Measured(name=name, query=query, unit="", source=SOURCE, start=start, end=end, readings=readings)


def window(
    given: Mapping[str, Values], *, at: float = 0.0, lasts: float = 60.0, state: State | None = None,
    started: float | None = None,
) -> Window:  # fmt: skip
    """A window that ends `at` seconds after NOW."""
    end = NOW + at
    start = end - lasts
    found = {name: measured(name, values, start=start, end=end) for name, values in given.items()}
    return Window(start, end, found, state, None if started is None else NOW + started)


def state(*possible: StateWord) -> State:
    """A state with one reading; nothing is known of it where it is not one word."""
    known = len(possible) == 1
    unknown = Finding(code="state.unread", effect="note", values={"readings": "HTTP active"})
    return State(
        possible=possible,
        citations=(Citation(query="sglang:num_running_reqs", value=0, unit="requests", time=NOW, source=SOURCE),),
        unknown=() if known else ("HTTP active",),
        findings=() if known else (unknown,),
    )
