"""What was drawn of a change: where its card and thread are, and how far its lines have come.

Only a pointer: the ledger is the truth and the thread can be drawn again from it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import redis
from pydantic import ValidationError

from policies.errors import StoreUnavailable
from policies.model import Model
from workers.lease import steady
from workers.ledger import text_of
from workers.life import has_ended, own_life
from workers.store import translated

POINTER = "clawback:drawn:"
THREAD = "clawback:drawn-in:"
LOCK = "clawback:drawing:"
LATER = "clawback:draw-later"
BEGUN = "clawback:draw-begun"
WORDS = "clawback:drawn-words:"
BLIND = "clawback:drawn-blind"
ONCE = "clawback:once:"
LOCK_MS = 30_000
RENEW_S = 8.0
ONCE_S = 86_400  # as long as the inbox can be heard again
BEGUN_S = 5.0  # a drawing that was begun and not finished for so long is due again

HELD: set[str] = set()  # owners of the locks that this process holds now

# KEYS: later, begun. ARGV: now, until when what is given out now may take. What was begun and not finished comes again.
DUE = """
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
for _, name in ipairs(found) do redis.call('ZREM', KEYS[1], name) end
local all = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])) do all[#all + 1] = name end
for _, name in ipairs(found) do all[#all + 1] = name end
for _, name in ipairs(all) do redis.call('ZADD', KEYS[2], ARGV[2], name) end
return all
"""
# KEYS: lock. ARGV: owner, ms. The lock is renewed, or given back, by its owner only.
RENEW = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class Pointer(Model):
    """Where a change is drawn. Message timestamps are Slack's strings; None: not posted.

    thread_ts: parent of the lines. seq: ledger place of the last entry drawn. pending: ledger place of what was being
    posted when this was written, so that after a crash the channel is read before it is posted again.
    card: digest of the card as last posted. card_at: epoch seconds of that. lost: an earlier card or thread is gone.
    unsure_to: ledger place up to which messages may stand there that this record knows nothing of.
    """

    channel: str
    thread_ts: str | None = None
    card_ts: str | None = None
    seq: int = 0
    pending: int | None = None
    card: str = ""
    card_at: float = 0.0
    failures: int = 0
    lost: bool = False
    unsure_to: int = 0


@dataclass(slots=True)
class DrawingLock:
    """Held while one narrator draws one change. `lost` is set when it is no longer ours.

    sure_at: when the last request was sent that surely prolonged it, on the steady clock.
    """

    owner: str
    sure_at: float = field(default_factory=steady)
    lost: threading.Event = field(default_factory=threading.Event)

    def is_stale(self) -> bool:
        """Another narrator may have it: it was lost, or this process was stopped for too long."""
        return self.lost.is_set() or steady() - self.sure_at > LOCK_MS / 1000


class Drawn:
    """Pointers, the lock of a drawing, and drawings that are due later. Raises everywhere: StoreUnavailable."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._renew = client.register_script(RENEW)
        self._release = client.register_script(RELEASE)
        self._due = client.register_script(DUE)

    def get(self, change_id: str) -> Pointer | None:
        """The pointer; None when nothing was drawn yet."""
        with translated():
            text = self._redis.get(POINTER + change_id)
        if text is None:
            return None
        try:
            return Pointer.model_validate_json(text)
        except ValidationError as error:
            message = f"the record of what was drawn of {change_id} cannot be read"
            raise StoreUnavailable(message, hint=f"remove the key {POINTER}{change_id}") from error

    def put(self, change_id: str, pointer: Pointer) -> None:
        """Keep the pointer."""
        with translated():
            self._redis.set(POINTER + change_id, pointer.model_dump_json())
            if pointer.thread_ts is not None:
                self._redis.set(f"{THREAD}{pointer.channel}:{pointer.thread_ts}", change_id, nx=True)

    def change_in(self, channel: str, thread_ts: str) -> str | None:
        """The change, or what else, that was drawn first in a thread; None when nothing of ours was."""
        with translated():
            found = self._redis.get(f"{THREAD}{channel}:{thread_ts}")
        return text_of(found) or None

    def names(self) -> list[str]:
        """Everything of which a pointer is kept: changes, and what is shown beside them."""
        with translated():
            return sorted(text_of(key).removeprefix(POINTER) for key in self._redis.scan_iter(match=POINTER + "*"))

    def put_new(self, change_id: str, pointer: Pointer) -> bool:
        """Keep the pointer where there is none; True when it was kept."""
        with translated():
            return bool(self._redis.set(POINTER + change_id, pointer.model_dump_json(), nx=True))

    def blind(self, seq: int) -> None:
        """What was drawn of entries up to this ledger place may be unknown here: the store was made anew."""
        with translated():
            self._redis.set(BLIND, seq)

    def blind_to(self) -> int:
        """What `blind` kept; 0 when every drawing is known."""
        with translated():
            return int(self._redis.get(BLIND) or 0)

    def forget(self, change_id: str) -> None:
        """Drop the pointer: what it pointed to is gone."""
        with translated():
            self._redis.delete(POINTER + change_id)

    def said(self, change_id: str, seq: int, digest: str) -> None:
        """Keep how an entry was posted, as a digest of its card: another version may word it otherwise."""
        with translated():
            self._redis.hset(WORDS + change_id, str(seq), digest)

    def words(self, change_id: str) -> dict[int, str]:
        """What `said` kept: ledger place of each entry -> digest of what was posted for it."""
        with translated():
            found = self._redis.hgetall(WORDS + change_id)
        return {int(text_of(seq)): text_of(digest) for seq, digest in found.items()}

    @contextmanager
    def lock(self, change_id: str) -> Iterator[DrawingLock | None]:
        """The right to draw this change, renewed from a thread; None when another narrator has it.

        One that a process of this machine took along when it ended is free, and so is one that this process holds no
        more and could not give back because the store was away.
        """
        lock = DrawingLock(f"{uuid4().hex} {own_life()}")
        key = LOCK + change_id
        HELD.add(lock.owner)
        try:
            taken = self._take(key, lock.owner)
        except StoreUnavailable:
            HELD.discard(lock.owner)
            raise
        if not taken:
            HELD.discard(lock.owner)
            yield None
            return
        ending = threading.Event()
        renewer = threading.Thread(target=self._keep, args=(key, lock, ending), name="drawing", daemon=True)
        renewer.start()
        try:
            yield lock
        finally:
            ending.set()
            renewer.join()
            HELD.discard(lock.owner)
            with translated():
                self._release(keys=[key], args=[lock.owner])

    def _take(self, key: str, owner: str) -> bool:
        with translated():
            taken = self._redis.set(key, owner, nx=True, px=LOCK_MS)
            if taken:
                return True
            other = text_of(self._redis.get(key))
            if other == owner:
                return True  # taken, and only the answer was lost
            life = other.partition(" ")[2]
            if not has_ended(life) and not (life and life == own_life() and other not in HELD):
                return False
            self._release(keys=[key], args=[other])
            return bool(self._redis.set(key, owner, nx=True, px=LOCK_MS))

    def _keep(self, key: str, lock: DrawingLock, ending: threading.Event) -> None:
        misses = 0
        while not ending.wait(RENEW_S):
            asked_at = steady()
            try:
                with translated():
                    mine = self._renew(keys=[key], args=[lock.owner, LOCK_MS])
            except StoreUnavailable:
                misses += 1
                if misses * RENEW_S * 1000 < LOCK_MS / 2:
                    continue
                mine = 0
            if not mine:
                lock.lost.set()
                return
            misses, lock.sure_at = 0, asked_at

    def later(self, change_id: str, at: float) -> None:
        """Have the change drawn at `at` (epoch seconds); an earlier time that was asked for stays."""
        with translated():
            self._redis.zadd(LATER, {change_id: at}, lt=True)

    def due(self, now: float) -> list[str]:
        """Changes whose time has come, each given to one caller, and again when nobody has `finished` it in time."""
        with translated():
            found = self._due(keys=[LATER, BEGUN], args=[repr(now), repr(now + BEGUN_S)])
        return list(dict.fromkeys(text_of(member) for member in found))

    def begun(self, change_id: str, now: float) -> None:
        """The drawing begins at `now`: it is due again if it does not come to its end."""
        with translated():
            self._redis.zadd(BEGUN, {change_id: now + BEGUN_S})

    def finished(self, change_id: str) -> None:
        """It came to its end; what is to follow was said by `later`."""
        with translated():
            self._redis.zrem(BEGUN, change_id)

    def once(self, name: str) -> bool:
        """True for the first caller with this name within a day."""
        with translated():
            return bool(self._redis.set(ONCE + name, "1", nx=True, ex=ONCE_S))

    def note(self, name: str, value: str) -> str:
        """Keep `value` under `name` for a day unless one is kept already; the one that is kept."""
        with translated():
            self._redis.set(f"{ONCE}note:{name}", value, nx=True, ex=ONCE_S)
            kept = self._redis.get(f"{ONCE}note:{name}")
        return text_of(kept) if kept is not None else value

    def noted(self, name: str) -> str | None:
        """What `note` kept."""
        with translated():
            kept = self._redis.get(f"{ONCE}note:{name}")
        return text_of(kept) if kept is not None else None
