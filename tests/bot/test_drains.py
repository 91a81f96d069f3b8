"""Drains and registrations as people see them: the thread's lines, the card while it is held, and [Details]."""

from __future__ import annotations

from typing import Any

import pytest

from bot.cards.details import details_card
from bot.cards.progress import card
from bot.cards.story import Story
from bot.thread import line
from policies import events as e
from policies.finding import Finding, Verdict
from policies.plan import AdmitStep, DrainStep, Plan, Registration
from policies.routers.listed import Listed, Taken
from tests.bot import stories
from tests.bot.test_cards import texts

ROUTER = "router@gpu1"
WORKER = "http://10.0.0.1:30001"
AT = Registration(router=ROUTER, api="http://127.0.0.1:30080", worker=WORKER, kind="decode")
WHERE: dict[str, Any] = {"host": "gpu1", "service": "decode", "unit": "decode.service", "at": (AT,)}
LISTED = Listed(id="a-b", url=WORKER, kind="decode", healthy=True)


def with_drain(plan: Plan, over: str = "hold") -> Plan:
    drain = DrainStep.model_validate({**WHERE, "deadline_s": 60.0, "over": over})
    return plan.model_copy(update={"steps": (drain, *plan.steps, AdmitStep.model_validate(WHERE))})


def story(*events: e.Event, over: str = "hold") -> Story:
    """A confirmed change whose first step takes decode out."""
    planned = stories.planned()
    plans = tuple(with_drain(plan, over) for plan in planned.plans)
    given = stories.confirmed().model_copy(update={"digest": plans[0].digest, "order": plans[0].order})
    start: list[e.Event] = [stories.asked(), planned.model_copy(update={"plans": plans}), given, stories.started()]
    return Story.of(stories.chained([*start, *events]), (), stories.fleet())


def begun() -> e.StepStarted:
    return e.StepStarted(part="do", index=0, step="drain", instance="decode@gpu1")


def done(*findings: Finding, found: Listed | None = LISTED) -> e.StepDone:
    return e.StepDone(
        part="do",
        index=0,
        step="drain",
        instance="decode@gpu1",
        host_at=stories.T0,
        findings=findings,
        found=(Taken(router=ROUTER, worker=WORKER, found=found),),
    )


def finding(code: str, **values: str | float | None) -> Finding:
    return Finding(code=code, effect="note", values={"instance": "decode@gpu1", "routers": ROUTER, **values})


def said(told: Story) -> str:
    text = line(told)
    assert text is not None
    return text.partition("> ")[2] or text


EMPTY = finding("drain.empty", took_s=3.2)


@pytest.mark.parametrize(
    ("findings", "told"),
    [
        ([EMPTY], "decode@gpu1 is out of router@gpu1, and nothing was in flight after 3.2 s"),
        (
            [finding("drain.cuts", took_s=60.0, left=2), finding("drain.oldest", router=ROUTER, older_than_s=30.0)],
            (
                "decode@gpu1 is out of router@gpu1, and 2 requests still in flight after 60 s will be cut by the"
                " restart · the oldest request at router@gpu1 is over 30 s old, whichever worker has it"
            ),
        ),
        (
            [finding("drain.cuts-unknown", took_s=60.0, left=None), finding("drain.unread", unknown="metrics")],
            (
                "decode@gpu1 is out of router@gpu1; after 60 s it is not known how many requests are in flight"
                " there and will be cut by the restart · not known of decode@gpu1: metrics"
            ),
        ),
        (
            [EMPTY, finding("drain.never-was", router=ROUTER, worker=WORKER)],
            (
                "decode@gpu1 is out of router@gpu1, and nothing was in flight after 3.2 s · decode@gpu1 was not"
                f" registered at router@gpu1 (`{WORKER}`) before the drain, so it will not be registered there"
                " afterwards"
            ),
        ),
    ],
)
def test_a_drain_has_one_line_with_how_long_it_took_and_what_is_left(findings: list[Finding], told: str) -> None:
    assert told in said(story(begun(), done(*findings)))


def test_a_registration_has_its_line_when_the_router_sends_requests_again() -> None:
    plan = story().change.plan
    assert plan is not None
    index = len(plan.steps) - 1
    admit = e.StepDone(part="do", index=index, step="admit", instance="decode@gpu1", host_at=stories.T0)
    assert line(story(begun(), done(EMPTY), admit)) is None
    values: dict[str, str | int | float | None] = {"instance": "decode@gpu1", "router": ROUTER, "breaker": "closed"}
    ok = Verdict(answer="pass", findings=(Finding(code="gate.admitted.ok", effect="allow", values=values),))
    passed = e.GatePassed(part="do", index=index, instance="decode@gpu1", gate="admitted", verdict=ok)
    told = said(story(begun(), done(EMPTY), admit, passed))
    assert "decode@gpu1 is registered at router@gpu1, healthy there, breaker closed" in told


def test_a_held_change_says_who_gets_no_requests() -> None:
    over = e.Held(findings=(finding("hold.drain-over", took_s=60.0, left=2),))
    silent = e.Held(findings=(finding("router.no-answer", router=ROUTER, error="connection refused"),))
    out = "decode@gpu1 is out of router@gpu1, so it gets no requests"
    shown = texts(card(story(begun(), over)))
    assert out in shown
    assert any("and 2 requests still in flight after 60 s, expected none" in text for text in shown)
    assert any("[Ask again]" in text for text in shown)
    shown = texts(card(story(begun(), silent)))
    assert any("decode@gpu1 may be out of its routers" in text for text in shown)
    assert any("[Ask again]" in text for text in shown)
    assert out in texts(card(story(begun(), done(EMPTY), silent)))
    never = texts(card(story(begun(), done(EMPTY, found=None), silent)))
    assert not any("gets no requests" in text for text in never)


@pytest.mark.parametrize(
    ("over", "told"),
    [("hold", "what is left then holds the change"), ("restart", "what is left then is cut by the restart")],
)
def test_details_say_where_for_how_long_and_what_a_registration_cannot_keep(over: str, told: str) -> None:
    shown = "\n".join(texts(details_card(story(over=over))))
    where = f"1. take decode@gpu1 (`{WORKER}`) out at router@gpu1, wait up to 60 s until nothing is in flight there"
    assert f"{where}; {told}" in shown
    assert f"register decode@gpu1 (`{WORKER}`) at router@gpu1 again as it was" in shown
    assert "a key of its own is told to nobody by a router, so that is not kept" in shown
    assert "admitted" in shown
