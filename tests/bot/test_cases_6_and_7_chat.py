"""Cases 6 and 7 in chat: generation dead behind a health of 200, and an engine that is only busy behind a 503."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sandbox.slack import SlackSandbox
from tests.bot.dumps import case_text
from tests.bot.test_stating import Chat, shown
from tests.conftest import Store
from tests.policies.scrapes import router_text

DEAD = "scrape at 10:00:00"
BUSY = "scrape at t and t+30 s"


@pytest.fixture
def chat(store: Store, slack: SlackSandbox) -> Chat:
    return Chat(store, slack)


def answer(chat: Chat) -> str:
    """What was told to ana last, whole."""
    told: list[dict[str, Any]] = chat.slack.people.transcript("C0PERF", seen_by="U0ANA")
    return shown([m for m in told if m["ephemeral_to"] == "U0ANA"][-1])


def exports(chat: Chat, instance: str, text: str, in_flight: int) -> None:
    """The engine of the report stands where one of ours does; the others are as they always are."""
    began = f"process_start_time_seconds {chat.now - 78_000}"
    text = re.sub(r"^process_start_time_seconds .*$", began, text, flags=re.MULTILINE)
    chat.said = {instance: text, "router@gpu1": router_text(in_flight)}


def dead(chat: Chat) -> None:
    """Two identical scrapes a minute apart: 3 wait, none runs, no token comes."""
    exports(chat, "decode@gpu1", case_text(6, DEAD), 3)
    chat.metrics.record(chat.now - 60)


def busy(chat: Chat, then: bool) -> str:
    """The text of the report at its first or its second time."""
    lines = []
    for line in case_text(7, BUSY).strip().splitlines():
        series, _, values = line.partition("} ")
        first, _, second = (part.strip() for part in values.partition("->"))
        lines.append(f"{series}}} {second if then else first}")
    return "process_start_time_seconds 1\n" + "\n".join(lines) + "\n"


def test_case_6_the_engine_is_hung_with_the_readings_of_both_times_and_no_200_is_proof(chat: Chat) -> None:
    dead(chat)
    chat.command("/cause why decode")
    said = answer(chat)
    assert "decode: engine hung" in said
    for reading in ("num_queue_reqs=3 requests", "num_running_reqs=0 requests", "http_requests_active=3 requests"):
        assert said.count(reading) >= 2, reading  # at both times
    assert said.count("generation_tokens_total=8830112 tokens") >= 2
    assert "speaks against `cold-start`: uptime_s=78000 s" in said
    assert "healthy" not in said
    assert "a health check that answers 200 says nothing about any of this" in said


def test_case_6_engine_hung_is_consistent_and_cold_start_is_refused_by_the_start_of_the_process(chat: Chat) -> None:
    dead(chat)
    chat.command('/cause "cold start"')
    chat.command('/cause "engine hung"')
    cold, hung = (shown(message) for message in chat.public())
    assert "cause: not established; measured uptime_s=78000 s" in cold
    assert "which speaks against it" in cold
    assert "engine hung" in cold  # what it was doing meanwhile
    assert "consistent with `state == hung`" in hung
    assert "num_queue_reqs=3 requests" in hung
    assert "generation_tokens_total=8830112 tokens" in hung
    assert "health" not in cold + hung


def test_case_6_one_scrape_cannot_tell_hung_from_busy(chat: Chat) -> None:
    exports(chat, "decode@gpu1", case_text(6, DEAD), 3)
    chat.command('/cause "engine hung"')
    (message,) = chat.public()
    assert "cause: not established" in shown(message)
    assert "consistent with" not in shown(message).split("what the readings agree with")[0]
    assert "are needed" in shown(message) or "one sample" in shown(message)


def test_case_7_a_busy_prefill_is_not_dead(chat: Chat) -> None:
    exports(chat, "prefill@gpu1", busy(chat, then=False), 40)
    chat.metrics.record(chat.now - 30)
    exports(chat, "prefill@gpu1", busy(chat, then=True), 42)
    chat.command("/cause why prefill")
    said = answer(chat)
    assert "prefill: engine saturated" in said
    assert re.search(r"realtime_tokens_total \+262144 tokens in 3\d(\.\d)? s", said)
    assert "num_queue_reqs=39 requests" in said
    assert "hung" not in said
    chat.command('/cause "engine hung"')
    (message,) = chat.public()
    assert "cause: not established" in shown(message)
    assert "engine saturated" in shown(message)
