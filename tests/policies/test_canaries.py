"""The replica that goes first: when it is judged, on what, and that no data is never a pass."""

from __future__ import annotations

import pytest

from bot.messages import strict
from policies import events as e
from policies.canaries import ended, judge, metrics_asked, read_as, required, watches_due
from policies.causes.window import Window
from policies.change import Change, apply
from policies.finding import Finding
from policies.metrics.measured import Measured, Reading, missing
from policies.plan import CanaryWatch
from policies.stages import next_step
from policies.undoing import undoes_itself
from tests.policies import builders as b
from tests.policies.change_events import BAKE
from tests.policies.test_stages import Run, approved
from tests.policies.waves import plan

WATCH = CanaryWatch(
    instance="decode@gpu1", why="the first that is healthy", watch_s=30.0, require=("ttft_s < 2", "errors <= 0")
)
PLAN = plan([{"decode": ("gpu1",)}, {"decode": ("gpu2",)}], canary=WATCH)


def measured(name: str, *values: float) -> Measured:
    readings = tuple(Reading(at=b.NOW + n, value=value) for n, value in enumerate(values))
    told = {"name": name, "query": f"max({name})", "unit": "s" if name == "ttft_s" else "requests", "source": "scrape"}
    if not readings:
        return missing(told["name"], query=told["query"], unit="s", source="scrape", start=b.NOW, end=b.NOW + 2)
    return Measured.model_validate({**told, "start": b.NOW, "end": b.NOW + 2, "readings": readings})


def window(**read: tuple[float, ...]) -> Window:
    return Window(b.NOW, b.NOW + 2, {name: measured(name, *values) for name, values in read.items()})


def answer(**read: tuple[float, ...]) -> str:
    return judge((), None, required(WATCH, window(**read))).answer


def test_every_condition_that_holds_on_every_reading_is_a_pass() -> None:
    assert answer(ttft_s=(0.8, 0.9, 0.7), errors=(0.0, 0.0, 0.0)) == "pass"


def test_a_condition_that_does_not_hold_is_a_failure_and_says_what_was_read_and_how_often() -> None:
    found = judge((), None, required(WATCH, window(ttft_s=(3.1, 3.2, 3.4), errors=(0.0,))))
    assert found.answer == "fail"
    assert [strict(f) for f in found.findings] == ["decode@gpu1: `ttft_s &lt; 2` does not hold: read ttft_s 3.4 s, n=3"]


@pytest.mark.parametrize("read", [{"ttft_s": (0.8,)}, {"ttft_s": (0.8,), "errors": ()}, {}])
def test_no_data_is_no_pass_and_no_failure_either(read: dict[str, tuple[float, ...]]) -> None:
    judged = required(WATCH, window(**read))
    found = judge((), None, judged)
    assert found.answer == "inconclusive"
    assert not undoes_itself(approved(PLAN), "do", found.answer, found.findings, changed=True)
    assert "no data is no pass" in strict(found.findings[-2])


def test_readings_on_both_sides_decide_nothing() -> None:
    assert answer(ttft_s=(1.0, 3.0), errors=(0.0,)) == "inconclusive"


def test_a_condition_that_fails_decides_where_another_one_is_not_known() -> None:
    assert answer(ttft_s=(3.0,)) == "fail"


def test_a_last_look_that_failed_is_no_pass_although_every_condition_holds() -> None:
    away = Finding(code="bake.not-observed", effect="refuse", values={"error": "x"})
    well = required(WATCH, window(ttft_s=(0.8,), errors=(0.0,)))
    assert judge((), away, well).answer == "inconclusive"


def test_a_condition_that_cannot_be_read_is_never_a_pass() -> None:
    (one,) = required(WATCH.model_copy(update={"require": ("ttft_s <",)}), window(ttft_s=(0.8,)))
    assert (one.word, one.why[0].code) == ("unknown", "canary.malformed")


def test_a_crash_of_the_canary_is_undone_and_a_restart_by_hand_is_not() -> None:
    change = approved(PLAN)
    crashed = judge((Finding(code="bake.crashed", effect="refuse"),), None, ())
    assert undoes_itself(change, "do", crashed.answer, crashed.findings, changed=True)
    by_hand = judge((Finding(code="bake.restarted", effect="refuse"),), None, ())
    assert not undoes_itself(change, "do", by_hand.answer, by_hand.findings, changed=True)


def test_what_is_asked_of_the_instance_is_what_the_conditions_name() -> None:
    assert [metric.text for metric in metrics_asked(WATCH)] == ["ttft_s", "errors"]
    (one, _) = required(WATCH, window(ttft_s=(0.8, 0.9), errors=(0.0,)))
    assert (read_as(one.citations), one.n) == ("ttft_s 0.9 s", 2)


def test_the_event_that_ends_the_watch_is_the_verdicts() -> None:
    judged = required(WATCH, window(ttft_s=(0.8,), errors=(0.0,)))
    assert ended(("decode@gpu1",), judge((), None, judged), judged, ()).kind == "canary_passed"
    failing = required(WATCH, window(ttft_s=(8.0,), errors=(0.0,)))
    assert ended(("decode@gpu1",), judge((), None, failing), failing, ()).kind == "canary_failed"


# --- when ---


def started() -> e.CanaryStarted:
    return e.CanaryStarted(until=b.NOW + 30, readings={"decode@gpu1": BAKE})


def first_wave_through() -> Run:
    run = Run(approved(PLAN))
    for _ in range(6):  # a write, a restart, four gates
        assert not watches_due(run.change, _next(run.change))
        run.turn()
    return run


def _next(change: Change) -> int | None:
    return next_step(change, well=False)


def test_the_canary_is_judged_between_the_first_wave_and_the_second() -> None:
    change = first_wave_through().change
    assert watches_due(change, _next(change)) == (WATCH,)
    passed = e.CanaryPassed(instances=("decode@gpu1",), findings=())
    change = apply(apply(change, started(), b.NOW), passed, b.NOW)
    assert watches_due(change, _next(change)) == ()


def test_a_canary_without_a_watch_and_without_conditions_has_its_gates_only() -> None:
    plain = WATCH.model_copy(update={"watch_s": 0.0, "require": ()})
    run = Run(approved(plan([{"decode": ("gpu1",)}, {"decode": ("gpu2",)}], canary=plain)))
    for _ in range(6):
        run.turn()
    assert watches_due(run.change, _next(run.change)) == ()


def test_looking_again_begins_the_watch_anew_and_an_abort_ends_it() -> None:
    change = apply(first_wave_through().change, started(), b.NOW)
    failed = e.CanaryFailed(instances=("decode@gpu1",), verdict=judge((), None, required(WATCH, window())))
    change = apply(apply(change, failed, b.NOW), e.Held(findings=()), b.NOW)
    assert change.canary_failed == failed
    again = apply(change, e.RetryAsked(actor=b.ANA), b.NOW)
    assert (again.canary, again.canary_failed) == (None, None)
    assert watches_due(again, _next(again)) == (WATCH,)
    watched = apply(first_wave_through().change, started(), b.NOW)
    assert watches_due(apply(watched, e.AbortAsked(actor=b.ANA), b.NOW), None) == ()
