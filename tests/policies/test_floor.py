"""The floor: who counts as serving, when a stage may not begin, and what is said of those that do not serve."""

from __future__ import annotations

from typing import Any

import pytest

from bot.messages import strict
from policies.facts import Incarnation, PortOwner, UnitFacts
from policies.finding import Finding
from policies.floor import below, out_of_service
from policies.plan import Rolling
from tests.policies import builders as b

ROLLING = Rolling(service="decode", replicas=3, max_unavailable=1, keep=2)
AWAY = ("decode@gpu1",)
DOWN = Finding(code="floor.not-active", effect="note", values={"instance": "decode@gpu3", "state": "failed (failed)"})
OTHERS = {"decode@gpu2": None, "decode@gpu3": None}
ONE_DOWN = {"decode@gpu2": None, "decode@gpu3": DOWN}


def seen(status: int | None = 200, **more: Any) -> UnitFacts:
    return b.unit("decode@gpu3", http=(b.answer(status, id="health"),), **more)


def test_an_instance_that_is_active_and_answers_200_serves() -> None:
    assert out_of_service("decode@gpu3", seen()) is None


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (seen(active_state="failed", sub_state="failed"), "decode@gpu3 does not serve: it is failed (failed)"),
        (
            seen(incarnation=Incarnation(main_pid=0, started=0, invocation_id="")),
            "decode@gpu3 does not serve: it is active (running)",
        ),
        (seen(503), "decode@gpu3 does not serve: health answers 503 (expected 200)"),
        (b.unit("decode@gpu3"), "decode@gpu3 does not serve: health answers nothing (expected 200)"),
        (
            seen(port=PortOwner(port=30001, state="owned", pid=9, in_unit=False)),
            "decode@gpu3 does not serve: health answers 200 (somebody else has its port)",
        ),
    ],
)
def test_what_keeps_it_from_serving_is_said(unit: UnitFacts, said: str) -> None:
    why = out_of_service("decode@gpu3", unit)
    assert why is not None
    assert strict(why) == said


def test_enough_others_let_the_stage_begin() -> None:
    assert below(ROLLING, AWAY, OTHERS, {"decode@gpu1": None}) == ()


def test_too_few_others_hold_it_with_the_count_and_who_does_not_serve_and_why() -> None:
    count, why = below(ROLLING, AWAY, ONE_DOWN, {"decode@gpu1": None})
    assert why == DOWN
    assert strict(count) == (
        "decode@gpu1 may not be taken away now: 1 of the 2 other instances of decode serve (decode@gpu2),"
        " expected at least 2; nothing of this stage was touched"
    )


def test_a_stage_that_serves_nothing_takes_nothing_away_and_is_not_held() -> None:
    assert below(ROLLING, AWAY, ONE_DOWN, {"decode@gpu1": DOWN}) == ()


def test_a_floor_of_nought_never_holds() -> None:
    assert below(ROLLING.model_copy(update={"keep": 0}), AWAY, {"decode@gpu3": DOWN}, {"decode@gpu1": None}) == ()
