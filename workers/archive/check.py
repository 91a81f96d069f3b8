"""The archive against itself and against the ledger.

Codes: archive.unreadable-line, edited-entry, broken-link, missing-entry, misplaced-entry, broken-anchor, other-chain,
ledger-shorter. Notes, which are no problem: archive.torn (a write that goes on or was cut off), archive.behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import redis

from policies.events import GENESIS
from policies.finding import Effect, Finding
from workers.archive.segment import Anchored, Found, Line, Torn, Unreadable, entry_line, last_line, lines, segments
from workers.ledger import stored

Value = str | int | float | None


@dataclass(slots=True)
class Reading:
    """Goes through an archive and keeps what is wrong with it; `seq` and `hash` are of the last entry seen."""

    folder: Path
    findings: list[Finding] = field(default_factory=list)
    seq: int = 0
    hash: str | None = GENESIS  # None: unknown, because what stood before cannot be read

    def entries(self) -> Iterator[Line]:
        """Every readable entry, in order of the files; what is wrong with them is in `findings` afterwards.

        Raises: ArchiveBroken when a file cannot be read at all.
        """
        found = segments(self.folder)
        for path in found:
            for one in lines(path):
                yield from self._look(one, last=path == found[-1])

    def _look(self, one: Found, *, last: bool) -> Iterator[Line]:
        match one:
            case Anchored():
                self._anchor(one)
            case Torn() if last:
                self._say("torn", "note", file=one.file, line=one.number, size=one.size_bytes)
            case Torn() | Unreadable():
                self._say("unreadable-line", file=one.file, line=one.number)
                self.hash = None
            case Line():
                if self._fits(one):
                    yield one

    def _anchor(self, one: Anchored) -> None:
        anchor = one.anchor
        day = one.file.removesuffix(".jsonl")
        wrong = anchor.after_seq != self.seq or (self.hash is not None and anchor.prev != self.hash)
        if self.hash is None and anchor.after_seq > self.seq:
            wrong = False  # what could not be read before is told already, and this says where it goes on
        if wrong or anchor.day != day:
            self._say("broken-anchor", file=one.file, found=anchor.after_seq, expected=self.seq)
        self.seq, self.hash = max(self.seq, anchor.after_seq), anchor.prev

    def _fits(self, line: Line) -> bool:
        if line.seq <= self.seq:
            self._say("misplaced-entry", file=line.file, line=line.number, seq=line.seq)
            return False
        if line.seq > self.seq + 1 and self.hash is not None:
            self._say("missing-entry", file=line.file, seq=self.seq + 1, until=line.seq - 1)
            self.hash = None
        if not line.whole:
            self._say("edited-entry", file=line.file, line=line.number, seq=line.seq)
        elif self.hash is not None and line.prev != self.hash:
            self._say("broken-link", file=line.file, line=line.number, seq=line.seq)
        self.seq, self.hash = line.seq, line.hash
        return True

    def _say(self, name: str, effect: Effect = "refuse", /, **values: Value) -> None:
        self.findings.append(Finding(code=f"archive.{name}", effect=effect, values=values))


def compare(client: redis.Redis, folder: Path) -> list[Finding]:
    """What is wrong with the archive; empty when there is none. A ledger that is ahead is a note.

    Raises: StoreUnavailable, ArchiveBroken.
    """
    if not segments(folder):
        return []
    reading = Reading(folder)
    ledger = _Ledger(client)
    other = 0  # the first entry that both have, whole and different
    for line in reading.entries():
        text = ledger.at(line.seq)
        if text is None or text == line.text or other:
            continue
        mine = entry_line("the ledger", 0, text)
        if line.whole and mine is not None and mine.whole:
            other = line.seq
    found = reading.findings
    if other:
        found.append(Finding(code="archive.other-chain", effect="refuse", values={"seq": other}))
    last = ledger.last()
    if last < reading.seq:
        values: dict[str, Value] = {"seq": last, "until": reading.seq}
        found.append(Finding(code="archive.ledger-shorter", effect="refuse", values=values))
    elif last > reading.seq:
        values = {"n": last - reading.seq, "seq": reading.seq + 1}
        found.append(Finding(code="archive.behind", effect="note", values=values))
    return found


def last_of(folder: Path) -> tuple[int, str]:
    """Place and hash of the last readable entry of an archive, without its lock; (0, ...) when there is none.

    Raises: ArchiveBroken when a file cannot be read.
    """
    for path in reversed(segments(folder)):
        _, last = last_line(path)
        text = (last or b"").decode("utf-8", "replace")
        if (line := entry_line(path.name, 0, text)) is not None:
            return line.seq, line.hash
        first = next(lines(path), None)
        if isinstance(first, Anchored):
            return first.anchor.after_seq, first.anchor.prev
    return 0, GENESIS


class _Ledger:
    """The ledger's texts by their place, asked for in rising order."""

    def __init__(self, client: redis.Redis) -> None:
        self._rest = stored(client)
        self._next: tuple[int, str] | None = next(self._rest, None)
        self._seen = 0

    def at(self, seq: int) -> str | None:
        while self._next is not None and self._next[0] < seq:
            self._step()
        return self._next[1] if self._next is not None and self._next[0] == seq else None

    def last(self) -> int:
        while self._next is not None:
            self._step()
        return self._seen

    def _step(self) -> None:
        if self._next is not None:
            self._seen = max(self._seen, self._next[0])
        self._next = next(self._rest, None)
