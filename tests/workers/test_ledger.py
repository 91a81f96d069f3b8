"""The ledger on a real Valkey: one writer wins, the fold is the change, the projections follow."""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies import events as e
from policies.change import IllegalTransition
from policies.errors import LedgerConflict, NotFound, StoreUnavailable
from policies.events import Entry
from tests.conftest import Store
from tests.workers import events as make
from workers.ledger import DEADLINE, HEAD, OPEN, STREAM, Ledger
from workers.store import connect


@pytest.fixture
def ledger(store: Store) -> Ledger:
    return Ledger(store.redis, lambda: 1000.0)


def _play(ledger: Ledger, subject: str, events: list[e.Event]) -> list[Entry]:
    return [ledger.append(subject, event, expect_version=number) for number, event in enumerate(events)]


def test_a_whole_life_is_appended_and_folds_to_its_end(ledger: Ledger) -> None:
    entries = _play(ledger, "C-1", make.whole_life())
    assert [entry.seq for entry in entries] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [entry.version for entry in entries] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert ledger.entries("C-1") == entries
    change = ledger.load("C-1")
    assert (change.state, change.version, change.ended_at) == ("succeeded", 8, 1000.0)
    assert change.tokens == {make.INSTANCE: 1}
    assert ledger.verify() == []


def test_each_entry_carries_the_hash_of_the_one_before_it(ledger: Ledger) -> None:
    first, second = _play(ledger, "C-1", [make.asked(), make.planned()])
    assert first.prev == e.GENESIS
    assert second.prev == first.hash == e.stored_digest(first.canonical())


def test_an_unknown_change_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(NotFound, match="no change `C-9`"):
        ledger.load("C-9")
    assert ledger.entries("C-9") == []


def test_a_writer_behind_the_subject_is_told_so_and_writes_nothing(ledger: Ledger, store: Store) -> None:
    ledger.append("C-1", make.asked(), expect_version=0)
    other = Ledger(store.redis, lambda: 1000.0)
    other.append("C-1", make.planned(), expect_version=1)
    with pytest.raises(LedgerConflict, match="C-1 has 2 entries, expected 1"):
        ledger.append("C-1", e.Refused(findings=()), expect_version=1)
    assert store.redis.xlen(STREAM) == 2
    assert ledger.verify() == []


def test_a_writer_ahead_of_the_subject_is_told_so(ledger: Ledger) -> None:
    with pytest.raises(LedgerConflict):
        ledger.append("C-1", make.planned(), expect_version=1)


def test_a_head_moved_by_another_subject_is_no_conflict(ledger: Ledger, store: Store) -> None:
    real = ledger._head
    moved: list[bool] = []

    def stale() -> tuple[int, str]:
        head = real()
        if not moved:
            moved.append(True)
            Ledger(store.redis, lambda: 1.0).append("C-2", make.asked(), expect_version=0)
        return head

    ledger._head = stale  # type: ignore[method-assign]
    assert ledger.append("C-1", make.asked(), expect_version=0).seq == 2
    assert ledger.verify() == []


def test_an_event_that_the_table_forbids_is_not_recorded(ledger: Ledger, store: Store) -> None:
    ledger.append("C-1", make.asked(), expect_version=0)
    with pytest.raises(IllegalTransition, match="`succeeded` cannot follow in state `asked`"):
        ledger.append("C-1", make.succeeded(), expect_version=1)
    assert store.redis.xlen(STREAM) == 1


def test_an_append_whose_answer_was_lost_is_not_taken_for_a_conflict(ledger: Ledger) -> None:
    real = ledger._append

    def lossy(keys: list[str], args: list[str | int]) -> list[bytes]:
        real(keys=keys, args=args)
        answer: list[bytes] = real(keys=keys, args=args)  # what the client does when the first answer never came
        return answer

    ledger._append = lossy  # type: ignore[assignment]
    assert ledger.append("C-1", make.asked(), expect_version=0).version == 1
    assert len(ledger.entries("C-1")) == 1


