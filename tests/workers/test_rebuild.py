"""What was lost comes back from the entries, and the entries from the archive; nothing whole is written over."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from policies import events as e
from policies.errors import LedgerConflict
from policies.finding import Finding
from tests.conftest import Store
from tests.workers import events as make
from workers.archive.follow import catch_up
from workers.archive.segment import segments
from workers.archive.writer import Archive
from workers.drawn import POINTER, Drawn, Pointer
from workers.ledger import COUNTER, HEAD, INDEX, OPEN, STREAM, SUBJECT, Ledger, stored, text_of
from workers.live import EmbeddedStore
from workers.rebuild import rebuild
from workers.store import connect

PROJECTIONS = ("clawback:ledger", "clawback:head", OPEN, "clawback:deadline", SUBJECT, INDEX, COUNTER)


@pytest.fixture
def archive(store: Store, tmp_path: Path) -> Path:
    """A ledger with a change that ended, one that waits, one that runs and a record, and its archive."""
    fill(store.redis)
    folder = tmp_path / "a"
    with Archive(folder) as files:
        catch_up(files, store.redis)
    return folder


def fill(client: redis.Redis) -> Ledger:
    at = [1000.0]
    ledger = Ledger(client, lambda: at[0])
    for events in (make.whole_life(), make.whole_life()[:2], make.whole_life()[:6]):
        name = ledger.new_id("C")
        for number, event in enumerate(events):
            ledger.append(name, event, expect_version=number)
            at[0] += 30_000
    ledger.append(ledger.new_id("ab"), make.evidence("ab-1"), expect_version=0)
    return ledger


def everything(client: redis.Redis) -> dict[str, object]:
    """All that is told by entries, but for the names of those who wrote them."""
    found: dict[str, object] = {}
    for raw in client.keys("clawback:*"):
        key = text_of(raw)
        if not key.startswith(PROJECTIONS):
            continue
        kind = text_of(client.type(raw))
        match kind:
            case "stream":
                found[key] = list(stored(client))
            case "list":
                found[key] = client.lrange(raw, 0, -1)
            case "set":
                found[key] = client.smembers(raw)
            case "zset":
                found[key] = client.zrange(raw, 0, -1, withscores=True)
            case "hash":
                found[key] = client.hgetall(raw)
            case _:
                found[key] = client.get(raw)
    return found


def codes(found: tuple[Finding, ...]) -> list[str]:
    return [one.code.removeprefix("rebuild.") for one in found]


def test_a_flushed_store_comes_back_from_the_archive_with_every_projection(store: Store, archive: Path) -> None:
    before = everything(store.redis)
    assert len(before) >= 12
    store.redis.flushall()
    assert codes(rebuild(store.redis, archive, from_archive=False)) == ["entries", "lists", "sets", "drawn"]
    assert everything(store.redis) == before
    ledger = Ledger(store.redis, lambda: 500_000.0)
    assert ledger.verify() == []
    assert ledger.new_id("C") == "C-4"
    ledger.append("C-2", make.approved(), expect_version=2)
    assert ledger.verify() == []
    with Archive(archive) as files:
        assert catch_up(files, store.redis) == 1


def test_a_server_that_was_killed_and_whose_files_are_gone_comes_back(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        with EmbeddedStore(Path(folder) / "one") as server:
            with connect(server.url) as client:
                fill(client)
                before = everything(client)
                with Archive(tmp_path / "a") as files:
                    catch_up(files, client)
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
        with EmbeddedStore(Path(folder) / "two") as server, connect(server.url) as client:
            assert codes(rebuild(client, tmp_path / "a", from_archive=False))[0] == "entries"
            assert everything(client) == before


@pytest.mark.parametrize("key", [HEAD, OPEN, "clawback:deadline", SUBJECT + "C-1", INDEX + "changes", COUNTER + "C"])
@pytest.mark.parametrize("how", ["lost", "wrong"])
def test_every_projection_is_made_anew_from_the_entries(store: Store, archive: Path, key: str, how: str) -> None:
    before = everything(store.redis)
    kind = text_of(store.redis.type(key))
    if how == "lost":
        store.redis.delete(key)
    elif kind == "list":
        store.redis.rpush(key, 99)
    elif kind == "set":
        store.redis.sadd(key, "C-9")
    elif kind == "zset":
        store.redis.zadd(key, {"C-1": 1.0})
    else:
        return  # a wrong head is evidence, and a counter that is further on is right
    store.redis.rpush(SUBJECT + "C-77", 5)
    told = rebuild(store.redis, archive.parent / "none", from_archive=False)
    assert codes(told) == ["kept", "lists", "sets", "drawn"]
    assert told[1].values["wrong"] == (2 if kind == "list" else 1)
    assert everything(store.redis) == before


def test_nothing_is_changed_where_everything_is_right(store: Store, archive: Path) -> None:
    before = everything(store.redis)
    store.redis.set(COUNTER + "C", 12)
    before[COUNTER + "C"] = b"12"
    store.redis.set("clawback:token", 17)
    for from_archive in (False, True):
        told = rebuild(store.redis, archive, from_archive=from_archive)
        assert (codes(told)[0], told[1].values["wrong"]) == ("kept", 0)
        assert everything(store.redis) == before
    assert store.redis.get("clawback:token") == b"17"


@pytest.mark.parametrize("damage", ["deleted", "edited", "garbage", "sealed anew", "cut at the end"])
def test_damaged_entries_come_back_only_when_that_is_asked_for(store: Store, archive: Path, damage: str) -> None:
    before = everything(store.redis)
    rows = dict(stored(store.redis))
    first = {"cut at the end": 16, "sealed anew": 6}.get(damage, 5)
    if damage == "deleted":
        store.redis.xdel(STREAM, "5-0")
    elif damage == "cut at the end":
        store.redis.xdel(STREAM, "16-0", "17-0")
    else:
        entry = e.Entry.model_validate_json(rows[5])
        text = {
            "edited": rows[5].replace('"restart"', '"write"', 1),
            "garbage": "?",
            "sealed anew": entry.model_copy(update={"at": 7.0}).sealed().canonical(),
        }[damage]
        store.redis.delete(STREAM)
        for number, kept in {**rows, 5: text}.items():
            store.redis.xadd(STREAM, {"entry": kept, "writer": "x"}, id=f"{number}-0")
    spoiled = everything(store.redis)
    refused = rebuild(store.redis, archive, from_archive=False)
    assert (codes(refused), refused[0].values["seq"]) == (["broken-ledger"], first)
    assert everything(store.redis) == spoiled
    told = rebuild(store.redis, archive, from_archive=True)
    assert (codes(told)[0], told[0].values["n"]) == ("entries", 2 if damage == "cut at the end" else 1)
    assert everything(store.redis) == before


def test_a_longer_ledger_keeps_what_the_archive_has_not(store: Store, archive: Path) -> None:
    ledger = Ledger(store.redis, lambda: 900_000.0)
    ledger.append("C-2", make.clicked(), expect_version=2)
    before = everything(store.redis)
    store.redis.xdel(STREAM, "3-0")
    assert codes(rebuild(store.redis, archive, from_archive=True))[0] == "entries"
    assert everything(store.redis) == before
    last = f"{len(dict(stored(store.redis)))}-0"
    store.redis.xdel(STREAM, last)
    assert codes(rebuild(store.redis, archive, from_archive=True)) == ["still-broken"]


def test_another_chain_is_never_written_over(store: Store, archive: Path) -> None:
    store.redis.flushall()
    ledger = Ledger(store.redis, lambda: 5.0)
    ledger.append("C-1", make.asked("something else"), expect_version=0)
    before = everything(store.redis)
    assert codes(rebuild(store.redis, archive, from_archive=True)) == ["other-chain"]
    assert everything(store.redis) == before
    assert codes(rebuild(store.redis, archive, from_archive=False))[0] == "kept"


@pytest.mark.parametrize("from_archive", [False, True])
def test_nothing_is_taken_from_a_damaged_archive_or_from_none(
    store: Store, archive: Path, *, from_archive: bool
) -> None:
    store.redis.flushall()
    (path,) = segments(archive)[:1]
    path.write_bytes(path.read_bytes().replace(b'"ben"', b'"eve"', 1))
    assert codes(rebuild(store.redis, archive, from_archive=from_archive)) == ["broken-archive"]
    nowhere = archive.parent / "none"
    wanted = "no-archive" if from_archive else "nothing"
    assert codes(rebuild(store.redis, nowhere, from_archive=from_archive)) == [wanted]
    assert store.redis.keys("*") == []


def test_a_torn_end_of_the_archive_costs_only_that_entry(store: Store, archive: Path) -> None:
    store.redis.flushall()
    path = segments(archive)[-1]
    path.write_bytes(path.read_bytes()[:-10])
    told = rebuild(store.redis, archive, from_archive=False)
    assert (codes(told)[0], told[0].values) == ("entries", {"n": 16, "all": 16})
    assert Ledger(store.redis, lambda: 0.0).verify() == []


def test_a_ledger_that_goes_on_meanwhile_is_left_alone(
    store: Store, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(store.redis, lambda: 900_000.0)
    store.redis.delete(OPEN)

    def wrong_while_somebody_writes(*_: object) -> int:
        ledger.append("C-2", make.clicked(), expect_version=2)
        return 0

    monkeypatch.setattr("workers.rebuild._wrong", wrong_while_somebody_writes)
    assert codes(rebuild(store.redis, archive, from_archive=False)) == ["moved"]
    assert store.redis.smembers(OPEN) == {b"C-2"}
    with pytest.raises(LedgerConflict):
        ledger.append("C-2", make.clicked(), expect_version=2)


def test_where_threads_stand_is_looked_up_again_only_where_it_is_not_known(store: Store, archive: Path) -> None:
    drawn = Drawn(store.redis)
    known = Pointer(channel="C1", thread_ts="1.5", card_ts="1.5", seq=8)
    drawn.put("C-1", known)
    rebuild(store.redis, archive, from_archive=False)
    assert drawn.get("C-1") == known
    assert drawn.get("C-2") == Pointer(channel="C1", thread_ts="1.2", unsure_to=10)
    assert store.redis.exists(POINTER + "ab-1") == 0


@pytest.fixture(autouse=True)
def _nothing_is_left_over(store: Store) -> Iterator[None]:
    yield
    assert store.redis.exists("clawback:ledger-rebuilt") == 0
