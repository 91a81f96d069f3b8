"""What a restart order costs the requests of this moment: how many it cuts, how old they are, how long a stop may take.

Read from an engine's or router's metrics text and from the units. Shown beside a plan, never part of its digest.

Ranks repeat the same requests: one attention rank per dp_rank counts, then dp_ranks are added. With priority
scheduling the series with priority="" is the total. A family that is missing is no data, never 0.
Source: SGLang 0.5.23 metrics; both rules are stated there for multi-rank schedulers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families

from policies.facts import HttpAnswer, UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet

RUNNING = "sglang:num_running_reqs"
QUEUED = "sglang:num_queue_reqs"
# Source: smg's own description, "per age bucket (gt < age <= le, non-cumulative)"
AGES = "smg_http_inflight_request_age_count"


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


def oldest_over_s(text: str) -> float | None:
    """The age that the oldest request of a router is over, as far as its buckets tell; None when they tell none.

    Units: seconds.
    """
    try:
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        bounds = [float(s.labels.get("gt", "0")) for s in samples if s.name == AGES and s.value > 0]
    except ValueError:
        return None
    oldest = max(bounds, default=0.0)
    return oldest if isfinite(oldest) and oldest > 0 else None


def plan_load(
    fleet: Fleet, restarted: Sequence[str], aimed: Sequence[str], facts: Mapping[str, UnitFacts]
) -> tuple[Finding, ...]:
    """Everything that restarting these instances costs now. aimed: those whose load is told even when unknown."""
    oldest = _oldest(facts)
    told = [_load(fleet, i, facts[i], aimed=i in aimed) for i in restarted]
    found = [finding for finding in told if finding is not None]
    if oldest is not None:
        found.append(oldest)
    age_s = oldest.values["older_than_s"] if oldest is not None else None
    found += [_stop(i, facts[i], float(age_s) if age_s is not None else None) for i in restarted]
    return (*found, *_left_out(fleet, tuple(dict.fromkeys(facts[i].service for i in restarted))))


def _load(fleet: Fleet, instance: str, facts: UnitFacts, *, aimed: bool) -> Finding | None:
    """The load of one instance. One that is no engine has none of its own: its requests are those of the engines."""
    if fleet.services[facts.service].metrics is None:
        return None
    found = load_finding(instance, next((a for a in facts.http if a.id == "metrics"), None))
    return found if aimed or found.code == "load.in-flight" else None


def _oldest(facts: Mapping[str, UnitFacts]) -> Finding | None:
    oldest: Finding | None = None
    most_s = 0.0
    for instance, unit in facts.items():
        answer = next((a for a in unit.http if a.id == "metrics" and a.status == 200), None)
        age_s = oldest_over_s(answer.body) if answer is not None else None
        if answer is not None and age_s is not None and age_s > most_s:
            values: dict[str, str | int | float | None] = {"instance": instance, "older_than_s": age_s}
            values |= {"at": answer.at, "url": answer.url}
            oldest, most_s = Finding(code="load.oldest", effect="note", values=values), age_s
    return oldest


def _stop(instance: str, facts: UnitFacts, oldest_s: float | None) -> Finding:
    """How long systemd waits for the stop before it kills, with a warning when requests take longer than that."""
    values: dict[str, str | int | float | None] = {"instance": instance, "unit": facts.unit}
    if facts.timeout_stop_s is None:
        return Finding(code="load.stop-unlimited", effect="note", values=values)
    values |= {"timeout_stop_s": facts.timeout_stop_s, "older_than_s": oldest_s}
    if oldest_s is not None and oldest_s >= facts.timeout_stop_s:
        return Finding(code="load.stop-too-short", effect="warn", values=values)
    return Finding(code="load.stop-timeout", effect="note", values=values)


def _left_out(fleet: Fleet, restarted: Sequence[str]) -> tuple[Finding, ...]:
    """Services that a restarted one needs and that this order leaves running.

    Source: FACTS-serving 4.3, a prefill holds the KV of a decode that died until it is restarted itself (NIXL).
    """
    found: dict[str, list[str]] = {}
    for service in restarted:
        for needed in fleet.services[service].needs:
            if needed not in restarted:
                found.setdefault(needed, []).append(service)
    return tuple(
        Finding(code="load.left-out", effect="note", values={"left": left, "restarted": ", ".join(services)})
        for left, services in found.items()
    )


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
