"""The end of a unit's log, as people's text: quoted, never understood, except for a line that names the knob."""

from __future__ import annotations

from policies.facts import LogTail, UnitFacts
from policies.finding import Finding

LINES = 6
MOST = 600  # characters, of the end: what a program says last is why it ended
BREAK = " ⏎ "


def tail(instance: str, unit: UnitFacts) -> tuple[Finding, ...]:
    """The last lines; or why there are none."""
    log = unit.log
    if log is None:
        return ()
    values: dict[str, str | int | float | None] = {"instance": instance, "source": log.source}
    if not log.lines:
        return (Finding(code="gate.log-none", effect="note", values={**values, "error": log.error or "empty"}),)
    text = BREAK.join(line.strip() for line in log.lines[-LINES:])
    cut = text if len(text) <= MOST else f"…{text[-MOST:]}"
    return (Finding(code="gate.log-tail", effect="note", values={**values, "text": cut}),)


def about(instance: str, log: LogTail | None, variable: str, code: str = "gate.log-about") -> tuple[Finding, ...]:
    """The last line that names the variable: an engine says there why it took its default instead."""
    line = next((x.strip() for x in reversed(log.lines) if variable in x), None) if log is not None else None
    if log is None or line is None:
        return ()
    values: dict[str, str | int | float | None] = {"instance": instance, "source": log.source, "variable": variable}
    return (Finding(code=code, effect="note", values={**values, "text": line[:MOST]}),)
