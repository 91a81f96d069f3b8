"""What an engine does against what its health check says: neither a 503 nor a 200 is the whole of it.

Source: FACTS-serving 3.4, an engine's health check fails while a long prefill runs, and answers 200 while nothing comes
out where its generation is switched off.
"""

from __future__ import annotations

from collections.abc import Iterator

from policies.facts import HttpAnswer
from policies.finding import Effect, Finding
from policies.preflight.look import Look

Values = dict[str, str | float | None]


def check(look: Look) -> Iterator[Finding]:
    """Warnings: it hangs behind a 200, or its check fails and whether it works is not known."""
    state, health = look.state, answer(look, "health")
    if state is None or health is None:
        return
    if health.status == 200:
        if state.is_in("hung"):
            yield look.finding("plan.hung-behind-health", "warn", status=health.status, **_readings(look))
    elif state.is_in("hung"):
        yield look.finding("plan.hung", "warn", **_failed(health), **_readings(look))
    elif state.is_in("busy"):
        if look.reset:
            yield _busy(look, health, "plan.busy-restarted", "warn")
        elif look.anyway is not None:
            yield _busy(look, health, "plan.busy-restarted-anyway", "warn")
    elif state.is_in("busy") is None:
        why = state.findings[0].code.removeprefix("state.") if state.findings else "unread"
        yield look.finding("plan.health-fails-unknown-work", "warn", **_failed(health), why=why.replace("-", " "))


def refuse(look: Look) -> Iterator[Finding]:
    """An engine that makes progress while its health check fails is not dead; a person may say `anyway`."""
    health = answer(look, "health")
    if look.state is None or health is None or health.status == 200 or look.anyway is not None:
        return
    # what worked a moment ago and has nothing to do now loses nothing
    if look.state.is_in("busy") and look.state.has_work is not False:
        yield _busy(look, health, "plan.busy-not-dead", "refuse")


def answer(look: Look, name: str) -> HttpAnswer | None:
    """The answer of one of the unit's endpoints."""
    return next((found for found in look.unit.http if found.id == name), None)


def _busy(look: Look, health: HttpAnswer, code: str, effect: Effect) -> Finding:
    moved = look.state.moved[0] if look.state is not None and look.state.moved else None
    progress: Values = {"counter": None, "by": None, "over_s": None, "rate": None}
    if moved is not None:
        progress = {"counter": moved.name, "by": moved.by, "over_s": moved.over_s, "rate": moved.by / moved.over_s}
    return look.finding(code, effect, actor=look.anyway, **_failed(health), **progress, **_readings(look))


def _failed(health: HttpAnswer) -> Values:
    return {"status": health.status, "took_s": health.took_s}


def _readings(look: Look) -> Values:
    """Queue and batch, at both looks where there were two."""
    found: Values = {}
    for word, names in (("queued", QUEUED), ("running", RUNNING)):
        read = [c for c in (look.state.citations if look.state is not None else ()) if c.name in names]
        read.sort(key=lambda c: c.time)
        found[f"{word}_before"] = read[0].value if read else None
        found[word] = read[-1].value if read else None
        found["at"] = read[-1].time if read else look.unit.at
    return found


QUEUED = frozenset({"num_queue_reqs", "num_requests_waiting"})
RUNNING = frozenset({"num_running_reqs", "num_requests_running"})
