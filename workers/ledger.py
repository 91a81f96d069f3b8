"""The ledger: a Redis stream of hash-chained entries, appended by one compare-and-set, read as changes.

The stream is the truth. Lists by subject and by index hold sequence numbers only; the sets of open and overdue
changes are kept in the same script, so that none of them can be ahead of or behind the stream.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from importlib import resources
from uuid import uuid4

import redis
from pydantic import ValidationError

from policies import change as life
from policies.change import Change
from policies.errors import LedgerConflict, NotFound, StoreUnavailable
from policies.events import GENESIS, Entry, Event, indexes, misplaced, stored_digest, tells_change
from policies.finding import Finding
from workers.store import translated

STREAM = "clawback:ledger"
HEAD = "clawback:head"
OPEN = "clawback:open"
DEADLINE = "clawback:deadline"
SUBJECT = "clawback:subject:"
INDEX = "clawback:index:"
COUNTER = "clawback:id:"
BATCH = 500
BLOCK_MS = 1000  # one wait on the server; below the socket's timeout
APPEND_S = 15.0  # other writers may be first for this long before an append gives up
REMEMBERED = 256


class Ledger:
    """Reads and appends entries. One per process; threads may share it. `clock` gives epoch seconds.

    Raises: StoreUnavailable from everything, when Redis cannot be reached or holds a broken entry.
    """

    def __init__(self, client: redis.Redis, clock: Callable[[], float]) -> None:
        self.redis = client
        self._clock = clock
        script = resources.files("workers").joinpath("ledger.lua").read_text(encoding="utf-8")
        self._append = client.register_script(script)
        self._known: dict[str, Change] = {}

    def append(self, subject: str, event: Event, *, expect_version: int, nonce: str | None = None) -> Entry:
        """Record one event behind `expect_version` entries of its subject.

        nonce: the writer's name for this very append. Called again with it after an error, when it is not known
        whether the event was recorded, it gives the entry that is there.
        Raises: LedgerConflict when the subject has moved; IllegalTransition when its state forbids the event.
        """
        if (problem := misplaced(subject, event, expect_version)) is not None:
            raise ValueError(problem)
        at = self._clock()
        given, nonce = nonce, nonce or uuid4().hex
        try:
            after = self._next(subject, event, expect_version, at) if tells_change(event.kind) else None
        except LedgerConflict:
            if given is None:
                raise
            return self._mine(subject, expect_version, given, expect_version + 1)
        flag, deadline = _projection(after)
        seq, prev = self._head()
        until = time.monotonic() + APPEND_S
        while True:
            entry = Entry(
                seq=seq + 1,
                subject=subject,
                version=expect_version + 1,
                at=at,
                event=event,
                prev=prev,
            ).sealed()
            text = entry.canonical()
            if Entry.model_validate_json(text) != entry:
                raise ValueError(f"`{event.kind}` of {subject} does not survive its own spelling")
            keys = [STREAM, HEAD, SUBJECT + subject, OPEN, DEADLINE, *(INDEX + name for name in indexes(entry))]
            arguments: list[str | int] = [seq, prev, expect_version, text, entry.hash, subject, flag, deadline, nonce]
            with translated():
                answer = [part.decode() for part in self._append(keys=keys, args=arguments)]
            if answer[0] == "ok":
                if after is not None:
                    self._keep(after)
                return entry
            if answer[0] == "moved":
                return self._mine(subject, expect_version, nonce, int(answer[1]))
            seq, prev = int(answer[1]), answer[2]
            if time.monotonic() > until:
                raise StoreUnavailable(f"the ledger moved for {APPEND_S:.0f} s without a break", hint="try again")
            time.sleep(random.uniform(0, 0.002))  # noqa: S311  # only spreads writers

    def load(self, change_id: str) -> Change:
        """The change as its entries tell it.

        Raises: NotFound.
        """
        found = self.entries(change_id)
        if not found or not tells_change(found[0].event.kind):
            raise NotFound(f"there is no change `{change_id}`", hint="`status` lists the open ones")
        change = life.fold(change_id, found)
        self._keep(change)
        return change

    def entries(self, subject: str) -> list[Entry]:
        """Every entry of a change or record, in order; empty when there is none."""
        return self._listed(SUBJECT + subject)

    def written(self, subject: str, nonce: str) -> Entry | None:
        """The entry of a subject that was appended under this nonce; None when there is none."""
        with translated():
            numbers = [int(number) for number in self.redis.lrange(SUBJECT + subject, 0, -1)]
            with self.redis.pipeline(transaction=False) as pipe:
                for number in numbers:
                    pipe.xrange(STREAM, f"{number}-0", f"{number}-0")
                answers = pipe.execute()
        for number, rows in zip(numbers, answers, strict=True):
            if rows and _field(rows[0][1], b"writer") == nonce:
                return _parse(number, _field(rows[0][1], b"entry"))
        return None

    def index(self, name: str) -> list[Entry]:
        """The entries of one index (see `policies.events.indexes`), oldest first."""
        return self._listed(INDEX + name)

    def read(self, after_seq: int = 0, block_ms: int | None = None) -> Iterator[Entry]:
        """Entries behind `after_seq` in order; ends when there are no more, with `block_ms` when none came for so long.

        Units: `block_ms` in milliseconds.
        """
        waited = 0
        while True:
            wait = None if block_ms is None else min(BLOCK_MS, max(1, block_ms - waited))
            with translated():
                answer = self.redis.xread({STREAM: f"{after_seq}-0"}, count=BATCH, block=wait)
            rows = _rows(answer)
            for number, text in rows:
                yield _parse(number, text)
                after_seq = number
            waited = 0 if rows else waited + (wait or 0)
            if not rows and (block_ms is None or waited >= block_ms):
                return

    def new_id(self, prefix: str) -> str:
        """A name that was never given before: `C-1`, `ab-7`."""
        with translated():
            return f"{prefix}-{self.redis.incr(COUNTER + prefix)}"

    def open_changes(self) -> list[str]:
        """Ids of the changes that have not ended, oldest first."""
        with translated():
            found = [text_of(member) for member in self.redis.smembers(OPEN)]
        return sorted(found, key=lambda name: (len(name), name))

    def overdue(self, now: float) -> list[str]:
        """Ids of planned changes whose time for approval is over at `now`."""
        with translated():
            return [text_of(member) for member in self.redis.zrangebyscore(DEADLINE, "-inf", now)]

    def verify(self) -> list[Finding]:
        """What is wrong with the whole ledger; empty when it is whole. Codes: see `workers.chain`."""
        from workers.chain import verify

        return verify(self.redis)

    def export(self) -> Iterator[str]:
        """Every entry as one line of canonical JSON, as it is stored."""
        for number, text in stored(self.redis):
            try:
                yield json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
            except ValueError:
                yield json.dumps({"seq": number, "unreadable": text})

    def _next(self, subject: str, event: Event, expect_version: int, at: float) -> Change:
        change = self._known.get(subject)
        if change is None or change.version != expect_version:
            change = life.fold(subject, self.entries(subject))
        if change.version != expect_version:
            raise LedgerConflict(f"{subject} has {change.version} entries, expected {expect_version}", hint="reload it")
        return life.apply(change, event, at)

    def _keep(self, change: Change) -> None:
        self._known[change.id] = change
        if len(self._known) > REMEMBERED:
            self._known.pop(next(iter(self._known)), None)

    def _head(self) -> tuple[int, str]:
        with translated():
            seq, digest = self.redis.hmget(HEAD, "seq", "hash")
        return (int(seq), text_of(digest)) if seq is not None and digest is not None else (0, GENESIS)

    def _mine(self, subject: str, expect_version: int, nonce: str, length: int) -> Entry:
        """The entry at this version if this very append wrote it and only the answer was lost."""
        with translated():
            number = self.redis.lindex(SUBJECT + subject, expect_version)
            rows = self.redis.xrange(STREAM, f"{int(number)}-0", f"{int(number)}-0") if number else []
        if number and rows and _field(rows[0][1], b"writer") == nonce:
            return _parse(int(number), _field(rows[0][1], b"entry"))
        raise LedgerConflict(f"{subject} has {length} entries, expected {expect_version}", hint="reload it")

    def _listed(self, key: str) -> list[Entry]:
        with translated():
            numbers = [int(number) for number in self.redis.lrange(key, 0, -1)]
        found: list[Entry] = []
        for start in range(0, len(numbers), BATCH):
            batch = numbers[start : start + BATCH]
            with translated(), self.redis.pipeline(transaction=False) as pipe:
                for number in batch:
                    pipe.xrange(STREAM, f"{number}-0", f"{number}-0")
                answers = pipe.execute()
            for number, rows in zip(batch, answers, strict=True):
                if not rows:
                    raise _broken(number, "missing")
                found.append(_parse(number, _field(rows[0][1], b"entry")))
        return found


def stored(client: redis.Redis, after: int = 0) -> Iterator[tuple[int, str]]:
    """(stream number, text) of what stands behind `after`, unparsed. A number that is not `N-0` is given as -1."""
    start = f"({after}-0" if after else "-"
    while True:
        with translated():
            rows = client.xrange(STREAM, start, "+", count=BATCH)
        if not rows:
            return
        for name, fields in rows:
            number, _, tail = text_of(name).partition("-")
            yield (int(number) if tail == "0" else -1), _field(fields, b"entry")
        start = "(" + text_of(rows[-1][0])


def _projection(after: Change | None) -> tuple[str, str]:
    if after is None:
        return "", ""
    deadline = repr(after.planned.expires_at) if after.state == "planned" and after.planned else ""
    return ("ended" if after.ended else "open"), deadline


def _rows(answer: object) -> list[tuple[int, str]]:
    streams = answer if isinstance(answer, list) else []  # an empty answer is no list in some protocol versions
    return [
        (int(text_of(name).split("-")[0]), _field(fields, b"entry")) for _, rows in streams for name, fields in rows
    ]


def _parse(number: int, text: str) -> Entry:
    try:
        entry = Entry.model_validate_json(text)
    except ValidationError as error:
        raise _broken(number, "unreadable") from error
    if entry.seq != number or stored_digest(text) != entry.hash:
        raise _broken(number, "edited")
    return entry


def _broken(number: int, how: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"entry {number} of the ledger is {how}: nothing is done on its word", hint="run `clawback audit verify`"
    )


def _field(fields: object, name: bytes) -> str:
    return text_of(fields.get(name)) if isinstance(fields, dict) else ""


def text_of(value: object) -> str:
    """Text of what Redis gave: bytes, text or nothing."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
