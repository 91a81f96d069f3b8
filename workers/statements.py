"""Statements as the ledger has them, with what was said against each."""

from __future__ import annotations

from dataclasses import dataclass

from policies import events as e
from policies.causes.named_change import change_id
from policies.errors import NotFound
from policies.events import Entry
from policies.statement import Standing, Statement, after
from workers.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Told:
    """A statement with its entries: how it was made, and each dispute."""

    statement: Statement
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: list[Entry] | tuple[Entry, ...]) -> Told | None:
        """From its entries; None where they tell no statement."""
        first = entries[0].event if entries else None
        return cls(first.statement, tuple(entries)) if isinstance(first, e.StatementMade) else None

    @property
    def disputes(self) -> tuple[e.StatementDisputed, ...]:
        """What was said against it, oldest first."""
        return tuple(entry.event for entry in self.entries if isinstance(entry.event, e.StatementDisputed))

    @property
    def looks(self) -> tuple[e.StatementDisputed | e.StatementJudgedAgain, ...]:
        """Every time that it was judged once more, oldest first."""
        again = (e.StatementDisputed, e.StatementJudgedAgain)
        return tuple(entry.event for entry in self.entries if isinstance(entry.event, again))

    @property
    def counts(self) -> bool:
        """Whether what it came to stands: it is not struck through, or what struck it is measured of a change."""
        standing = self.standing
        verdict = standing.judged.verdict
        return not standing.struck or (verdict.word == "refuted" and change_id(verdict.name) is not None)

    @property
    def standing(self) -> Standing:
        """The judgement that counts now, and whether it is struck through."""
        return after(self.statement.judged, [look.judged for look in self.looks])


def told(ledger: Ledger, name: str) -> Told:
    """One statement.

    Raises: NotFound.
    """
    found = Told.of(ledger.entries(name))
    if found is None:
        raise NotFound(f"there is no statement `{name}`", hint="its number stands with it, where it was stated")
    return found


def told_about(ledger: Ledger, change: str) -> tuple[Told, ...]:
    """Every statement about a change, oldest first."""
    return tuple(told(ledger, entry.subject) for entry in ledger.index(f"statements:{change}"))
