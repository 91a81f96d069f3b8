"""An effect is compared with the time before it began, and one that comes and goes is not cut to fit."""

from __future__ import annotations

import pytest

from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.statement import Statement
from policies.causes.window import Window
from policies.metrics.measured import Measured, Reading
from policies.onset import before_onset


def window(*queued: float) -> Window:
    """One reading of the queue every ten seconds from 0 on; the time before an effect that begins behind them."""
    readings = tuple(Reading(at=10.0 * n, value=value) for n, value in enumerate(queued))
    end = 10.0 * len(queued)
    one = Measured(name="queue_reqs", query="q", unit="requests", source="s", start=0, end=end, readings=readings)
    return Window(0.0, end, {"queue_reqs": one})


def needs(text: str) -> Statement:
    found = read_statement(text)
    assert not isinstance(found, Malformed)
    return found


@pytest.mark.parametrize(
    ("queued", "ends_at"),
    [
        ((0, 0, 0), 20.0),  # it began behind the last of these
        ((0, 0, 5, 6), 10.0),  # it began at the third
        ((0, 5, 0, 6), 20.0),  # it came and went: what is left is mixed, and is judged so
        ((5, 5, 5), 30.0),  # it was there all the time
    ],
)
def test_the_time_before_an_effect_ends_where_it_began(queued: tuple[float, ...], ends_at: float) -> None:
    assert before_onset(needs("queue_reqs > 0"), window(*queued)).end == ends_at


@pytest.mark.parametrize("text", ["queue_reqs rising", "state == hung", "queue_reqs > 0 and queue_reqs rising"])
def test_trends_and_states_have_no_single_moment(text: str) -> None:
    earlier = window(0, 0, 5, 6)
    assert before_onset(needs(text), earlier) == earlier


def test_nothing_cited_is_compared_with_all_of_it() -> None:
    earlier = window(0, 5)
    assert before_onset(None, earlier) == earlier


def test_what_was_not_measured_ends_no_effect() -> None:
    assert before_onset(needs("other > 0"), window(0, 5)).end == 20.0
