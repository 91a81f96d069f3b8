"""What `clawback cause check` prints: the document for machines and the lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from pydantic import JsonValue

from bot.causes import cause_line, reading, reason_line, state_line
from bot.cli.cause_files import Moment
from bot.messages import sentence
from bot.terminal import plain
from bot.times import day_clock
from policies.causes.verdict import Verdict
from policies.citation import Citation
from policies.states.state import State


def document(verdict: Verdict, state: State | None, moments: Sequence[Moment]) -> dict[str, JsonValue]:
    """The keys that are fixed, then more."""
    found: dict[str, JsonValue] = {
        "verdict": verdict.word,
        "citations": [_citation(c, moments) for c in (*verdict.citations, *verdict.baseline)],
        "reason": _text(reason_line(verdict)),
        "cause": verdict.name or None,
        "needs": verdict.needs,
        "code": verdict.reason.code,
        "unknown": [_text(sentence(finding)) for finding in verdict.unknown],
        "rivals": [
            {"name": rival.name, "word": rival.word, "citations": [_citation(c, moments) for c in rival.citations]}
            for rival in verdict.rivals
        ],
        "files": [
            {"file": str(dump.path), "time": dump.scrape.at, "time_is": dump.said}
            for moment in moments
            for dump in moment.dumps
        ],
    }
    if state is not None:
        found["state"] = {
            "word": state.word,
            "possible": [*state.possible],
            "unknown": [*state.unknown],
            "said": _text(state_line(state)),
            "citations": [_citation(c, moments) for c in state.citations],
        }
    return found


def lines(verdict: Verdict, state: State | None, moments: Sequence[Moment]) -> list[str]:
    """The verdict, what may be said of it, why, and every reading with its place."""
    cited = dict.fromkeys((*verdict.citations, *verdict.baseline, *(c for r in verdict.rivals for c in r.citations)))
    found = [f"verdict: {verdict.word} ({verdict.title or 'nothing'})", _text(cause_line(verdict))]
    found.append(_text(reason_line(verdict)))
    if state is not None:
        found.append(_text(state_line(state)))
        cited |= dict.fromkeys(state.citations)
    found += [
        f"  {_text(reading(c))} at {_text(day_clock(c.time))} UTC, {_source(c, moments)}: {c.query}" for c in cited
    ]
    for moment in moments:
        found += [f"  {dump.path}: {_text(day_clock(dump.scrape.at))} UTC, {dump.said}" for dump in moment.dumps]
    return found


def _citation(citation: Citation, moments: Sequence[Moment]) -> JsonValue:
    found: dict[str, JsonValue] = {
        "query": citation.query,
        "value": citation.value,
        "unit": citation.unit,
        "time": citation.time,
        "source": _source(citation, moments),
    }
    if citation.name:
        found["name"] = citation.name
    if citation.most is not None:
        found["most"] = citation.most
    if citation.beyond:
        found["beyond"] = True
    return found


def _source(citation: Citation, moments: Sequence[Moment]) -> str:
    return next((moment.source for moment in moments if moment.at == citation.time), citation.source)


def _text(markup: str) -> str:
    return plain(markup, str, UTC).replace("`", "")
