"""What a restart order costs the requests of this moment: how many it cuts, how old they are, how long a stop may take.

Read from an engine's or router's metrics text and from the units. Shown beside a plan, never part of its digest.

What an engine says of itself is read by `policies.metrics.engine`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from policies.facts import HttpAnswer, UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.metrics.engine import Engine
from policies.metrics.names import AGES
from policies.metrics.samples import answered_scrape, read_scrape

# Source: smg's own description of AGES, "per age bucket (gt < age <= le, non-cumulative)"


def oldest_over_s(text: str) -> float | None:
    """The age that the oldest request of a router is over, as far as its buckets tell; None when they tell none.

    Units: seconds.
    """
    scrape = read_scrape(text, instance="", url="", at=0.0)
    if isinstance(scrape, Finding):
        return None
    try:
        bounds = [float(s.labels.get("gt", "0")) for s in scrape.named(AGES) if s.value > 0]
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
    scrape = answered_scrape(instance, answer)
    engine = None if isinstance(scrape, Finding) else Engine(scrape)
    if engine is None or engine.running.value is None or engine.queued.value is None:
        return Finding(code="load.unknown", effect="warn", values={"instance": instance, "status": answer.status})
    values: dict[str, str | int | float | None] = {"instance": instance, "at": answer.at, "url": answer.url}
    values |= {"running": engine.running.value, "queued": engine.queued.value}
    return Finding(code="load.in-flight", effect="note", values=values)
