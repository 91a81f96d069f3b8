"""Idle, busy, hung, saturated: only when every reading says so, on two scrapes of one process."""

from __future__ import annotations

import re
from typing import Any

import pytest

from policies.metrics.engine import Role
from policies.states.group import together
from policies.states.judge import Look, Routers, judge_state
from policies.states.state import State
from tests.policies.builders import NOW
from tests.policies.cause_windows import state
from tests.policies.scrapes import PD_EMPTY, STARTED, engine_text, router_text, scrape, vllm_text

ALL = ("idle", "busy", "hung", "saturated")


def routers(*in_flight: object, at: float) -> Routers:
    """None among the numbers: a router that did not answer."""
    return tuple(
        None if one is None else scrape(router_text(one), at, f"router@gpu{number}")
        for number, one in enumerate(in_flight)
    )


def judged(
    before: dict[str, Any] | str | None,
    now: dict[str, Any] | str,
    *,
    gap: float = 60.0,
    router: tuple[object, object] = (0, 0),
    role: Role | None = None,
) -> State:
    """Two looks, a gap apart; router: what it has in flight at both."""
    texts = [one if isinstance(one, str | None) else engine_text(**one) for one in (before, now)]
    looks = [
        Look(scrape(text, at), routers(number, at=at)) if text is not None else None
        for text, number, at in zip(texts, router, (-gap, 0.0), strict=True)
    ]
    assert looks[1] is not None
    return judge_state(looks[0], looks[1], role=role)


def found(state: State) -> tuple[str, list[str]]:
    return state.word, [f.code for f in state.findings]


@pytest.mark.parametrize("role", ["unified", "prefill", "decode"])
def test_an_engine_without_work_at_both_looks_and_without_progress_is_idle(role: Role) -> None:
    given = {"role": role, "pd": PD_EMPTY[role]}
    idle = judged(given, given)
    assert found(idle) == ("idle", [])
    cited = {c.name: c.value for c in idle.citations}
    assert cited == {
        "num_running_reqs": 0, "num_queue_reqs": 0, "http_requests_active": 0, "router_in_flight": 0,
        "generation_tokens_total": 8830112, "process_start_time_seconds": STARTED, **PD_EMPTY[role],
    }  # fmt: skip
    assert {c.time - NOW for c in idle.citations} == {-60, 0}
    assert {c.source for c in idle.citations if c.name == "num_queue_reqs"} == {
        "scrape of http://127.0.0.1:30001/metrics on gpu1"
    }


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ({"running": None}, "running"),
        ({"queued": None}, "queued"),
        ({"http": None}, "http_active"),
        ({"queued": "NaN"}, "queued"),
        ({"role": "decode", "pd": {"num_decode_prealloc_queue_reqs": 0}}, "decode_transfer_queue_reqs"),
        ({"role": "prefill", "pd": {"num_prefill_inflight_queue_reqs": 0}}, "prefill_bootstrap_queue_reqs"),
        ({"role": "dynamic", "pd": PD_EMPTY["decode"]}, "prefill_bootstrap_queue_reqs, prefill_inflight_queue_reqs"),
        ({"role": ""}, "pd_queues"),
    ],
)
@pytest.mark.parametrize("which", ["before", "now", "both"])
def test_one_reading_that_is_unknown_leaves_idle_unproven_and_is_named(
    missing: dict[str, Any], named: str, which: str
) -> None:
    role = missing.get("role", "unified")
    whole = {"role": role, "pd": {**PD_EMPTY["prefill"], **PD_EMPTY["decode"]}} if role != "unified" else {}
    if role == "":
        whole = missing
    open_ = judged(missing if which != "now" else whole, missing if which != "before" else whole)
    assert found(open_) == ("not_proven", ["state.unread"])
    assert open_.findings[0].values["readings"] == named
    assert open_.unknown == tuple(named.split(", "))
    assert open_.is_in("idle") is None
    assert open_.is_in("hung") is None


