"""Overrides that wait for a second person: reminded once, taken back once, whoever dies and however many look."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from policies import events as e
from policies.change import Change
from policies.emergency import OURS, ratification
from policies.intents import Restart, UnsetKnob
from tests.conftest import Store
from tests.policies import builders as b
from tests.policies.change_events import every
from tests.policies.test_emergency import OTTO, override
from workers.emergencies import Emergencies
from workers.ledger import Ledger
from workers.queue import Doorbell

PLANS = b.plans()
WITHIN_S = 7200.0


class Dies(Exception):
    """This process ends here."""


class Night:
    """One override in a store, and whoever looks at it."""

    def __init__(self, store: Store) -> None:
        self.now = b.NOW
        self.store = store
        self.ledger = Ledger(store.redis, lambda: self.now)

    def told(self, *kinds: str, asked: e.Asked | None = None) -> str:
        """A change whose requester confirmed it alone, with what came then."""
        change = self.ledger.new_id("C")
        asked = asked or b.asked(OTTO, emergency=True, because="5xx")
        given = e.ApprovalGiven(
            actor=OTTO, order=PLANS[0].order, digest=PLANS[0].digest, complete=True, override=override()
        )
        events = every(PLANS)
        told = [asked, b.planned(PLANS, emergency=override()), given, *(events[kind] for kind in kinds)]
        for version, event in enumerate(told):
            self.ledger.append(change, event, expect_version=version)
        return change

    def look(self, ledger: Ledger | None = None) -> None:
        """One turn of a process that knows nothing of the turns before."""
        ledger = ledger or Ledger(self.store.redis, lambda: self.now)
        Emergencies(ledger, Doorbell(self.store.redis), b.fleet(), lambda: self.now).turn()

    def kinds(self, change: str) -> list[str]:
        """What is recorded behind the confirmation."""
        return [str(entry.event.kind) for entry in self.ledger.entries(change)][3:]

    def change(self, name: str) -> Change:
        return self.ledger.load(name)


@pytest.fixture
def night(store: Store) -> Night:
    return Night(store)


def test_those_who_may_ratify_are_reminded_once_and_then_it_is_taken_back_once(night: Night) -> None:
    change = night.told("started", "succeeded")
    for after_s, kinds in (
        (0, []),
        (WITHIN_S - 901, []),
        (WITHIN_S - 900, ["ratify_reminded"]),
        (WITHIN_S - 1, ["ratify_reminded"]),
        (WITHIN_S, ["ratify_reminded", "lapsed"]),
        (WITHIN_S + 9, ["ratify_reminded", "lapsed"]),
    ):
        night.now = b.NOW + after_s
        night.look()
        night.look()
        assert night.kinds(change) == ["started", "succeeded", *kinds]
    lapsed = night.change(change).lapsed
    assert lapsed is not None
    assert lapsed.undo is not None
    back = night.change(lapsed.undo)
    assert back.asked is not None
    assert (back.state, back.asked.undoes, back.asked.actor) == ("asked", change, OURS)
    assert back.asked.intent == UnsetKnob(
        knob="TARGET_CTAS", order=PLANS[0].order, because=f"{change} was not ratified in time"
    )
    assert len(night.ledger.index("changes")) == 2


def test_a_word_in_time_settles_it(night: Night) -> None:
    change = night.told("started", "succeeded", "ratified")
    night.now += 2 * WITHIN_S
    night.look()
    assert night.kinds(change) == ["started", "succeeded", "ratified"]
    assert ratification(night.change(change)).word == "ratified"


def test_what_is_held_when_the_time_is_over_is_undone_itself(night: Night) -> None:
    change = night.told("started", "held")
    night.now += WITHIN_S
    night.look()
    night.look()
    assert night.kinds(change) == ["started", "held", "lapsed", "undo_asked"]
    assert night.change(change).state == "undoing"
    assert len(night.ledger.index("changes")) == 1


@pytest.mark.parametrize(
    "kinds", [("started",), ("started", "undo_started"), ()], ids=["running", "undoing", "approved"]
)
def test_what_is_at_work_is_waited_for(night: Night, kinds: tuple[str, ...]) -> None:
    change = night.told(*kinds)
    night.now += WITHIN_S + 60
    night.look()
    assert "lapsed" not in night.kinds(change)
    if kinds == ("started",):
        night.ledger.append(change, every(PLANS)["succeeded"], expect_version=night.change(change).version)
        night.look()
        assert night.kinds(change)[-1] == "lapsed"


def test_a_restart_stays_and_says_that_nobody_ratified_it(night: Night) -> None:
    asked = b.asked(OTTO).model_copy(update={"intent": Restart(scope="decode", because="5xx", emergency=True)})
    change = night.told("started", "succeeded", asked=asked)
    night.now += WITHIN_S
    night.look()
    lapsed = night.change(change).lapsed
    assert lapsed is not None
    assert (lapsed.undo, [one.code for one in lapsed.findings]) == (None, ["ratify.restart-stays"])
    assert ratification(night.change(change)).word == "lapsed"


class Dying(Ledger):
    """Ends before or after its n-th append."""

    left = 0
    before = True

    def append(self, *arguments: object, **named: object) -> e.Entry:
        self.left -= 1
        if self.left == 0 and self.before:
            raise Dies
        entry = super().append(*arguments, **named)  # type: ignore[arg-type]
        if self.left == 0:
            raise Dies
        return entry


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("way", [("started", "succeeded"), ("started", "held")], ids=["succeeded", "held"])
def test_whoever_ends_in_the_middle_the_next_one_goes_on_and_nothing_is_done_twice(
    night: Night, nth: int, before: bool, way: tuple[str, ...]
) -> None:
    change = night.told(*way)
    night.now += WITHIN_S
    dying = Dying(night.store.redis, lambda: night.now)
    dying.left, dying.before = nth, before
    with pytest.raises(Dies):
        night.look(dying)
    night.look()
    night.look()
    assert night.kinds(change).count("lapsed") == 1
    lapsed = night.change(change).lapsed
    assert lapsed is not None
    if way[-1] == "held":
        assert (lapsed.undo, night.kinds(change).count("undo_asked")) == (change, 1)
    else:
        assert [entry.subject for entry in night.ledger.index("changes")] == [change, lapsed.undo]


def test_many_that_look_at_once_take_it_back_once(night: Night) -> None:
    change = night.told("started", "succeeded")
    night.now += WITHIN_S
    barrier = threading.Barrier(4)

    def turn() -> None:
        barrier.wait(20)
        night.look()

    looks: list[Callable[[], None]] = [turn] * 4
    threads = [threading.Thread(target=look) for look in looks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    night.look()
    assert night.kinds(change).count("lapsed") == 1
    assert len(night.ledger.index("changes")) == 2
