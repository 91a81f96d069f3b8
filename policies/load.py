"""Requests in flight, read from an engine's metrics text.

Ranks repeat the same requests: one attention rank per dp_rank counts, then dp_ranks are added. With priority
scheduling the series with priority="" is the total. A family that is missing is no data, never 0.
Source: SGLang 0.5.23 metrics; both rules are stated there for multi-rank schedulers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families

from policies.facts import HttpAnswer
from policies.finding import Finding

RUNNING = "sglang:num_running_reqs"
QUEUED = "sglang:num_queue_reqs"


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests. None: the metrics do not say."""

    running: float | None
    queued: float | None


def in_flight(text: str) -> InFlight:
    """Running and queued requests of one engine; unreadable text is no data."""
    ranks: dict[str, dict[str, float]] = {RUNNING: {}, QUEUED: {}}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name in ranks and sample.labels.get("priority", "") == "":
                    dp = sample.labels.get("dp_rank", "0")
                    if not isfinite(sample.value):
                        return InFlight(None, None)  # NaN is how an engine says that it does not know
                    ranks[sample.name][dp] = max(sample.value, ranks[sample.name].get(dp, 0.0))
    except ValueError:
        return InFlight(None, None)
    return InFlight(_total(ranks[RUNNING]), _total(ranks[QUEUED]))


def load_finding(instance: str, answer: HttpAnswer | None) -> Finding:
    """How many requests a restart of this instance would cut, cited with source and time; or that it is not known."""
    if answer is None or answer.status != 200 or answer.truncated:  # a cut line is another number
        status = answer.status if answer else None
        return Finding(code="load.unknown", effect="warn", values={"instance": instance, "status": status})
    found = in_flight(answer.body)
    values: dict[str, str | int | float | None] = {"instance": instance, "at": answer.at, "url": answer.url}
    if found.running is None or found.queued is None:
        return Finding(code="load.unknown", effect="warn", values={"instance": instance, "status": answer.status})
    values |= {"running": found.running, "queued": found.queued}
    return Finding(code="load.in-flight", effect="note", values=values)


def _total(by_dp: dict[str, float]) -> float | None:
    return sum(by_dp.values()) if by_dp else None