def test_a_router_that_does_not_answer_or_counts_requests_leaves_idle_unproven() -> None:
    assert found(judged({}, {}, router=(None, 0))) == ("not_proven", ["state.unread"])
    assert judged({}, {}, router=(0, None)).unknown == ("router_in_flight",)
    assert found(judged({}, {}, router=(0, 3))) == ("not_proven", ["state.router-busy"])
    # they may be another engine's, so this one is not called hung either
    assert judged({}, {}, router=(3, 3)).possible == ("idle", "hung")
    looks = [Look(scrape(engine_text(), at)) for at in (-60, 0)]
    assert judge_state(looks[0], looks[1]).word == "idle"  # nothing stands before it


def test_a_router_among_others_that_was_not_scraped_is_unknown() -> None:
    looks = [Look(scrape(engine_text(), at), routers(0, None, at=at)) for at in (-60, 0)]
    assert judge_state(looks[0], looks[1]).unknown == ("router_in_flight",)


@pytest.mark.parametrize(
    "work",
    [{"queued": 3, "http": 3}, {"http": 1}, {"running": 5}, {"running": 5, "http": None},
     {"role": "decode", "pd": {**PD_EMPTY["decode"], "num_decode_transfer_queue_reqs": 2}},
     {"role": "prefill", "pd": {"num_prefill_inflight_queue_reqs": 2}}],
)  # fmt: skip
def test_work_without_any_progress_for_long_enough_is_hung(work: dict[str, Any]) -> None:
    hung = judged(work, work)
    assert found(hung) == ("hung", [])
    tokens = [(c.value, c.time - NOW) for c in hung.citations if c.name == "generation_tokens_total"]
    assert tokens == [(8830112, -60), (8830112, 0)]
    # each counter must stand still
    moving = judged(work | {"tokens": None, "num_requests_total": 4}, work | {"tokens": None, "num_requests_total": 5})
    assert moving.word == "busy" or moving.is_in("busy")
    assert found(judged(work, work, gap=29)) == ("not_proven", ["state.too-close"])
    assert found(judged(work, work, gap=30)) == ("hung", [])


def test_one_sample_cannot_tell_hung_from_busy() -> None:
    one = judged(None, {"queued": 3, "http": 3})
    assert found(one) == ("not_proven", ["state.one-sample"])
    assert (one.is_in("idle"), one.is_in("hung"), one.is_in("busy")) == (False, None, None)
    assert (one.has_work, judged(None, {}).has_work, judged(None, {"http": None}).has_work) == (True, False, None)
    calm = judged(None, {})
    assert found(calm) == ("not_proven", ["state.one-sample-idle"])
    assert (calm.is_in("idle"), calm.is_in("hung"), calm.is_in("busy")) == (None, False, None)
    blind = judged(None, {"http": None})
    assert blind.possible == ALL
    same_time = judged({"queued": 3}, {"queued": 3}, gap=0)
    assert found(same_time) == ("not_proven", ["state.one-sample"])


@pytest.mark.parametrize(
    ("before", "now", "word"),
    [
        ({}, {"tokens": 8830113}, "busy"),  # came and went between the looks
        ({"running": 5}, {"running": 5, "tokens": 8830200}, "busy"),
        ({"running": 5, "queued": 9}, {"running": 5, "queued": 4, "tokens": 8830200}, "busy"),
        ({"running": 5, "queued": 0}, {"running": 5, "queued": 4, "tokens": 8830200}, "busy"),
        ({"running": 5, "queued": 37}, {"running": 5, "queued": 39, "tokens": 8830200}, "saturated"),
        ({"running": 5, "queued": 37}, {"running": 5, "queued": 37, "tokens": 8830200}, "saturated"),
        ({"queued": 3, "started": None}, {"queued": 3, "started": None, "tokens": 8830113}, "saturated"),
    ],
)
def test_progress_is_busy_and_a_queue_that_does_not_shrink_saturated(
    before: dict[str, Any], now: dict[str, Any], word: str
) -> None:
    busy = judged(before, now)
    assert found(busy) == (word, [])
    assert busy.is_in("busy") is True
    moved = busy.moved[0]
    assert (moved.name, moved.over_s, moved.unit) == ("generation_tokens_total", 60, "tokens")
    assert moved.by == now["tokens"] - 8830112