def test_an_append_that_is_repeated_under_its_name_is_one_entry_also_when_others_wrote_behind_it(
    ledger: Ledger, store: Store
) -> None:
    first = ledger.append("C-1", make.asked(), expect_version=0, nonce="one")
    ledger.append("C-1", make.planned(), expect_version=1)
    for again in (ledger, Ledger(store.redis, lambda: 2000.0)):
        assert again.append("C-1", make.asked(), expect_version=0, nonce="one") == first
        with pytest.raises(LedgerConflict):
            again.append("C-1", make.asked(), expect_version=0, nonce="two")
    assert ledger.written("C-1", "one") == first
    assert ledger.written("C-1", "two") is None
    assert len(ledger.entries("C-1")) == 2
    assert ledger.verify() == []


def test_open_changes_and_deadlines_follow_the_state(ledger: Ledger, store: Store) -> None:
    ledger.append("C-1", make.asked(), expect_version=0)
    assert (ledger.open_changes(), ledger.overdue(9e9)) == (["C-1"], [])
    ledger.append("C-1", make.planned(expires_at=1800.25), expect_version=1)
    assert ledger.overdue(1800.0) == []
    assert ledger.overdue(1800.25) == ["C-1"]
    ledger.append("C-1", make.clicked(), expect_version=2)
    assert ledger.overdue(1800.25) == ["C-1"]
    ledger.append("C-1", e.Expired(), expect_version=3)
    assert (ledger.open_changes(), ledger.overdue(9e9)) == ([], [])
    ledger.append("C-1", make.clicked(), expect_version=4)
    assert (store.redis.scard(OPEN), store.redis.zcard(DEADLINE)) == (0, 0)


def test_indexes_hold_what_policies_say(ledger: Ledger) -> None:
    _play(ledger, "C-1", make.whole_life())
    ledger.append("ab-1", make.evidence("ab-1"), expect_version=0)
    assert [entry.event.kind for entry in ledger.index("knob:TARGET_CTAS")] == ["succeeded"]
    assert [entry.seq for entry in ledger.index(f"boot:{make.INSTANCE}")] == [7]
    assert [entry.subject for entry in ledger.index("evidence")] == ["ab-1"]
    assert [entry.subject for entry in ledger.index("evidence:TARGET_CTAS")] == ["ab-1"]
    assert [entry.subject for entry in ledger.index("changes")] == ["C-1"]
    assert ledger.index("knob:OTHER") == []


def test_a_record_of_evidence_is_no_change(ledger: Ledger) -> None:
    ledger.append("ab-1", make.evidence("ab-1"), expect_version=0)
    with pytest.raises(NotFound):
        ledger.load("ab-1")
    assert ledger.open_changes() == []
    with pytest.raises(LedgerConflict):
        ledger.append("ab-1", make.evidence("ab-1"), expect_version=0)
    ledger.append("C-1", make.asked(), expect_version=0)
    with pytest.raises(ValueError, match="not as `C-1`"):
        ledger.append("C-1", make.evidence("ab-2"), expect_version=1)


def test_ids_are_never_given_twice(ledger: Ledger) -> None:
    assert [ledger.new_id("C"), ledger.new_id("C"), ledger.new_id("ab"), ledger.new_id("C")] == [
        "C-1",
        "C-2",
        "ab-1",
        "C-3",
    ]


def test_a_reader_gets_everything_behind_its_place_in_order(ledger: Ledger) -> None:
    entries = _play(ledger, "C-1", make.whole_life())
    assert list(ledger.read()) == entries
    assert list(ledger.read(after_seq=5)) == entries[5:]
    assert list(ledger.read(after_seq=8)) == []
    assert list(ledger.read(after_seq=8, block_ms=20)) == []


def test_a_blocked_reader_gets_an_entry_that_comes_later(ledger: Ledger, store: Store) -> None:
    writer_client = connect(store.url)
    writer = Ledger(writer_client, lambda: 1000.0)
    timer = threading.Timer(0.1, writer.append, args=("C-1", make.asked()), kwargs={"expect_version": 0})
    timer.start()
    found = next(ledger.read(block_ms=20_000))
    timer.join()
    writer_client.close()
    assert found.subject == "C-1"


