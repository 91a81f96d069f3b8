"""A lock stands in the way of every change of what it covers, until it is opened or its time is over."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.messages import strict
from policies import events as e
from policies.events import Entry
from policies.intents import Actor, Where
from policies.locks import Lock, covered, in_the_way, may_lock, may_unlock, of_scope, standing, to_open
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


def rolled_back(taken: str = "0.5.24", because: str | None = "5xx since the deploy") -> e.Succeeded:
    """The end of a rollback of decode, asked for by ana."""
    left = e.RollbackLock(
        service="decode",
        instances=covered(FLEET, "decode"),
        taken=(taken,),
        brought=("C-3",),
        owner=b.ANA,
        because=because,
        where=Where(channel="C1"),
    )
    now = dict.fromkeys(left.instances, "0.5.23")
    was = dict.fromkeys(left.instances, taken)
    ended = e.Succeeded(knob=None, order="decode-only", was=was, now=now, took_s=1.0, service="decode", ref="0.5.23")
    return ended.model_copy(update={"locked": left})


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


def test_a_rollback_leaves_a_lock_against_deploys_of_its_service_and_nothing_else() -> None:
    (lock,) = standing(entries(("C-7", rolled_back())), b.NOW + 10 * 365 * 86_400)
    assert (lock.id, lock.locked.actor, lock.locked.until) == ("rl-7", b.ANA, None)
    touched = ["prefill@gpu1", "decode@gpu1", "decode@gpu2"]
    (found,) = in_the_way([lock], touched, "decode")
    assert (found.code, found.effect) == ("lock.after-rollback", "refuse")
    told = strict(found)
    assert "`decode` is locked against deploys (rl-7)" in told
    assert "C-7 took `0.5.24` away (brought by C-3; <@U0ANA>: 5xx since the deploy)" in told
    assert "confirms that `0.5.24` is fixed or will not be deployed again with `/deploy unlock decode`" in told
    assert in_the_way([lock], touched) == ()  # knobs, restarts, a further rollback
    assert in_the_way([lock], touched, "prefill") == ()


def test_what_a_rollback_took_away_is_confirmed_by_an_approver_and_not_by_its_owner() -> None:
    (lock,) = standing(entries(("C-7", rolled_back())), b.NOW)
    refused = may_unlock(b.ANA, lock, FLEET)
    assert refused is not None
    assert refused.code == "lock.must-be-confirmed"
    assert "an approver has to confirm that `0.5.24`, which C-7 took away" in strict(refused)
    assert may_unlock(b.BEN, lock, FLEET) is None
    word = e.Confirmed(actor=b.BEN, service="decode", taken=("0.5.24",))
    assert standing(entries(("C-7", rolled_back()), ("rl-7", word)), b.NOW) == ()


def test_each_rollback_leaves_its_own_lock_and_each_is_opened_alone() -> None:
    told = entries(("C-7", rolled_back()), ("C-9", rolled_back("0.5.25", None)))
    assert [f.values["taken"] for f in in_the_way(standing(told, b.NOW), (), "decode")] == ["0.5.24", "0.5.25"]
    word = e.Confirmed(actor=b.BEN, service="decode", taken=("0.5.24",))
    (left,) = standing([*told, *entries(("rl-7", word))], b.NOW)
    assert left.id == "rl-9"
    (found,) = in_the_way([left], (), "decode")
    assert "no reason given" in strict(found)


def test_a_word_opens_what_a_person_put_on_before_what_a_rollback_left() -> None:
    locks = standing(entries(("C-7", rolled_back()), ("lk-1", put_on("decode"))), b.NOW)
    assert of_scope(locks[:1], "decode") is None  # a person may still close it to every change
    assert [found.id for name in ("decode", "rl-7") if (found := to_open(locks, name))] == ["lk-1", "rl-7"]
    assert to_open(locks, "router") is None


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
