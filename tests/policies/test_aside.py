"""What is recorded beside changes has its own names and its own order."""

from __future__ import annotations

from policies.events import Event, misplaced, tells_change
from policies.events.aside import ASIDE
from tests.policies import builders as b
from tests.policies.change_events import (
    every,
    evidence_recorded,
    kinds,
    statement_disputed,
    statement_made,
    suspicion_reminded,
)


def test_an_event_tells_a_change_or_is_listed_beside_them() -> None:
    of_changes = set(every(b.plans()))
    assert {kind for kind in kinds() if tells_change(kind)} == of_changes
    assert set(ASIDE) == kinds() - of_changes


def test_an_event_of_a_change_is_judged_by_the_life_of_the_change_alone() -> None:
    assert [misplaced("C-1", event, 7) for event in every(b.plans()).values()] == [None] * len(every(b.plans()))


def test_a_suspicion_may_be_reminded_of_often_and_under_its_name_only() -> None:
    assert [misplaced("su-7", suspicion_reminded(), before) for before in (0, 1, 9)] == [None, None, None]
    assert "a name like `su-7`" in (misplaced("C-7", suspicion_reminded(), 0) or "")


def test_a_statement_is_made_once_and_contested_only_after_that() -> None:
    assert misplaced("st-4", statement_made(), 0) is None
    assert "recorded once" in (misplaced("st-4", statement_made(), 1) or "")
    assert "not as `st-5`" in (misplaced("st-5", statement_made(), 0) or "")
    assert misplaced("st-4", statement_disputed(), 1) is None
    assert "cannot be the first" in (misplaced("st-4", statement_disputed(), 0) or "")


def test_a_record_stands_alone_under_its_own_name() -> None:
    event: Event = evidence_recorded()
    own = evidence_recorded().record.id
    assert misplaced(own, event, 0) is None
    assert "recorded once" in (misplaced(own, event, 1) or "")
    assert "not as `ab-999`" in (misplaced("ab-999", event, 0) or "")