def test_export_is_one_line_of_canonical_json_for_each_entry(ledger: Ledger) -> None:
    entries = _play(ledger, "C-1", make.whole_life())
    lines = list(ledger.export())
    assert [Entry.model_validate_json(line) for line in lines] == entries
    assert all(json.dumps(json.loads(line), sort_keys=True, separators=(",", ":")) == line for line in lines)


def test_an_entry_that_was_edited_in_redis_is_not_believed(ledger: Ledger, store: Store) -> None:
    _play(ledger, "C-1", [make.asked()])
    (text,) = ledger.export()
    store.redis.delete(STREAM)
    store.redis.xadd(STREAM, {"entry": text.replace("512", "513")}, id="1-0")
    with pytest.raises(StoreUnavailable, match="entry 1 of the ledger is edited"):
        ledger.load("C-1")


def test_an_entry_that_was_deleted_in_redis_is_missed(ledger: Ledger, store: Store) -> None:
    _play(ledger, "C-1", [make.asked(), make.planned()])
    store.redis.xdel(STREAM, "2-0")
    with pytest.raises(StoreUnavailable, match="entry 2 of the ledger is missing"):
        ledger.load("C-1")


def _race(store: Store, writers: int, subjects: list[str], rounds: int) -> tuple[list[Entry], Counter[str]]:
    won: list[Entry] = []
    outcome: Counter[str] = Counter()
    gate = threading.Barrier(writers)

    def write(number: int) -> None:
        client = connect(store.url)
        ledger = Ledger(client, lambda: 1000.0)
        gate.wait(30)
        for step in range(rounds):
            subject = subjects[(number + step) % len(subjects)]
            version = len(ledger.entries(subject))
            event: e.Event = make.asked() if version == 0 else make.clicked(f"by {number}")
            try:
                won.append(ledger.append(subject, event, expect_version=version))
                outcome["won"] += 1
            except LedgerConflict:
                outcome["lost"] += 1
        client.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return won, outcome


@pytest.mark.parametrize("subjects", [["C-1"], ["C-1", "C-2", "C-3"], [f"C-{number}" for number in range(8)]])
def test_of_many_writers_each_success_is_in_the_chain_once(store: Store, subjects: list[str]) -> None:
    won, outcome = _race(store, writers=8, subjects=subjects, rounds=10)
    ledger = Ledger(store.redis, lambda: 1000.0)
    stored = list(ledger.read())
    assert sorted(won, key=lambda entry: entry.seq) == stored
    assert outcome["won"] == len(stored) == int(store.redis.hget(HEAD, "seq") or 0)
    assert outcome["won"] + outcome["lost"] == 80
    assert ledger.verify() == []


def test_two_identical_writers_at_the_same_moment_do_not_both_win(store: Store) -> None:
    for number in range(20):
        subject = f"C-{number}"
        gate = threading.Barrier(2)
        won: list[int] = []

        def write(subject: str = subject, gate: threading.Barrier = gate, won: list[int] = won) -> None:
            ledger = Ledger(store.redis, lambda: 1000.0)
            gate.wait(30)
            with suppress(LedgerConflict):
                won.append(ledger.append(subject, make.asked(), expect_version=0).seq)

        threads = [threading.Thread(target=write) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(won) == 1


TEXT = st.text(max_size=40).filter(lambda text: not any("\ud800" <= sign <= "\udfff" for sign in text))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(TEXT, min_size=1, max_size=6), at=st.floats(min_value=0, max_value=4e9))
def test_whatever_people_type_comes_back_and_the_chain_holds(store: Store, said: list[str], at: float) -> None:
    store.redis.flushall()
    ledger = Ledger(store.redis, lambda: at)
    entries = [ledger.append(f"C-{n}", make.asked(text), expect_version=0) for n, text in enumerate(said)]
    assert [entry.event.said for entry in ledger.read() if isinstance(entry.event, e.Asked)] == said
    assert list(ledger.read()) == entries
    assert ledger.verify() == []
