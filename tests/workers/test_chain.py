"""Whatever is done to the ledger behind our back is found and named by its number."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
import redis

from policies import events as e
from policies.events import Entry
from tests.conftest import Store
from tests.workers import events as make
from workers.ledger import DEADLINE, HEAD, OPEN, STREAM, SUBJECT, Ledger, stored

Rows = list[tuple[str, str]]  # (stream id, entry)


@pytest.fixture
def ledger(store: Store) -> Ledger:
    ledger = Ledger(store.redis, lambda: 1000.0)
    for number, event in enumerate(make.whole_life()):
        ledger.append("C-1", event, expect_version=number)
    ledger.append("ab-1", make.evidence("ab-1"), expect_version=0)
    ledger.append("C-2", make.asked("other"), expect_version=0)
    assert ledger.verify() == []
    return ledger


def _rewrite(store: Store, ledger: Ledger, change: Callable[[Rows], Rows]) -> None:
    """Replace the stream by an edited copy: what somebody with the password could do."""
    rows = [(f"{number}-0", line) for number, line in enumerate(ledger.export(), 1)]
    store.redis.delete(STREAM)
    for name, text in change(rows):
        store.redis.xadd(STREAM, {"entry": text, "writer": "x"}, id=name)


def _named(ledger: Ledger) -> list[tuple[str, object]]:
    return [(found.code.removeprefix("ledger."), found.values.get("seq")) for found in ledger.verify()]


def _edit(text: str, **fields: object) -> Entry:
    return Entry.model_validate({**json.loads(text), **fields})


def test_an_edited_entry_is_named(store: Store, ledger: Ledger) -> None:
    _rewrite(store, ledger, lambda rows: [(n, t.replace('"ben"', '"eve"') if n == "3-0" else t) for n, t in rows])
    assert _named(ledger) == [("edited-entry", 3)]


def test_an_edited_entry_with_a_new_hash_breaks_the_link_behind_it(store: Store, ledger: Ledger) -> None:
    def forge(rows: Rows) -> Rows:
        rows[2] = ("3-0", _edit(rows[2][1], at=5.0).sealed().canonical())
        return rows

    _rewrite(store, ledger, forge)
    assert _named(ledger) == [("broken-link", 4)]


def test_the_last_entry_edited_with_a_new_hash_disagrees_with_the_head(store: Store, ledger: Ledger) -> None:
    def forge(rows: Rows) -> Rows:
        rows[-1] = (rows[-1][0], _edit(rows[-1][1], at=5.0).sealed().canonical())
        return rows

    _rewrite(store, ledger, forge)
    assert _named(ledger) == [("wrong-head", 10)]


@pytest.mark.parametrize("number", [1, 4, 10])
def test_a_deleted_entry_is_named(store: Store, ledger: Ledger, number: int) -> None:
    store.redis.xdel(STREAM, f"{number}-0")
    assert _named(ledger) == [("missing-entry", number)]


def test_an_emptied_stream_names_every_entry(store: Store, ledger: Ledger) -> None:
    store.redis.delete(STREAM)
    assert _named(ledger) == [("missing-entry", number) for number in range(1, 11)]


def test_an_inserted_entry_is_named(store: Store, ledger: Ledger) -> None:
    def insert(rows: Rows) -> Rows:
        forged = _edit(rows[1][1], seq=3).sealed()
        return [*rows[:2], ("2-1", forged.canonical()), *rows[2:]]

    _rewrite(store, ledger, insert)
    assert _named(ledger) == [("misplaced-entry", 3)]


def test_an_entry_added_at_the_end_by_hand_is_named(store: Store, ledger: Ledger) -> None:
    last = list(ledger.read())[-1]
    forged = Entry(seq=11, subject="C-3", version=1, at=1.0, event=make.asked(), prev=last.hash).sealed()
    store.redis.xadd(STREAM, {"entry": forged.canonical()}, id="11-0")
    assert [code for code, _ in _named(ledger)] == ["wrong-head", "wrong-list", "wrong-list"]


def test_two_entries_that_changed_places_are_both_named(store: Store, ledger: Ledger) -> None:
    def swap(rows: Rows) -> Rows:
        rows[4], rows[5] = (rows[4][0], rows[5][1]), (rows[5][0], rows[4][1])
        return rows

    _rewrite(store, ledger, swap)
    named = _named(ledger)
    assert ("misplaced-entry", 5) in named
    assert ("misplaced-entry", 6) in named


def test_text_that_is_no_entry_is_named(store: Store, ledger: Ledger) -> None:
    _rewrite(store, ledger, lambda rows: [(n, "{}\n" if n == "7-0" else t) for n, t in rows])
    assert _named(ledger) == [("unreadable-entry", 7)]


def test_an_event_that_cannot_have_happened_is_named_though_its_chain_holds(store: Store) -> None:
    ledger = Ledger(store.redis, lambda: 1000.0)
    first = ledger.append("C-1", make.asked(), expect_version=0)
    forged = Entry(seq=2, subject="C-1", version=2, at=1.0, event=make.approved(), prev=first.hash).sealed()
    store.redis.xadd(STREAM, {"entry": forged.canonical()}, id="2-0")
    store.redis.hset(HEAD, mapping={"seq": 2, "hash": forged.hash})
    store.redis.rpush(SUBJECT + "C-1", 2)
    assert _named(ledger) == [("illegal-event", 2)]


def test_a_version_given_twice_is_named(store: Store) -> None:
    ledger = Ledger(store.redis, lambda: 1000.0)
    first = ledger.append("C-1", make.asked(), expect_version=0)
    forged = Entry(seq=2, subject="C-1", version=1, at=1.0, event=make.clicked(), prev=first.hash).sealed()
    store.redis.xadd(STREAM, {"entry": forged.canonical()}, id="2-0")
    store.redis.hset(HEAD, mapping={"seq": 2, "hash": forged.hash})
    store.redis.rpush(SUBJECT + "C-1", 2)
    assert _named(ledger) == [("wrong-version", 2)]


def test_lists_that_disagree_with_the_stream_are_named(store: Store, ledger: Ledger) -> None:
    store.redis.rpop(SUBJECT + "C-1")
    store.redis.rpush("clawback:index:knob:OTHER", 8)
    store.redis.delete("clawback:index:evidence")
    found = [(f.values["list"], f.values["seq"]) for f in ledger.verify()]
    assert found == [("index:evidence", 9), ("index:knob:OTHER", 8), ("subject:C-1", 8)]


def test_sets_that_disagree_with_the_stream_are_named(store: Store, ledger: Ledger) -> None:
    store.redis.sadd(OPEN, "C-1")
    store.redis.srem(OPEN, "C-2")
    store.redis.zadd(DEADLINE, {"C-2": 1})
    found = [(f.code, f.values["list"], f.values["subject"]) for f in ledger.verify()]
    assert found == [
        ("ledger.wrong-set", "open", "C-1"),
        ("ledger.wrong-set", "open", "C-2"),
        ("ledger.wrong-set", "deadline", "C-2"),
    ]


def test_entries_appended_while_we_look_are_no_problem(
    store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers import chain

    def slow(client: redis.Redis) -> Iterator[tuple[int, str]]:
        Ledger(client, lambda: 1.0).append("C-3", make.asked(), expect_version=0)
        return stored(client)

    monkeypatch.setattr(chain, "stored", slow)
    assert ledger.verify() == []


def test_a_long_ledger_is_read_in_pieces(store: Store) -> None:
    ledger = Ledger(store.redis, lambda: 1000.0)
    ledger.append("C-1", make.asked(), expect_version=0)
    for number in range(1, 1100):
        ledger.append("C-1", e.ClickRefused.model_validate(make.clicked().model_dump()), expect_version=number)
    assert ledger.verify() == []
    assert len(list(ledger.read())) == len(ledger.entries("C-1")) == len(list(ledger.export())) == 1100