def test_progress_with_an_unknown_queue_is_busy_all_the_same() -> None:
    open_ = judged({"queued": None}, {"queued": None, "tokens": 8830200})
    assert found(open_) == ("not_proven", ["state.queue-unknown"])
    assert open_.is_in("busy") is True


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"queued": 3, "started": STARTED}, {"queued": 3, "started": NOW - 20}),
        ({"queued": 3, "tokens": 900}, {"queued": 3, "tokens": 100}),
        ({"queued": 3, "started": None, "tokens": 900}, {"queued": 3, "started": None, "tokens": 100}),
    ],
)
def test_nothing_is_proven_across_a_restart(before: dict[str, Any], now: dict[str, Any]) -> None:
    open_ = judged(before, now)
    assert found(open_) == ("not_proven", ["state.restarted"])
    assert open_.moved == ()
    assert open_.is_in("hung") is None


def test_a_start_that_is_not_told_matters_only_where_a_new_process_would_look_the_same() -> None:
    unknown = {"started": None, "queued": 3}
    assert judged(unknown, unknown).word == "hung"  # a new process would not have counted to 8830112
    fresh = unknown | {"tokens": 0}
    assert found(judged(fresh, fresh)) == ("not_proven", ["state.start-unknown"])
    assert found(judged({"started": None, "tokens": 0}, {"started": None, "tokens": 0}))[1] == ["state.start-unknown"]
    assert judged({"tokens": 0}, {"tokens": 0}).word == "idle"


def test_without_a_counter_there_is_no_telling() -> None:
    assert found(judged({"tokens": None}, {"tokens": None})) == ("not_proven", ["state.no-counters"])
    hung = judged({"tokens": None, "queued": 3}, {"tokens": None, "queued": 3})
    assert hung.possible == ("busy", "hung", "saturated")


def test_work_in_one_look_only_is_neither_idle_nor_hung() -> None:
    assert found(judged({}, {"queued": 3})) == ("not_proven", ["state.work-once"])
    assert judged({}, {"queued": 3}).is_in("idle") is False
    assert judged({"queued": 3}, {}).possible == ("idle", "hung")


def test_two_looks_within_a_second_do_not_prove_idle() -> None:
    assert found(judged({}, {}, gap=0.5)) == ("not_proven", ["state.too-close"])
    assert judged({}, {}, gap=1).word == "idle"


def test_ranks_repeat_the_same_requests_and_ranks_that_disagree_are_unknown() -> None:
    many = {"ranks": 4, "queued": 3}
    assert [c.value for c in judged(many, many).citations if c.name == "num_queue_reqs"] == [3, 3]
    text = engine_text(ranks=2)
    apart = re.sub(r'(num_queue_reqs\{.*tp_rank="1"\}) 0', r"\1 2", text)
    assert apart != text
    open_ = judged(apart, apart)
    assert found(open_) == ("not_proven", ["state.unread"])
    assert open_.unknown == ("queued",)


def test_vllm_is_read_by_its_own_names() -> None:
    assert judged(vllm_text(waiting=3), vllm_text(waiting=3)).word == "hung"
    assert judged(vllm_text(waiting=3), vllm_text(waiting=3, tokens=501)).word == "saturated"
    calm = judged(vllm_text(), vllm_text())
    assert (calm.word, calm.unknown) == ("not_proven", ("http_active",))  # it exports none


def test_the_role_that_the_engine_does_not_tell_can_be_given() -> None:
    old = engine_text(role="").replace('engine_type="",', "")
    assert judged(old, old).unknown == ("pd_queues",)
    assert judged(old, old, role="unified").word == "idle"


def test_a_service_is_what_its_worst_instance_is() -> None:
    def of(*words: Any) -> str:
        one = together({f"decode@gpu{n}": state(word) for n, word in enumerate(words)})
        assert one is not None
        return one.word

    assert [of("idle", "idle"), of("idle", "busy"), of("busy", "saturated"), of("idle", "hung")] == [
        "idle", "busy", "saturated", "hung",
    ]  # fmt: skip
    both = together({"a": state("busy"), "b": state("idle", "hung")})
    assert both is not None
    assert (both.possible, both.unknown) == (("busy", "hung"), ("b HTTP active",))
    assert together({"a": state("hung"), "b": state("idle", "hung")}) is not None
    assert together({}) is None
