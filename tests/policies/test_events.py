"""Every event survives storage as it was, and an entry that was edited in any one place is found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from policies import events as e
from policies.events import EVENT, GENESIS, Entry, Event, Succeeded, chain_problem, indexes, stored_digest
from policies.finding import Finding
from policies.intents import Where
from tests.policies import builders as b
from tests.policies.builders import suspicion
from tests.policies.change_events import asides, every, kinds
from tests.policies.test_plan_digest import edited, leaves

EVENTS: dict[str, Event] = {**every(b.plans()), **asides()}


def entry(event: Event, **more: Any) -> Entry:
    """The third entry of a ledger, sealed."""
    given_fields = {"seq": 3, "subject": "C-1", "version": 2, "at": b.NOW, "event": event, "prev": "a" * 64, **more}
    return Entry.model_validate(given_fields).sealed()


def test_there_is_an_example_of_every_kind() -> None:
    assert set(EVENTS) == kinds()


def problem_of(prev: str, link: Entry) -> Finding | None:
    """What is wrong with a link as it would be stored."""
    return chain_problem(prev, link, stored_digest(link.canonical()))


@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_survives_storage(kind: str) -> None:
    event = EVENTS[kind]
    assert EVENT.validate_json(EVENT.dump_json(event)) == event
    assert EVENT.validate_python(json.loads(json.dumps(event.model_dump(mode="json")))) == event


@pytest.mark.parametrize("kind", EVENTS)
def test_an_entry_survives_storage_and_still_follows_its_predecessor(kind: str) -> None:
    sealed = entry(EVENTS[kind])
    stored = json.dumps(sealed.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False)
    assert Entry.model_validate_json(stored) == Entry.model_validate_json(sealed.model_dump_json()) == sealed
    assert chain_problem("a" * 64, Entry.model_validate_json(stored), stored_digest(stored)) is None


@pytest.mark.parametrize("kind", EVENTS)
def test_an_edit_of_any_one_field_is_found(kind: str) -> None:
    sealed = entry(EVENTS[kind])
    document = sealed.model_dump(mode="json")
    places = [path for path in leaves(document) if path != ("hash",)]
    tried = 0
    for path in places:
        try:
            changed = Entry.model_validate(edited(document, path))
        except ValidationError:
            continue  # an edit that is no entry at all any more is found by reading it
        if changed == sealed:
            continue
        tried += 1
        found = problem_of("a" * 64, changed)
        assert found is not None, path
        assert found.code == ("ledger.broken-link" if path == ("prev",) else "ledger.edited-entry")
    assert tried >= 5


def test_an_entry_under_another_kind_is_found() -> None:
    sealed = entry(EVENTS["refused"])
    other = sealed.model_copy(update={"event": EVENTS["nothing_to_do"]})
    found = problem_of("a" * 64, other)
    assert found is not None
    assert found.values == {"seq": 3, "subject": "C-1", "kind": "nothing_to_do"}


def test_an_entry_behind_another_predecessor_is_a_broken_link() -> None:
    found = problem_of("b" * 64, entry(EVENTS["denied"]))
    assert found is not None
    assert (found.code, found.values) == (
        "ledger.broken-link",
        {"seq": 3, "expected": "b" * 64, "found": "a" * 64},
    )


def test_an_unsealed_entry_is_no_link() -> None:
    loose = Entry(seq=1, subject="C-1", version=1, at=b.NOW, event=EVENTS["expired"], prev=GENESIS)
    found = problem_of(GENESIS, loose)
    assert found is not None
    assert found.code == "ledger.edited-entry"
    assert problem_of(GENESIS, loose.sealed()) is None


def test_the_hash_is_not_part_of_what_is_hashed() -> None:
    sealed = entry(EVENTS["expired"])
    assert sealed.sealed() == sealed
    assert sealed.model_copy(update={"hash": "0" * 64}).sealed().hash == sealed.hash


def test_a_chain_of_every_kind_holds_and_breaks_where_an_entry_is_missing() -> None:
    chain: list[Entry] = []
    for seq, event in enumerate(EVENTS.values(), start=1):
        chain.append(entry(event, seq=seq, version=seq, prev=chain[-1].hash if chain else GENESIS))
    links = zip([GENESIS, *(x.hash for x in chain)], chain, strict=False)
    assert [problem_of(prev, link) for prev, link in links] == [None] * len(chain)
    for missing in range(1, len(chain) - 1):
        found = problem_of(chain[missing - 1].hash, chain[missing + 1])
        assert found is not None
        assert found.code == "ledger.broken-link"


VALUES = st.dictionaries(
    st.text(max_size=8),
    st.one_of(st.none(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    max_size=4,
)


@settings(max_examples=250, deadline=None)
@given(VALUES, st.floats(0, 4e9))
def test_whatever_a_finding_says_the_entry_holds_after_storage(values: dict[str, Any], at: float) -> None:
    finding = Finding(code="x.y", effect="note", values=values)
    sealed = entry(EVENTS["refused"].model_copy(update={"findings": (finding,)}), at=at)
    stored = Entry.model_validate_json(json.dumps(sealed.model_dump(mode="json")))
    assert problem_of("a" * 64, stored) is None
    assert stored.event == sealed.event


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "expired", "why": "late"},
        {"kind": "approval_given"},
        {"kind": "exploded"},
        {},
        {"kind": "step_started", "part": "redo", "index": 0, "step": "write", "instance": "d@h"},
        {
            "kind": "gate_passed",
            "part": "do",
            "index": 0,
            "instance": "d@h",
            "gate": "luck",
            "verdict": {"answer": "pass"},
        },
        {"kind": "refused", "findings": [{"code": "a.b", "effect": "maybe"}]},
    ],
)
def test_what_is_no_event_is_refused(event: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EVENT.validate_python(event)


def test_what_a_rollback_leaves_is_listed_among_locks() -> None:
    left = e.RollbackLock(
        service="decode", instances=("decode@gpu1",), taken=("1",), owner=b.ANA, where=Where(channel="C1")
    )
    ended = e.Succeeded(knob=None, order="o", was={}, now={}, took_s=1.0, service="decode", ref="0", locked=left)
    assert indexes(entry(ended)) == ("version:decode", "locks")


def test_entries_are_listed_where_projections_look_for_them() -> None:
    listed = {kind: indexes(entry(event)) for kind, event in EVENTS.items()}
    assert {kind: names for kind, names in listed.items() if names} == {
        **dict.fromkeys(("silence_made", "silence_prolonged", "silence_ended", "silence_failed"), ("asides",)),
        "drift_seen": ("drift",),
        "asked": ("changes",),
        "gate_passed": ("boot:decode@gpu1",),
        "succeeded": ("knob:TARGET_CTAS",),
        "probed": ("probe:router",),
        "evidence_recorded": ("evidence:TARGET_CTAS", "evidence"),
        "suspicion_reminded": ("asides",),
        "confirmed": ("locks",),
        "outside_seen": ("outside",),
        "locked": ("locks",),
        "unlocked": ("locks",),
        "statement_made": ("asides", "statements:C-1"),
        "statement_disputed": ("asides",),
        "statement_judged_again": ("asides",),
    }


def test_a_success_that_leaves_a_suspicion_is_found_among_the_suspicions() -> None:
    done = EVENTS["succeeded"]
    assert isinstance(done, Succeeded)
    left = done.model_copy(update={"suspicion": suspicion()})
    assert indexes(entry(left)) == ("knob:TARGET_CTAS", "suspicions")
    assert EVENT.validate_json(EVENT.dump_json(left)) == left


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, ("boot:decode@gpu1",)),
        ({"waited_s": None}, ()),
        ({"gate": "port"}, ()),
        ({"instance": "prefill@gpu1"}, ("boot:prefill@gpu1",)),
    ],
)
def test_only_a_health_gate_with_its_waiting_time_is_a_boot(changes: dict[str, Any], names: tuple[str, ...]) -> None:
    assert indexes(entry(EVENTS["gate_passed"].model_copy(update=changes))) == names


def test_what_was_and_is_live_is_kept_by_instance() -> None:
    done = EVENTS["succeeded"]
    assert isinstance(done, Succeeded)
    again = EVENT.validate_json(EVENT.dump_json(done))
    assert isinstance(again, Succeeded)
    assert (again.was, again.now) == ({"decode@gpu1": None}, {"decode@gpu1": "512"})


def test_an_entry_of_an_older_version_that_lacks_a_later_field_keeps_its_hash() -> None:
    new = entry(EVENTS["planned"]).sealed()
    document = json.loads(new.canonical())
    del document["event"]["dry"]  # as if it had been written before that field was added
    document["hash"] = stored_digest(json.dumps(document))
    text = json.dumps(document)
    read = Entry.model_validate_json(text)
    assert read.hash != read.sealed().hash
    assert chain_problem(read.prev, read, stored_digest(text)) is None
