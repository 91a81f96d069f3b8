"""A lock stands in the way of every change of what it covers, until it is opened or its time is over."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from policies import events as e
from policies.events import Entry
from policies.intents import Actor, Where
from policies.locks import Lock, covered, in_the_way, may_lock, may_unlock, of_scope, standing
from tests.policies import builders as b

FLEET = b.fleet(hosts=("gpu1", "gpu2"))
STRANGER = Actor(id="U0EVE", team="T1", name="eve")


def put_on(scope: str, actor: Actor = b.ANA, until: float | None = None) -> e.Locked:
    instances = covered(FLEET, scope)
    return e.Locked(
        scope=scope, instances=instances, actor=actor, because="profiling", where=Where(channel="C1"), until=until
    )


def entries(*told: tuple[str, e.Event]) -> list[Entry]:
    return [
        Entry(seq=seq, subject=subject, version=1, at=b.NOW + seq, event=event, prev="0" * 64)
        for seq, (subject, event) in enumerate(told, start=1)
    ]


def test_a_scope_is_a_service_a_host_or_one_instance() -> None:
    assert covered(FLEET, "decode") == ("decode@gpu1", "decode@gpu2")
    assert covered(FLEET, "gpu2") == ("decode@gpu2",)
    assert covered(FLEET, "decode@gpu1") == ("decode@gpu1",)
    assert covered(FLEET, "nothing") == ()


def test_a_lock_holds_until_it_is_opened() -> None:
    told = entries(("lk-1", put_on("decode")), ("lk-2", put_on("router")), ("lk-1", e.Unlocked(actor=b.ANA)))
    assert [lock.id for lock in standing(told[:2], b.NOW)] == ["lk-1", "lk-2"]
    assert [lock.id for lock in standing(told, b.NOW)] == ["lk-2"]


def test_a_lock_with_an_end_is_over_in_that_very_second() -> None:
    told = entries(("lk-1", put_on("decode", until=b.NOW + 60)))
    assert [lock.id for lock in standing(told, b.NOW + 59.9)] == ["lk-1"]
    assert standing(told, b.NOW + 60) == ()


def test_it_is_in_the_way_of_what_it_covers_and_of_nothing_else() -> None:
    locks = standing(entries(("lk-1", put_on("decode@gpu2"))), b.NOW)
    (found,) = in_the_way(locks, ["prefill@gpu1", "decode@gpu2"])
    assert (found.code, found.effect) == ("lock.in-the-way", "refuse")
    assert (found.values["lock"], found.values["owner"], found.values["because"]) == ("lk-1", b.ANA.id, "profiling")
    assert in_the_way(locks, ["prefill@gpu1", "decode@gpu1"]) == ()


def test_who_may_neither_ask_nor_approve_may_not_lock() -> None:
    assert may_lock(b.ANA, FLEET) is None
    assert may_lock(b.CAT, FLEET) is None
    refused = may_lock(STRANGER, FLEET)
    assert refused is not None
    assert refused.code == "lock.may-not"


def test_the_owner_and_approvers_may_open_it_and_nobody_else() -> None:
    (lock,) = standing(entries(("lk-1", put_on("decode"))), b.NOW)
    assert may_unlock(b.ANA, lock, FLEET) is None
    assert may_unlock(b.CAT, lock, FLEET) is None
    other = Actor(id="U0DAN", team="T1", name="dan", roles=("engineers",))
    refused = may_unlock(other, lock, FLEET)
    assert refused is not None
    assert (refused.code, refused.values["owner"]) == ("lock.not-yours", b.ANA.id)


def test_the_lock_of_a_scope_is_the_one_put_on_it_by_that_name() -> None:
    locks = standing(entries(("lk-1", put_on("decode"))), b.NOW)
    assert of_scope(locks, "decode") == locks[0]
    assert of_scope(locks, "decode@gpu1") is None


SCOPES = st.sampled_from(["decode", "decode@gpu1", "gpu1", "router"])
STEPS = st.lists(st.tuples(st.integers(1, 4), SCOPES, st.booleans()), max_size=12)


@given(STEPS, st.sets(st.sampled_from(["prefill@gpu1", "decode@gpu1", "decode@gpu2", "router@gpu1"])))
def test_what_is_in_the_way_is_what_was_closed_last_and_not_opened(
    steps: list[tuple[int, str, bool]], wanted: set[str]
) -> None:
    told: list[tuple[str, e.Event]] = []
    expected: dict[str, str] = {}
    for number, scope, close in steps:
        name = f"lk-{number}"
        told.append((name, put_on(scope) if close else e.Unlocked(actor=b.ANA)))
        expected.pop(name, None)
        if close:
            expected[name] = scope
    locks: tuple[Lock, ...] = standing(entries(*told), b.NOW)
    found = {str(one.values["lock"]) for one in in_the_way(locks, wanted)}
    assert found == {name for name, scope in expected.items() if wanted & set(covered(FLEET, scope))}
