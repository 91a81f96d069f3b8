"""A cause that somebody claims, or that the fleet file lists: what must hold, and what speaks against it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.statement import Every, Metric, Statement, metrics_of
from policies.causes.window import asked_for
from policies.finding import Finding
from policies.fleet import CauseEntry, Fleet
from policies.fleet_checks.problems import suggestion


@dataclass(frozen=True, slots=True)
class Claim:
    """`name` and `about` are empty for a free statement. needs None: nothing was cited.

    change: it is claimed that this change did it (`named_change.LAST`: the last one), and `needs` is what it did.
    """

    needs: Statement | None
    refuted_by: Statement | None = None
    name: str = ""
    about: str = ""
    change: str | None = None


def catalogued(entry: CauseEntry) -> Claim | Finding:
    """The claim of an entry of the fleet file; a finding where it cannot be read, which `fleet check` refuses."""
    needs = read_statement(entry.needs)
    if isinstance(needs, Malformed):
        return malformed(entry.needs, needs)
    refuted_by = read_statement(entry.refuted_by) if entry.refuted_by else None
    if isinstance(refuted_by, Malformed):
        return malformed(entry.refuted_by or "", refuted_by)
    return Claim(needs, refuted_by, entry.name, entry.about)


def catalogue(fleet: Fleet) -> tuple[Claim, ...]:
    """Every cause of the fleet file."""
    found = [catalogued(entry) for entry in fleet.causes.values()]
    return tuple(claim for claim in found if isinstance(claim, Claim))


def free(expressions: Sequence[str], fleet: Fleet | None, families: Container[str] = frozenset()) -> Claim | Finding:
    """The claim of what somebody cites: all of the expressions together.

    Names in them must be of the fleet, or of `families`: what the servers at hand are known to export.
    """
    parts: list[Statement] = []
    for text in expressions:
        statement = read_statement(text)
        if isinstance(statement, Malformed):
            return malformed(text, statement)
        unknown = unknown_metric(statement, fleet, families)
        if unknown is not None:
            return unknown
        parts.append(statement)
    if not parts:
        return Claim(None)
    return Claim(parts[0] if len(parts) == 1 else Every(tuple(parts)))


def unknown_metric(statement: Statement, fleet: Fleet | None, families: Container[str] = frozenset()) -> Finding | None:
    """A name that is no metric of the fleet, with the nearest that is."""
    known = fleet.metrics if fleet is not None else {}
    for metric in metrics_of(statement):
        if not metric.free and metric.text not in known and metric.text not in families:
            values = {"metric": metric.text, "hint": _hint(metric, known)}
            return Finding(code="claim.no-such-metric", effect="refuse", values={**values})
    return None


def malformed(text: str, problem: Malformed) -> Finding:
    """The finding of a text that is no statement."""
    return Finding(
        code="claim.malformed",
        effect="refuse",
        values={"text": text, "at": problem.at + 1, "problem": problem.message, "hint": problem.hint},
    )


def named_in(text: str, causes: Iterable[CauseEntry]) -> tuple[str, ...]:
    """Names of the catalogue that a person's words hold: `cold start after a co-restart` holds cold-start."""
    words = _plain(text)
    found = [
        cause.name for cause in causes if f" {_plain(cause.name)} " in f" {words} " or _plain(cause.about) == words
    ]
    # a longer name is meant where it holds a shorter one
    return tuple(one for one in found if not any(f" {_plain(one)} " in f" {_plain(o)} " for o in found if o != one))


def metrics_needed(claim: Claim, rivals: Sequence[Claim] = ()) -> tuple[Metric, ...]:
    """Every metric that must be measured to judge a claim among its rivals."""
    return asked_for(one for c in (claim, *rivals) for one in (c.needs, c.refuted_by))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def _hint(metric: Metric, known: Iterable[str]) -> str:
    asked = f'put it in quotes to ask a server for it: "{metric.text}"'
    names = list(known)
    return f"{suggestion(metric.text, names)}; or {asked}" if names else asked
