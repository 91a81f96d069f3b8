"""Suspicions: reverts without a verified cause. Each is open until it is confirmed, refuted or given back.

A Suspicion is recorded with the success of its revert, in that very entry, so that there is exactly one for each. What
became of it is never stored: it follows from what was recorded since, so that nothing can be lost between two entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Literal

from policies.blame import Blame
from policies.causes.named_change import change_id
from policies.causes.verdict import Verdict
from policies.evidence import Record, worth
from policies.intents import RestoreKnob, UnsetKnob
from policies.model import Model

SUSPICION = "su"
Word = Literal["open", "confirmed", "refuted", "reclaimed"]


class Price(Model):
    """What the value that was taken away was worth at one load: `ratio` of the record's metric, over `n` runs.

    low, high: the interval of the ratio; None: no interval is known.
    """

    load: str
    ratio: float
    n: int
    low: float | None = None
    high: float | None = None


class Suspicion(Model):
    """A value that was taken away for a reason that is not verified.

    `value` None: each instance had its own, see `was`; `was` and `now` are values by instance, None: unset.
    Units: at, review_at are epoch seconds; review_s seconds between two reviews.
    """

    id: str  # su-N, of the change C-N
    change: str
    knob: str
    value: str | None
    was: dict[str, str | None]
    now: dict[str, str | None]
    reason: str  # in the words of the owner
    owner: str  # a Slack user id
    at: float
    review_at: float
    review_s: float
    evidence: str | None = None  # id of the record that prices it; None: there is none
    prices: tuple[Price, ...] = ()
    blame: Blame | None = None  # what was read when the value was blamed

    @property
    def gives_back(self) -> RestoreKnob | UnsetKnob | None:
        """What would be asked to have the value back; None where the instances had different ones."""
        if len(set(self.was.values())) != 1:
            return None
        if self.value is None:
            return UnsetKnob(knob=self.knob, because=f"gives back what {self.change} took away")
        return RestoreKnob(knob=self.knob, value=self.value)


@dataclass(frozen=True, slots=True)
class Claim:
    """A later entry that may settle a Suspicion: a statement `st-N` about its change, or a success `C-N` of its knob.

    now: the values that a success left, by instance.
    """

    word: Word
    by: str
    at: float
    now: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a Suspicion, by what, and when. `by` and `at` None: nothing did.

    given_back: the change after which every instance had the value again; None: it is still away.
    """

    word: Word
    by: str | None = None
    at: float | None = None
    given_back: str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the value is still away without a shown reason: nobody settled it, or it was refuted since."""
        return self.given_back is None and self.word in {"open", "refuted"}


def suspicion_id(change_id: str) -> str:
    """`su-7` for `C-7`: the same whoever derives it, and however often."""
    return f"{SUSPICION}-{change_id.partition('-')[2]}"


def change_of(suspicion: str) -> str:
    """`C-7` for `su-7`."""
    return f"C-{suspicion.partition('-')[2]}"


def standing(suspicion: Suspicion, claims: Iterable[Claim]) -> Standing:
    """The first claim that settles it, in the order in which they were recorded; open when none does.

    A success settles it when every instance has the value again that was taken away.
    """
    has = dict(suspicion.now)
    found = Standing("open")
    for claim in claims:
        if claim.word != "reclaimed":
            if found.word == "open":
                found = Standing(claim.word, claim.by, claim.at)
            continue
        has |= {i: value for i, value in claim.now if i in suspicion.was}
        if has == suspicion.was:
            if found.word == "open":
                return Standing("reclaimed", claim.by, claim.at, claim.by)
            return replace(found, given_back=claim.by)
    return found


def settles(hangs_on: Sequence[str], title: str, word: str, *, catalogued: bool) -> Word | None:
    """What a judged statement about the revert makes of the Suspicion; None: nothing.

    hangs_on: titles of what the revert was made on. One of these that is verified confirms it, refuted refutes it.
    Another one that is verified is what happened instead, where the reviewed catalogue has it: anybody finds some
    expression that is true.
    """
    if title in hangs_on:
        return "confirmed" if word == "verified" else "refuted" if word == "refuted" else None
    return "refuted" if word == "verified" and catalogued else None


def settled_by(blame: Blame | None, verdict: Verdict) -> Word | None:
    """What a verdict about the revert makes of the Suspicion; None: nothing.

    That a change did it settles only whether the one that brought the value did, or the one that the reason blamed,
    and only by what the revert itself cites as seen: anybody finds something that a change did not do.
    """
    hangs_on = blame.hangs_on if blame is not None else ()
    if change_id(verdict.name) is None:
        return settles(hangs_on, verdict.title, verdict.word, catalogued=bool(verdict.name))
    if blame is None or verdict.name not in {*hangs_on, blame.brought_by}:
        return None
    if not verdict.needs or verdict.needs not in {one.needs for one in blame.verdicts}:
        return None
    return settles((verdict.name,), verdict.name, verdict.word, catalogued=False)


def priced(records: Sequence[Record], knob: str, value: str | None, baseline: str | None) -> Record | None:
    """The record that says what the value is worth: the newest against what is there now, else the newest."""
    fitting = sorted((r for r in records if r.knob == knob and r.value == value), key=lambda r: r.at)
    against = [r for r in fitting if r.baseline == baseline]
    found = against or fitting
    return found[-1] if found else None


def prices(record: Record | None) -> tuple[Price, ...]:
    """What a record says of each load, with n and the interval where there is one."""
    if record is None:
        return ()
    return tuple(
        Price(
            load=one.load,
            ratio=one.ratio,
            n=one.n,
            low=one.ci[0] if one.ci else None,
            high=one.ci[1] if one.ci else None,
        )
        for one in worth(record)
    )


def due(suspicion: Suspicion, reminded_for: float | None, now: float) -> float | None:
    """The review date that is to be reminded of at `now`; None when there is none, or it was done.

    reminded_for: the date of the last reminder. Dates that passed unnoticed are one reminder, not many.
    Units: epoch seconds.
    """
    if now < suspicion.review_at:
        return None
    passed = floor((now - suspicion.review_at) / suspicion.review_s)
    date = suspicion.review_at + passed * suspicion.review_s
    return date if reminded_for is None or reminded_for < date else None


def next_review(suspicion: Suspicion, now: float) -> float:
    """The next review date after `now`, in epoch seconds."""
    if now < suspicion.review_at:
        return suspicion.review_at
    passed = floor((now - suspicion.review_at) / suspicion.review_s)
    return suspicion.review_at + (passed + 1) * suspicion.review_s
