"""Judging the whole ledger: every link, every hash, and every list that was made from it.

Codes: ledger.missing-entry, unreadable-entry, edited-entry, broken-link, misplaced-entry, wrong-version,
illegal-event, wrong-head, wrong-list, wrong-set. Each names the entry by `seq` where there is one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import redis
from pydantic import ValidationError

from policies import change as life
from policies.change import Change
from policies.events import GENESIS, Entry, chain_problem, indexes, misplaced, stored_digest, tells_change
from policies.finding import Finding
from workers.ledger import DEADLINE, HEAD, INDEX, OPEN, SUBJECT, stored, text_of
from workers.store import translated

Value = str | int | float | None


def _finding(name: str, **values: Value) -> Finding:
    return Finding(code=f"ledger.{name}", effect="refuse", values=values)


@dataclass(slots=True)
class Walk:
    """What the stream says so far: what is wrong, and the lists and changes that its entries make."""

    findings: list[Finding] = field(default_factory=list)
    seq: int = 0  # of the last entry seen
    prev: str | None = GENESIS  # its hash; None: it is missing or unreadable, so the next link cannot be judged
    lists: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    changes: dict[str, Change | None] = field(default_factory=dict)  # None: an event did not fit
    skipped: set[int] = field(default_factory=set)

    def step(self, number: int, text: str) -> None:
        """Look at one stored entry; `number` is its place in the stream, -1 where it has none."""
        if number <= 0:
            self.findings.append(_finding("misplaced-entry", seq=_seq_of(text), after=self.seq))
            return
        for missing in range(self.seq + 1, number):
            self.findings.append(_finding("missing-entry", seq=missing))
            self.skipped.add(missing)
            self.prev = None
        self.seq = number
        try:
            entry = Entry.model_validate_json(text)
        except ValidationError:
            self.findings.append(_finding("unreadable-entry", seq=number))
            self.skipped.add(number)
            self.prev = None
            return
        self._link(number, entry, stored_digest(text))
        self._project(number, entry)

    def _link(self, number: int, entry: Entry, digest: str) -> None:
        if entry.seq != number:
            self.findings.append(_finding("misplaced-entry", seq=number, found=entry.seq))
        problem = chain_problem(entry.prev if self.prev is None else self.prev, entry, digest)
        if problem is not None:
            self.findings.append(problem.model_copy(update={"values": {**problem.values, "seq": number}}))
        if problem is not None and problem.code == "ledger.broken-link" and digest != entry.hash:
            self.findings.append(_finding("edited-entry", seq=number, subject=entry.subject, kind=entry.event.kind))
        self.prev = entry.hash

    def _project(self, number: int, entry: Entry) -> None:
        subject = self.lists[SUBJECT + entry.subject]
        subject.append(number)
        if entry.version != len(subject) and not self.skipped:
            self.findings.append(
                _finding("wrong-version", seq=number, subject=entry.subject, found=entry.version, expected=len(subject))
            )
        for name in indexes(entry):
            self.lists[INDEX + name].append(number)
        if not tells_change(entry.event.kind):
            if misplaced(entry.subject, entry.event, len(subject) - 1) is not None and not self.skipped:
                self.findings.append(
                    _finding("illegal-event", seq=number, subject=entry.subject, kind=entry.event.kind)
                )
            return
        change = self.changes.get(entry.subject, Change(entry.subject))
        if change is None:
            return
        try:
            self.changes[entry.subject] = life.apply(change, entry.event, entry.at)
        except life.IllegalTransition:
            self.changes[entry.subject] = None
            if not self.skipped:
                self.findings.append(
                    _finding("illegal-event", seq=number, subject=entry.subject, kind=entry.event.kind)
                )


def verify(client: redis.Redis) -> list[Finding]:
    """Every problem of the ledger in `client`, in order of the stream; empty when it is whole.

    Raises: StoreUnavailable.
    """
    with translated():
        seq, digest = client.hmget(HEAD, "seq", "hash")
    head = (int(seq or 0), text_of(digest) or GENESIS)
    walk = Walk()
    at_head: str | None = GENESIS
    for number, text in stored(client):
        if number > head[0] and _appended_since(client, head[0]):
            break  # appended while we looked
        walk.step(number, text)
        at_head = walk.prev
    for missing in range(walk.seq + 1, head[0] + 1):
        walk.findings.append(_finding("missing-entry", seq=missing))
        walk.skipped.add(missing)
    if walk.seq > head[0] or (walk.seq == head[0] and at_head is not None and at_head != head[1]):
        walk.findings.append(_finding("wrong-head", seq=walk.seq, found=head[1], expected=at_head))
    return walk.findings + _lists(client, walk, max(head[0], walk.seq)) + _sets(client, walk)


def _appended_since(client: redis.Redis, seq: int) -> bool:
    with translated():
        now = client.hget(HEAD, "seq")
    return int(now or 0) > seq


def _lists(client: redis.Redis, walk: Walk, last: int) -> list[Finding]:
    findings = []
    with translated():
        keys = {text_of(key) for key in client.scan_iter(match=SUBJECT + "*", count=1000)}
        keys |= {text_of(key) for key in client.scan_iter(match=INDEX + "*", count=1000)}
    for key in sorted(keys | set(walk.lists)):
        with translated():
            found = [int(number) for number in client.lrange(key, 0, -1)]
        kept = [number for number in found if number not in walk.skipped and number <= last]
        expected = walk.lists.get(key, [])
        if kept != expected:
            first = next((a or b for a, b in _zip(kept, expected) if a != b), 0)
            findings.append(_finding("wrong-list", list=key.removeprefix("clawback:"), seq=first))
    return findings


def _sets(client: redis.Redis, walk: Walk) -> list[Finding]:
    if walk.skipped or None in walk.changes.values():
        return []  # what should be open cannot be told from a broken stream
    wanted = {name for name, change in walk.changes.items() if change is not None and not change.ended}
    waiting = {name for name, change in walk.changes.items() if change is not None and change.state == "planned"}
    with translated():
        pairs = (
            ("open", wanted, {text_of(member) for member in client.smembers(OPEN)}),
            ("deadline", waiting, {text_of(member) for member in client.zrange(DEADLINE, 0, -1)}),
        )
        grown = int(client.hget(HEAD, "seq") or 0) != walk.seq
    if grown:
        return []  # they belong to a later head than the one that was judged
    return [
        _finding("wrong-set", list=name, subject=subject)
        for name, expected, found in pairs
        for subject in sorted(expected ^ found)
    ]


def _zip(left: list[int], right: list[int]) -> list[tuple[int, int]]:
    size = max(len(left), len(right))
    return list(zip(left + [0] * (size - len(left)), right + [0] * (size - len(right)), strict=True))


def _seq_of(text: str) -> int:
    try:
        return Entry.model_validate_json(text).seq
    except ValidationError:
        return 0
