"""What a router lists, registered again as it was; what its numbers say of one worker, and what they do not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.facts import HttpAnswer
from policies.finding import Finding
from policies.gates import admitted
from policies.metrics.samples import Scrape, read_scrape
from policies.plan import DrainStep, Registration
from policies.routers.breaker import breaker_of, in_flight_at
from policies.routers.foreseen import foreseen
from policies.routers.listed import Listed, differs, matching, read_workers, same_worker
from policies.states.drained import judge_drained
from tests.policies import builders as b
from tests.shared import ROOT

WORKER = "http://127.0.0.1:30001"
AT = Registration(router="router@gpu1", api="http://127.0.0.1:30080", worker=WORKER, kind="decode")
GOLDEN = ROOT / "tests" / "golden" / "routers"
CASES = b.golden("gates/admitted.json")


def answer(text: str, status: int | None = 200) -> HttpAnswer:
    error = None if status is not None else "connection refused"
    return HttpAnswer(id="workers", url="http://r/workers", status=status, body=text, error=error, at=5.0, took_s=0.1)


def scrape(text: str, at: float = 10.0) -> Scrape:
    found = read_scrape(text, instance="decode@gpu1", url="http://m", at=at)
    assert isinstance(found, Scrape)
    return found


def pd() -> tuple[Listed, ...]:
    found = read_workers("router@gpu1", answer((GOLDEN / "pd.json").read_text()))
    assert not isinstance(found, Finding)
    return found


@pytest.mark.parametrize("case", CASES, ids=b.ids(CASES))
def test_an_instance_is_admitted_when_all_three_are_read_and_hold(case: dict[str, Any]) -> None:
    url = case.get("url", WORKER)
    one = {"id": "a", "url": url, "worker_type": "decode", "is_healthy": case.get("healthy")}
    text = case.get("text", json.dumps({"workers": [] if case.get("empty") else [one]}))
    series = f'smg_worker_cb_state{{worker="{url}"}} {case["cb"]}\n' if "cb" in case else "up 1\n"
    metrics = scrape(series) if case.get("metrics", "") is not None else None
    listed = read_workers(AT.router, answer(text, case.get("status", 200)))
    verdict = admitted.judge("decode@gpu1", AT, listed, metrics, was_registered=case.get("was", True), waited_s=1.0)
    assert (verdict.answer, verdict.findings[0].code) == (case["answer"], case["code"])


def test_what_somebody_asked_for_is_asked_for_again_and_what_the_worker_says_itself_is_not() -> None:
    first, second, third = pd()
    assert first.body == {"url": first.url, "worker_type": "prefill", "bootstrap_port": 9001}
    assert second.body == {"url": second.url, "worker_type": "prefill"}
    assert third.body == {
        "url": third.url,
        "worker_type": "decode",
        "priority": 70,
        "cost": 2.5,
        "labels": {"team": "x"},
    }
    named = third.model_copy(update={"model_id": "alias", "no_health_check": True})
    assert (named.body["model_id"], named.body["disable_health_check"]) == ("alias", True)


def test_a_rank_is_registered_by_the_url_of_its_worker() -> None:
    rank = pd()[2].model_copy(update={"url": f"{WORKER}@3"})
    assert rank.body["url"] == WORKER
    assert matching([rank], WORKER) == (rank,)


def test_in_what_a_registration_differs_from_the_fleet_file_is_named() -> None:
    first = pd()[0].model_copy(update={"url": f"{WORKER}/"})
    assert differs(AT, first) == (
        f"url {WORKER}/ instead of {WORKER}",
        "type prefill instead of decode",
        "bootstrap port 9001 instead of none",
    )
    assert differs(AT.model_copy(update={"kind": "prefill", "bootstrap_port": 9001, "worker": first.url}), first) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://h:1", "http://h:1/", True),
        ("http://H:1", "h:1", True),
        ("http://h", "http://h:80", True),
        ("http://h:1@0", "http://h:1@7", True),
        ("http://h:1", "http://h:11", False),
        ("http://h:1", "http://g:1", False),
        ("http://h:x", "http://h:1", False),
    ],
)
def test_one_worker_is_known_by_host_and_port(one: str, other: str, same: bool) -> None:  # as given
    assert same_worker(one, other) is same


def test_the_breaker_is_that_of_the_spelling_that_is_listed() -> None:
    metrics = scrape((GOLDEN / "metrics.txt").read_text())
    ports = {41973: "closed", 41974: "open", 41975: "half open", 56899: "removed", 1: "unknown"}
    assert {port: breaker_of(metrics, [f"http://127.0.0.1:{port}"]) for port in ports} == ports
    assert breaker_of(metrics, ["http://127.0.0.1:41973", "http://127.0.0.1:41974"]) == "open"
    assert (breaker_of(metrics, []), breaker_of(None, ["http://127.0.0.1:41973"])) == ("unknown", "unknown")


def test_that_a_router_counts_nothing_is_no_zero() -> None:
    metrics = scrape((GOLDEN / "metrics.txt").read_text())
    assert in_flight_at(metrics, "http://127.0.0.1:56899/") == 2
    assert in_flight_at(metrics, "http://127.0.0.1:41973") is None
    assert in_flight_at(scrape('smg_worker_requests_active{worker="http://h:1"} 0\n'), "http://h:1") is None


def drain(host: str, worker: str) -> DrainStep:
    at = AT.model_copy(update={"worker": worker})
    return DrainStep(host=host, service="decode", unit="decode.service", at=(at,), deadline_s=60.0, over="hold")


def known(worker: str, **more: object) -> Listed:
    return Listed.model_validate({"id": "a", "url": worker, "kind": "decode", "healthy": True, **more})


def codes(listed: tuple[Listed, ...] | Finding, *steps: DrainStep) -> list[tuple[str, str]]:
    return [(one.code, one.effect) for one in foreseen(AT, steps, listed)]


def test_what_a_drain_will_meet_is_found_before_anything_is_touched() -> None:
    one, other, third = (f"http://10.0.0.{n}:30001" for n in (1, 2, 3))
    first, second = drain("gpu1", one), drain("gpu2", other)
    everybody = (known(one), known(other), known(third))
    assert codes(everybody, first, second) == []
    assert codes(everybody[:2], first, second) == [("plan.last-worker", "warn")]
    assert codes((known(one), known(other, healthy=False)), first) == [("plan.last-worker", "warn")]
    assert codes((known(one), known(other, kind="prefill")), first) == [("plan.last-worker", "warn")]
    assert codes((known(other), known(third)), first) == [("plan.not-registered", "warn")]
    assert codes((known(f"{one}/"), known(third)), first) == [("plan.as-registered", "note")]
    assert codes((known(f"{one}@0"), known(f"{one}@1"), known(third)), first) == [("plan.ranked-worker", "refuse")]
    away, shut = (read_workers("router@gpu1", answer("", status)) for status in (None, 401))
    assert (codes(away, first), codes(shut, first)) == (
        [("router.no-answer", "warn")],
        [("router.forbidden", "refuse")],
    )


def engine(*, at: float, running: float = 0, queued: float = 0, transfer: float = 0, http: float | None = 0) -> Scrape:
    lines = [
        f'sglang:num_running_reqs{{engine_type="decode"}} {running}',
        f'sglang:num_queue_reqs{{engine_type="decode"}} {queued}',
        'sglang:num_decode_prealloc_queue_reqs{engine_type="decode"} 0',
        f'sglang:num_decode_transfer_queue_reqs{{engine_type="decode"}} {transfer}',
        "sglang:generation_tokens_total 500",
        "process_start_time_seconds 1",
    ]
    if http is not None:
        lines.append(f'sglang:http_requests_active{{endpoint="/v1/completions"}} {http}')
    return scrape("\n".join(lines) + "\n", at)


@pytest.mark.parametrize("what", ["running", "queued", "transfer", "http"])
def test_each_reading_alone_keeps_an_instance_from_being_empty(what: str) -> None:
    found = judge_drained(engine(at=1.0), engine(at=3.0, **{what: 2}), [None])
    assert (found.empty, found.left) == (False, 2)


def test_nothing_in_flight_needs_two_looks_at_counters_that_stand_still() -> None:
    one, other = engine(at=1.0), engine(at=2.0)
    assert judge_drained(one, other, [None]).empty
    assert judge_drained(None, other, [None]) == judge_drained(engine(at=1.9), other, [None])
    assert judge_drained(None, other, [None]).unknown == ("counters",)


def test_what_a_router_counts_speaks_against_it_and_a_missing_reading_is_no_zero() -> None:
    one = engine(at=1.0)
    counted = judge_drained(one, engine(at=2.0), [3.0])
    assert (counted.empty, counted.left) == (False, 3)
    lacking = judge_drained(engine(at=1.0, http=None), engine(at=2.0, http=None), [None])
    assert (lacking.empty, lacking.left, lacking.unknown) == (False, None, ("http_active",))
    assert judge_drained(one, None, [None]).unknown == ("metrics",)
    assert judge_drained(one, scrape("up 1\n"), [None]).empty is False


KEYS = st.sampled_from(["workers", "id", "url", "worker_type", "metadata", "is_healthy"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("decode"),
    lambda below: st.lists(below) | st.dictionaries(KEYS, below),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(), JSON.map(json.dumps)))
@example('{"workers": [{"id": "\\ud800", "url": "http://\\ud800", "worker_type": "decode"}]}')
@example("[" * 60_000)
def test_whatever_a_router_answers_is_a_list_that_can_be_recorded_or_says_why_not(text: str) -> None:
    found = read_workers("router@gpu1", answer(text))
    assert isinstance(found, Finding) or all(Listed.model_validate_json(x.model_dump_json()) == x for x in found)
