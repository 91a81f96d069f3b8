"""Making lists, indexes and sets anew from the ledger, and the ledger from the archive.

Nothing is written over that is longer, or of another chain: an entry is only taken from the archive where the ledger
has none, or one whose text does not fit its hash. Leases and tokens are no projections and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import redis

from policies.events import Asked, Entry
from policies.finding import Effect, Finding
from workers.archive.check import Reading
from workers.archive.segment import entry_line
from workers.chain import Walk
from workers.drawn import Drawn, Pointer
from workers.ledger import BATCH, COUNTER, DEADLINE, HEAD, INDEX, OPEN, STREAM, SUBJECT, stored, text_of
from workers.store import translated

FRESH = "clawback:ledger-rebuilt"
WRITER = "rebuilt"
NAMED = re.compile(r"([A-Za-z]+)-([1-9][0-9]*)")
Value = str | int | float | None


def rebuild(client: redis.Redis, folder: Path, *, from_archive: bool) -> tuple[Finding, ...]:
    """Rebuild everything that can be told from entries: what was done, or as a refusal why nothing was.

    The archive in `folder` is used when the ledger is empty, or when that is asked for.

    Raises: StoreUnavailable, ArchiveBroken.
    """
    with translated():
        client.delete(FRESH)
        seen = _texts(client.hgetall(HEAD))
    texts = dict(stored(client))
    taken, vouched = 0, 0
    if from_archive or not texts:
        found = _merged(texts, seen, folder, asked=from_archive)
        if isinstance(found, Finding):
            return (found,)
        texts, taken, vouched = found
    walk = _walked(texts)
    damage = _damage(walk, seen, vouched)
    if damage is not None:
        code = "still-broken" if from_archive else "broken-ledger"
        return (_told(code, "refuse", code=damage.code, seq=damage.values.get("seq")),)
    wrong = _wrong(client, walk)
    if not _write(client, texts if taken else None, walk, seen):
        return (_told("moved", "refuse"),)
    told = [_told("entries", n=taken, all=len(texts))] if taken else [_told("kept", n=len(texts))]
    told.append(_told("lists", n=len(walk.lists), wrong=wrong))
    told.append(_told("sets", open=len(_open(walk)), waiting=len(_waiting(walk))))
    told.append(_told("drawn", n=_undrawn(client, texts)))
    return tuple(told)


def _damage(walk: Walk, head: Mapping[str, str], vouched: int) -> Finding | None:
    """The first thing that is wrong with the entries themselves. vouched: so many of them are in the archive too.

    The head is the only witness of entries that were taken away at the end, so it has to agree, or the archive has to.
    """
    if walk.findings:
        return walk.findings[0]
    seq, digest = int(head.get("seq", 0)), head.get("hash")
    if not head or seq < walk.seq <= vouched or (seq, digest) == (walk.seq, walk.prev):
        return None
    if seq > walk.seq:
        return Finding(code="ledger.missing-entry", effect="refuse", values={"seq": walk.seq + 1})
    return Finding(code="ledger.wrong-head", effect="refuse", values={"seq": walk.seq})


def _merged(
    texts: Mapping[int, str], head: Mapping[str, str], folder: Path, *, asked: bool
) -> tuple[dict[int, str], int, int] | Finding:
    """The ledger with what it lacks from the archive; how many entries that are, and how far the archive goes."""
    reading = Reading(folder)
    merged = {number: text for number, text in texts.items() if number > 0}
    taken = 0
    for line in reading.entries():
        mine = texts.get(line.seq)
        if mine == line.text:
            continue
        have = entry_line("the ledger", 0, mine) if mine is not None else None
        named = _named_next(texts, line.seq, head)
        if have is not None and have.whole and have.seq == line.seq and named != line.hash:
            return _told("other-chain", "refuse", seq=line.seq)
        merged[line.seq] = line.text
        taken += 1
    bad = next((one for one in reading.findings if one.effect == "refuse"), None)
    if bad is not None:
        return _told("broken-archive", "refuse", code=bad.code, seq=bad.values.get("seq"))
    if reading.seq == 0:
        return _told("no-archive", "refuse", folder=str(folder)) if asked else _told("nothing", "refuse")
    return merged, taken, reading.seq


def _named_next(texts: Mapping[int, str], seq: int, head: Mapping[str, str]) -> str | None:
    """The hash that the ledger itself gives an entry: in the one behind it, or in the head."""
    behind = texts.get(seq + 1)
    line = entry_line("the ledger", 0, behind) if behind is not None else None
    if line is not None:
        return line.prev
    return head.get("hash") if head.get("seq") == str(seq) else None


def _walked(texts: Mapping[int, str]) -> Walk:
    walk = Walk()
    for number in sorted(texts):
        walk.step(number, texts[number])
    return walk


def _write(client: redis.Redis, texts: Mapping[int, str] | None, walk: Walk, seen: Mapping[str, str]) -> bool:
    """Everything at once, or nothing when the ledger has moved. texts: a new stream; None: the stream stays."""
    if texts is not None:
        for batch in _batches(sorted(texts)):
            with translated(), client.pipeline(transaction=False) as pipe:
                for number in batch:
                    pipe.xadd(FRESH, {"entry": texts[number], "writer": WRITER}, id=f"{number}-0")
                pipe.execute()
    stale = _keys(client) - set(walk.lists)
    counters = _counters(client, walk)
    with translated(), client.pipeline(transaction=True) as pipe:
        pipe.watch(HEAD)  # type: ignore[no-untyped-call]  # the vendor has no annotation here
        if _texts(pipe.hgetall(HEAD)) != dict(seen):
            return False
        pipe.multi()
        if texts is not None:
            pipe.rename(FRESH, STREAM)
        for key in [*stale, *walk.lists, HEAD, OPEN, DEADLINE]:
            pipe.delete(key)
        for key, numbers in walk.lists.items():
            for batch in _batches(numbers):
                pipe.rpush(key, *batch)
        if walk.seq:
            pipe.hset(HEAD, mapping={"seq": walk.seq, "hash": walk.prev or ""})
        for name in _open(walk):
            pipe.sadd(OPEN, name)
        for name, expires_at in _waiting(walk).items():
            pipe.zadd(DEADLINE, {name: expires_at})
        for prefix, number in counters.items():
            pipe.set(COUNTER + prefix, number)
        try:
            pipe.execute()
        except redis.WatchError:
            return False
    return True


def _wrong(client: redis.Redis, walk: Walk) -> int:
    """How many lists do not say what the entries say."""
    wrong = 0
    for key in _keys(client) | set(walk.lists):
        with translated():
            found = [int(number) for number in client.lrange(key, 0, -1)]
        wrong += found != walk.lists.get(key, [])
    return wrong


def _keys(client: redis.Redis) -> set[str]:
    with translated():
        found = {text_of(key) for key in client.scan_iter(match=SUBJECT + "*", count=1000)}
        return found | {text_of(key) for key in client.scan_iter(match=INDEX + "*", count=1000)}


def _counters(client: redis.Redis, walk: Walk) -> dict[str, int]:
    """prefix -> the highest number that a name was given with; a counter that is further on stays where it is."""
    highest: dict[str, int] = {}
    for key in walk.lists:
        named = NAMED.fullmatch(key.removeprefix(SUBJECT)) if key.startswith(SUBJECT) else None
        if named is not None:
            highest[named[1]] = max(int(named[2]), highest.get(named[1], 0))
    with translated():
        now = {prefix: int(client.get(COUNTER + prefix) or 0) for prefix in highest}
    return {prefix: max(number, now[prefix]) for prefix, number in highest.items()}


def _open(walk: Walk) -> list[str]:
    return [name for name, change in walk.changes.items() if change is not None and not change.ended]


def _waiting(walk: Walk) -> dict[str, float]:
    waiting = ((name, change) for name, change in walk.changes.items() if change is not None)
    return {name: c.planned.expires_at for name, c in waiting if c.state == "planned" and c.planned is not None}


def _undrawn(client: redis.Redis, texts: Mapping[int, str]) -> int:
    """Have the narrator look for the threads of changes of which it is not known how far they were drawn."""
    drawn = Drawn(client)
    asked: dict[str, Asked] = {}
    last: dict[str, int] = {}
    for number in sorted(texts):
        entry = Entry.model_validate_json(texts[number])
        if isinstance(entry.event, Asked):
            asked[entry.subject] = entry.event
        last[entry.subject] = number
    pointers = {
        name: Pointer(channel=event.where.channel, thread_ts=event.where.thread_ts, unsure_to=last[name])
        for name, event in asked.items()
        if event.where.channel
    }
    new = sum(drawn.put_new(name, pointer) for name, pointer in pointers.items())
    if new:
        drawn.blind(max(texts))
    return new


def _texts(answer: object) -> dict[str, str]:
    return {text_of(key): text_of(value) for key, value in answer.items()} if isinstance(answer, dict) else {}


def _batches(numbers: Sequence[int]) -> Iterator[list[int]]:
    rest = iter(numbers)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _told(name: str, effect: Effect = "note", /, **values: Value) -> Finding:
    return Finding(code=f"rebuild.{name}", effect=effect, values=values)
