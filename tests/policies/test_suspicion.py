"""A suspicion: one for each revert, settled by what was recorded since, and reminded of once for each date."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.intents import RestoreKnob, UnsetKnob
from policies.suspicion import (
    Claim,
    Standing,
    change_of,
    due,
    next_review,
    priced,
    prices,
    settles,
    standing,
    suspicion_id,
)
from tests.policies import builders as b
from tests.policies.builders import suspicion

WEEK_S = 604_800.0
AT = b.NOW


def gave(by: str, at: float = AT + 1, **now: str | None) -> Claim:
    return Claim("reclaimed", by, at, tuple((f"decode@{host}", value) for host, value in now.items()))


def test_its_name_is_that_of_the_change_that_left_it() -> None:
    assert suspicion_id("C-142") == "su-142"
    assert change_of("su-142") == "C-142"


def test_it_is_open_until_something_settles_it() -> None:
    assert standing(suspicion(), ()) == Standing("open")


def test_it_is_given_back_when_every_instance_has_the_value_again() -> None:
    half = gave("C-8", a="512")
    assert standing(suspicion(), (half,)).word == "open"
    assert standing(suspicion(), (half, gave("C-9", AT + 5, b="512"))) == Standing("reclaimed", "C-9", AT + 5, "C-9")
    assert standing(suspicion(), (gave("C-8", a="512", b="512"),)) == Standing("reclaimed", "C-8", AT + 1, "C-8")


def test_another_value_and_another_place_give_nothing_back() -> None:
    assert standing(suspicion(), (gave("C-8", a="256", b="512"), gave("C-9", c="512"))).word == "open"
    taken_again = (gave("C-8", a="512"), gave("C-9", a=None), gave("C-10", b="512"))
    assert standing(suspicion(), taken_again).word == "open"


def test_the_first_that_settles_it_counts() -> None:
    claims = (Claim("refuted", "st-1", AT + 1), gave("C-8", AT + 2, a="512", b="512"))
    settled = standing(suspicion(), claims)
    assert settled == Standing("refuted", "st-1", AT + 1, "C-8")
    assert not settled.is_lost


def test_refuted_and_not_given_back_it_is_still_lost() -> None:
    assert standing(suspicion(), (Claim("refuted", "st-1", AT + 1),)).is_lost
    assert not standing(suspicion(), (Claim("confirmed", "st-1", AT + 1),)).is_lost
    assert standing(suspicion(), ()).is_lost


@pytest.mark.parametrize(
    ("title", "word", "catalogued", "becomes"),
    [
        ("cold-start", "verified", True, "confirmed"),
        ("cold-start", "refuted", True, "refuted"),
        ("cold-start", "consistent", True, None),
        ("cold-start", "unverified", True, None),
        ("queued-behind-load", "verified", True, "refuted"),
        ("queued-behind-load", "consistent", True, None),
        ("queued-behind-load", "refuted", True, None),
        ("uptime_s > 5", "verified", False, None),
    ],
)
def test_a_statement_settles_it_by_what_the_revert_was_made_on(
    title: str, word: str, catalogued: bool, becomes: str | None
) -> None:
    assert settles(("cold-start",), title, word, catalogued=catalogued) == becomes


def test_what_gives_it_back_is_asked_for_by_name() -> None:
    assert suspicion().gives_back == RestoreKnob(knob="TARGET_CTAS", value="512")
    unset = suspicion(value=None, was={"decode@a": None}, now={"decode@a": "256"}).gives_back
    assert isinstance(unset, UnsetKnob)
    assert unset.knob == "TARGET_CTAS"
    assert suspicion(value=None, was={"decode@a": "1", "decode@b": "2"}).gives_back is None


def test_it_is_priced_by_the_newest_record_against_what_is_there_now() -> None:
    old, new = b.record(id="ab-1", at=1.0), b.record(id="ab-2", at=2.0)
    assert priced((new, old), "TARGET_CTAS", "512", old.baseline) == new
    assert priced((new, old), "TARGET_CTAS", "512", "another") == new
    assert priced((new, old), "TARGET_CTAS", "1024", None) is None
    assert priced((), "TARGET_CTAS", "512", None) is None
    assert prices(None) == ()


def test_a_price_has_its_load_and_how_many_runs_it_is_of() -> None:
    found = prices(b.record())
    assert [(price.load, price.n, price.low, price.high) for price in found] == [
        (p.load, min(p.n_a, p.n_b), None, None) for p in b.record().points
    ]


def test_nobody_is_reminded_before_the_date_and_only_once_of_it() -> None:
    one = suspicion()
    first = AT + WEEK_S
    assert due(one, None, first - 1) is None
    assert due(one, None, first) == first
    assert due(one, first, first + 1) is None
    assert due(one, first, first + WEEK_S) == first + WEEK_S
    assert due(one, first, first + 5 * WEEK_S + 3) == first + 5 * WEEK_S
    assert next_review(one, AT) == first
    assert next_review(one, first) == first + WEEK_S


@given(st.lists(st.floats(0, 50 * WEEK_S), max_size=40).map(sorted))
def test_however_often_it_is_looked_at_each_date_is_reminded_of_at_most_once(looks: list[float]) -> None:
    one = suspicion()
    reminded: list[float] = []
    for at in looks:
        date = due(one, reminded[-1] if reminded else None, AT + at)
        if date is not None:
            assert date <= AT + at < next_review(one, AT + at)
            reminded.append(date)
    assert len(set(reminded)) == len(reminded)
    assert reminded == sorted(reminded)
    assert all((date - one.review_at) % WEEK_S == 0 for date in reminded)
    if looks and looks[-1] >= WEEK_S:
        assert reminded
