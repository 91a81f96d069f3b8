"""`/deploy lock` and `unlock`: who may, once each, told to the channel, and read back in a terminal's words."""

from __future__ import annotations

import json

import pytest

from bot.asides import Asides
from bot.grammar import parse, render
from bot.narrator import Narrator
from bot.posting import Poster
from bot.slack import make_client
from policies import events as e
from policies.intents import LockScope, UnlockScope
from sandbox.slack import SlackSandbox
from tests.bot.test_hearing import Room
from tests.conftest import Store
from tests.shared import ROOT
from workers.drawn import Drawn


@pytest.fixture
def room(store: Store, slack: SlackSandbox) -> Room:
    return Room(store, slack)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ('/deploy lock decode because "profiling"', LockScope(scope="decode", because="profiling")),
        (
            '/deploy LOCK gpu1 for 2h because "new driver"',
            LockScope(scope="gpu1", because="new driver", for_s=7200.0),
        ),
        ("/deploy unlock decode@gpu1", UnlockScope(scope="decode@gpu1")),
    ],
)
def test_the_words_are_read_and_written(text: str, command: LockScope | UnlockScope) -> None:
    assert parse(text).command == command
    assert parse(f"/deploy {render(command)}").command == command


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("/deploy lock decode", "because-missing"),
        ('/deploy lock because "x"', "missing-scope"),
        ('/deploy lock decode because "x" for ever', "bad-duration"),
        ("/deploy unlock", "missing-scope"),
    ],
)
def test_what_lacks_something_says_what(text: str, code: str) -> None:
    error = parse(text).error
    assert error is not None
    assert error.code == code


def test_a_lock_is_put_on_once_told_with_its_end_and_opened_by_its_owner(room: Room) -> None:
    said = room.command('/deploy lock decode because "profiling" for 2h')
    assert "decode is locked (lk-1) by <@U0ANA>: profiling; no change touches decode@gpu1" in said
    assert "until" in said
    (lock,) = room.client.locks.standing()
    assert lock.locked.until == room.now + 7200
    assert "is locked already (lk-1) by <@U0ANA>" in room.command('/deploy lock decode because "again"')
    assert "is open again (lk-1, profiling)" in room.command("/deploy unlock decode")
    assert room.client.locks.standing() == ()
    assert "no lock stands on decode; held now: none" in room.command("/deploy unlock decode")


def test_a_lock_whose_time_is_over_is_gone_by_itself(room: Room) -> None:
    room.command('/deploy lock decode because "profiling" for 90s')
    room.now += 91
    assert room.client.locks.standing() == ()
    assert "no lock stands" in room.command("/deploy unlock decode")
    assert "is locked (lk-2)" in room.command('/deploy lock decode because "more"')


def test_who_has_no_role_may_not_and_an_approver_may_open_what_another_locked(room: Room, slack: SlackSandbox) -> None:
    slack.workspace.add_user("dan", user_id="U0DAN")
    assert "may not lock" in room.command('/deploy lock decode because "x"', user="U0DAN")
    assert room.client.locks.standing() == ()
    room.command('/deploy lock decode because "mine"')
    assert "may not open lk-1 on decode: it is <@U0ANA>'s" in room.command("/deploy unlock decode", user="U0DAN")
    assert "is open again" in room.command("/deploy unlock decode", user="U0BEN")


def test_heard_twice_is_one_lock(room: Room) -> None:
    room.command('/deploy lock decode because "profiling"')
    (entry,) = room.ledger.index("locks")
    assert isinstance(entry.event, e.Locked)
    key = "heard-before"
    first = room.client.locks.lock(LockScope(scope="router", because="x"), entry.event.actor, entry.event.where, key)
    again = room.client.locks.lock(LockScope(scope="router", because="x"), entry.event.actor, entry.event.where, key)
    assert first == again
    assert first.finding.effect == "allow"
    assert len(room.ledger.index("locks")) == 2


def test_what_a_rollback_left_is_confirmed_by_an_approver_once_and_told_in_its_thread(
    room: Room, slack: SlackSandbox
) -> None:
    web = make_client(slack.bot_token, slack.base_url, timeout_s=3)
    rung: list[str] = []
    drawn = Drawn(room.ledger.redis)
    asides = Asides(room.client, drawn, Poster(web), lambda: room.now, rung.append)
    change = room.ledger.new_id("C")
    told = json.loads((ROOT / "tests/golden/cards/rollback-succeeded.json").read_text(encoding="utf-8"))["events"]
    told[0]["where"]["channel"] = "C0PERF"
    for version, event in enumerate(told):
        room.ledger.append(change, e.EVENT.validate_python(event), expect_version=version)
    (lock,) = room.client.locks.standing()
    assert lock.id == f"rl-{change.partition('-')[2]}"
    narrator = Narrator(room.client, drawn, Poster(web), lambda: room.now, rung.append)
    narrator.draw(change)
    texts = [m["text"] for m in slack.people.transcript("C0PERF") if m["thread_ts"]]
    assert f"`decode` is locked against deploys now ({lock.id}), owner <@U0ANA>, without an end: `0.5.30`" in texts[-1]
    assert "5xx &lt;!channel&gt;" in texts[-1]
    assert "may not open" in room.command("/deploy unlock decode")
    said = room.command("/deploy unlock decode", user="U0BEN")
    assert "<@U0BEN> confirms that 0.5.30 is fixed or will not be deployed again" in said
    assert room.client.locks.standing() == ()
    assert "no lock stands" in room.command("/deploy unlock decode", user="U0BEN")
    rung.clear()
    asides.sweep()
    assert rung == [lock.id]
    asides.draw(lock.id)
    asides.draw(lock.id)
    asides.sweep()
    assert rung == [lock.id]
    (line,) = [
        m for m in slack.people.transcript("C0PERF") if "<@U0BEN> confirms that" in m["text"] and not m["ephemeral_to"]
    ]
    assert line["thread_ts"] == drawn.get(change).thread_ts  # type: ignore[union-attr]


def test_the_channel_is_told_of_both_once(room: Room, slack: SlackSandbox) -> None:
    web = make_client(slack.bot_token, slack.base_url, timeout_s=3)
    rung: list[str] = []
    asides = Asides(room.client, Drawn(room.ledger.redis), Poster(web), lambda: room.now, rung.append)
    room.command('/deploy lock decode because "<b> profiling"')
    asides.sweep()
    assert rung == ["lk-1"]
    asides.draw("lk-1")
    asides.draw("lk-1")
    room.command("/deploy unlock decode", user="U0BEN")
    asides.sweep()
    assert rung == ["lk-1", "lk-1"]
    asides.draw("lk-1")
    asides.draw("lk-1")
    told = [m for m in slack.people.transcript("C0PERF") if "lk-1" in m["text"] and not m["ephemeral_to"]]
    assert len(told) == 2
    assert told[1]["thread_ts"] == told[0]["ts"]
    assert "opened by <@U0BEN>" in told[1]["text"]
    assert "&lt;b&gt; profiling" in told[0]["text"]
