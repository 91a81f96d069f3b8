"""The watch after the last gate: what may not rise or change while a change settles.

A counter that is missing is not measured and is said so; one that fell was reset by a restart, itself a finding.
Source: FACTS on PD fleets: after a co-restart, failed transfers and 5xx stay at 0 for five minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, nan

from policies.events import BakeReading
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.metrics.names import RANKS
from policies.metrics.samples import read_scrape

# sample name -> short name of what is counted; the series of a name are added, except those that are no failure
COUNTERS = {
    "sglang:num_transfer_failed_reqs_total": "failed-transfers",
    "sglang:http_responses_total": "http-5xx",
    "smg_router_request_errors_total": "router-errors",
    "smg_router_upstream_responses_total": "upstream-5xx",
    "DCGM_FI_DEV_XID_ERRORS": "gpu-xid",
}
BY_STATUS = {"http-5xx", "upstream-5xx"}
SAME_REQUESTS = frozenset(RANKS.split(", "))  # labels of ranks that repeat the same requests


def reading(unit: UnitFacts) -> BakeReading:
    """What one look at a unit says for the watch."""
    answer = next((a for a in unit.http if a.id == "metrics"), None)
    text = answer.body if answer is not None and answer.status == 200 and not answer.truncated else ""
    return BakeReading(
        incarnation=unit.incarnation,
        n_restarts=unit.n_restarts,
        result=unit.result,
        active_state=unit.active_state,
        counters=counters(text),
    )


def counters(text: str) -> dict[str, float]:
    """Failures counted in a metrics text, by short name; what it does not have, or not as a number, is not in it.

    Ranks that repeat the same requests count once, with the greatest. Of series by priority the total counts.
    Source: FACTS-serving 3.1.
    """
    scrape = read_scrape(text, instance="", url="", at=0.0)
    ranked: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for sample in () if isinstance(scrape, Finding) else scrape.samples:
        word = COUNTERS.get(sample.name)
        if word is None or sample.labels.get("priority"):
            continue
        bad = word not in BY_STATUS or sample.labels.get("status_code", "").startswith("5")
        series = tuple(sorted((k, v) for k, v in sample.labels.items() if k not in SAME_REQUESTS))
        known = ranked.setdefault(word, {})
        # a rank that does not know makes the whole unknown, and `max` would pass over it
        values = (known.get(series, 0.0), sample.value if bad or not isfinite(sample.value) else 0.0)
        known[series] = max(values) if all(map(isfinite, values)) else nan
    sums = {word: sum(series.values()) for word, series in ranked.items()}
    return {word: total for word, total in sums.items() if isfinite(total)}


def judge(before: Mapping[str, BakeReading], now: Mapping[str, BakeReading]) -> tuple[Finding, ...]:
    """What speaks against the change since the watch began, by instance; empty when nothing does."""
    found: list[Finding] = []
    for instance, then in before.items():
        seen = now.get(instance)
        if seen is None:
            continue
        found += _life(instance, then, seen)
        for word, count in then.counters.items():
            rise = seen.counters.get(word, count) - count
            if rise > 0 and then.incarnation == seen.incarnation:
                values: dict[str, str | int | float | None] = {"instance": instance, "what": word, "rise": rise}
                found.append(Finding(code="bake.failures-rose", effect="refuse", values=values))
    return tuple(found)


def measured(before: Mapping[str, BakeReading]) -> tuple[Finding, ...]:
    """What was watched, so that silence about the rest is not taken for health."""
    words = sorted({word for one in before.values() for word in one.counters})
    if not words:
        return (Finding(code="bake.no-counters", effect="note", values={}),)
    return (Finding(code="bake.counters", effect="note", values={"what": ", ".join(words)}),)


def _life(instance: str, then: BakeReading, seen: BakeReading) -> list[Finding]:
    values: dict[str, str | int | float | None] = {"instance": instance, "result": seen.result}
    if seen.result == "oom-kill":
        return [Finding(code="bake.out-of-memory", effect="refuse", values=values)]
    if seen.active_state != "active":
        values["state"] = seen.active_state
        return [Finding(code="bake.not-active", effect="refuse", values=values)]
    if seen.incarnation != then.incarnation:
        pids = {"old_pid": then.incarnation.main_pid, "new_pid": seen.incarnation.main_pid}
        # a count that grew says that systemd itself started it again
        crashed = (seen.n_restarts or 0) > (then.n_restarts or 0)
        code = "bake.crashed" if crashed else "bake.restarted"
        return [Finding(code=code, effect="refuse", values={**values, **pids, "restarts": seen.n_restarts})]
    return []
