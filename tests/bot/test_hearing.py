"""What people say becomes a request, an act or an answer; heard twice is answered once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from bot.answering import Answerer
from bot.heard import HeardAction, HeardCommand, HeardMention
from bot.hearing import Hearing
from bot.identity import Identity
from bot.questions import Truths
from bot.slack import make_client
from policies import events as e
from policies.applicability import Standing
from policies.errors import HostUnreachable, NotFound
from policies.fleet import Match, Rule
from policies.intents import Act, Actor, Restart
from sandbox.slack import Fault, SlackSandbox
from tests.bot import stories
from tests.bot.desks import desk
from tests.conftest import Store
from workers.client import Client
from workers.drawn import Drawn
from workers.inbox import Inbox
from workers.ledger import Ledger
from workers.look import InstanceValue, KnobLook, VerifyLook
from workers.queue import Doorbell


@dataclass
class FakeLooks:
    """Hosts that answer from memory. `error` is raised instead when it is set."""

    error: Exception | None = None

    def _look(self) -> KnobLook:
        if self.error is not None:
            raise self.error
        value = InstanceValue("decode@gpu1", True, "512", "512", "/etc/x.conf:2", "256", "present")
        return KnobLook(stories.fleet().knobs["TARGET_CTAS"], (value,), (stories.record(),))

    def verify(self, name: str) -> VerifyLook:
        assert name == "TARGET_CTAS"
        look = self._look()
        return VerifyLook(look.knob, stories.T0, (stories.proof(),), {"decode@gpu1": 200})

    def list_knobs(self, scope: str | None = None) -> tuple[KnobLook, ...]:
        return (self._look(),) if scope != "router" else ()

    @property
    def truth(self) -> Truths:
        raise AssertionError("nobody states a cause here")

    def show(self, name: str) -> KnobLook:
        if name != "TARGET_CTAS":
            raise NotFound(f"there is no knob `{name}`", hint="known: TARGET_CTAS")
        return self._look()

    def standings(self, name: str) -> tuple[Standing, ...]:
        look = self.show(name)
        return tuple(Standing(record=record.id, word="weak") for record in look.evidence)


class Room:
    """A worker that hears, on a real ledger and the local Slack."""

    def __init__(self, store: Store, slack: SlackSandbox) -> None:
        self.slack = slack
        self.now = stories.T0
        web = make_client(slack.bot_token, slack.base_url, timeout_s=3)
        fleet = stories.fleet(approvers=("U0BEN",))
        engineers = fleet.roles["engineers"].model_copy(update={"users": ("U0ANA", "U0BEN")})
        fleet = fleet.model_copy(update={"roles": {**fleet.roles, "engineers": engineers}})
        self.ledger = Ledger(store.redis, lambda: self.now)
        self.client = Client(self.ledger, Doorbell(store.redis), fleet, lambda: self.now)
        self.inbox = Inbox(store.redis)
        self.looks = FakeLooks()
        self.hearing = Hearing(
            self.client,
            self.inbox,
            Drawn(store.redis),
            Identity(web, fleet),
            Answerer(web),
            lambda: self.looks,
            lambda: self.now,
            desk(self.client, store, web, lambda: self.now),
        )
        self._count = 0

    def put(self, heard: HeardCommand | HeardAction | HeardMention) -> str:
        self._count += 1
        return self.inbox.put(f"test:{self._count}", heard.model_dump(mode="json")).id

    def command(self, text: str, user: str = "U0ANA", channel: str = "C0PERF") -> str:
        """What the asker alone sees for `/knob TEXT`."""
        word, _, rest = text.partition(" ")
        url = self.slack.tickets.new_response_url("commands", channel, user)
        self.hearing.hear(
            self.put(
                HeardCommand(command=word, text=rest, user=user, team="T0SANDBOX", channel=channel, response_url=url)
            )
        )
        return self.told(user)[-1]

    def mention(self, text: str, user: str = "U0ANA") -> None:
        self.hearing.hear(
            self.put(
                HeardMention(
                    text=text, user=user, team="T0SANDBOX", channel="C0PERF", ts="1764600000.7", thread_ts=None
                )
            )
        )

    def with_rules(self, *rules: Rule) -> None:
        """The same people, under other rules."""
        self.client.fleet = self.client.fleet.model_copy(update={"rules": rules})

    def click(self, action_id: str, value: str, user: str, *, age_s: float | None = None) -> str:
        url = self.slack.tickets.new_response_url("actions", "C0PERF", user)
        heard = HeardAction(
            action_id=action_id,
            value=value,
            user=user,
            team="T0SANDBOX",
            channel="C0PERF",
            message_ts="1764600000.000100",
            thread_ts=None,
            response_url=url,
            put_at=None if age_s is None else self.now - age_s,
        )
        self.hearing.hear(self.put(heard))
        return self.told(user)[-1]

    def told(self, user: str) -> list[str]:
        found: list[dict[str, Any]] = self.slack.people.transcript("C0PERF", seen_by=user)
        return [m["text"] for m in found if m["ephemeral_to"] == user]

    def plan(self) -> e.Planned:
        """Have C-1 asked by ana and planned."""
        assert "C-1 asked" in self.command("/knob restore TARGET_CTAS=512")
        planned = stories.planned()
        self.ledger.append("C-1", planned, expect_version=1)
        return planned


@pytest.fixture
def room(store: Store, slack: SlackSandbox) -> Room:
    return Room(store, slack)


def test_a_change_is_requested_and_receipted(room: Room, store: Store) -> None:
    assert room.command("/knob restore TARGET_CTAS=512") == "C-1 asked: reading hosts; the plan follows here"
    asked = room.client.change("C-1").asked
    assert asked is not None
    assert asked.actor.id == "U0ANA"
    assert asked.actor.roles == ("engineers",)
    assert (asked.where.channel, asked.where.thread_ts) == ("C0PERF", None)
    assert store.redis.lrange("rq:queue:ask", 0, -1) == [b"prepare-C-1"]


def test_a_restart_is_requested_behind_deploy_and_after_a_mention(room: Room, store: Store) -> None:
    assert room.command('/deploy restart decode because "stuck"') == "C-1 asked: reading hosts; the plan follows here"
    asked = room.client.change("C-1").asked
    assert asked is not None
    assert asked.intent == Restart(scope="decode", because="stuck")
    assert asked.normalised == '/deploy restart decode because "stuck"'
    assert store.redis.lrange("rq:queue:ask", 0, -1) == [b"prepare-C-1"]
    room.mention("<@U0CLAWBACK> restart gpu1 via co-restart dry")
    assert room.client.change("C-2").asked == asked.model_copy(
        update={
            "intent": Restart(scope="gpu1", order="co-restart", dry=True),
            "said": "<@U0CLAWBACK> restart gpu1 via co-restart dry",
            "normalised": "restart gpu1 via co-restart dry",
        }
    )
    assert "C-2 asked: restart gpu1 via co-restart dry" in room.command("/deploy status")
    assert "Restart gpu1" in room.command("/deploy status C-2")


def test_a_restart_of_what_is_not_there_starts_nothing(room: Room) -> None:
    assert "did you mean decode?" in room.command("/deploy restart decod")
    assert "did you mean /deploy restart?" in room.command("/knob restart decode")
    assert room.client.recent(5) == []


def test_words_about_changes_are_the_same_behind_deploy(room: Room) -> None:
    room.plan()
    assert "the requester is never an approver" in room.command("/deploy confirm C-1")
    assert room.command("/deploy deny C-1", user="U0BEN") == "C-1: deny by <@U0BEN> is recorded"
    assert "has no meaning for C-1 now" in room.command("/deploy abort C-1")
    assert "has no meaning for C-1 now" in room.command("/deploy keep C-1", user="U0BEN")


def test_help_shows_a_restart_only_to_those_whom_a_rule_about_restarts_lets(room: Room) -> None:
    assert "/deploy restart SCOPE" not in room.command("/deploy help")
    rule = Rule(match=Match(kind="deploy"), ask="engineers", approvals=1, by="approvers", line=50)
    room.with_rules(rule)
    assert "/deploy restart SCOPE [via ORDER]" in room.command("/deploy help")
    assert "set NAME=VALUE" not in room.command("/deploy help")
    room.with_rules(Rule(match=Match(intent="set"), ask="engineers", line=51))
    assert "set NAME=VALUE" in room.command("/deploy help")
    assert "restore NAME" not in room.command("/deploy help")


def test_what_was_put_right_is_echoed(room: Room) -> None:
    said = room.command("/knob restore TARGET_CTAS=512 via co\u2013restart")
    assert said.startswith("I read this as /knob restore TARGET_CTAS=512 via co-restart\n")


def test_the_same_inbox_item_heard_twice_asks_and_answers_once(room: Room) -> None:
    url = room.slack.tickets.new_response_url("commands", "C0PERF", "U0ANA")
    item = room.put(
        HeardCommand(
            command="/knob",
            text="set TARGET_CTAS=512",
            user="U0ANA",
            team="T0SANDBOX",
            channel="C0PERF",
            response_url=url,
        )
    )
    room.hearing.hear(item)
    room.hearing.hear(item)
    assert len(room.told("U0ANA")) == 1
    assert [change.id for change in room.client.recent(5)] == ["C-1"]
    assert room.inbox.waiting() == []
    room.hearing.hear("0" * 64)
    assert len(room.told("U0ANA")) == 1


def test_a_text_that_is_no_command_is_answered_with_a_hint(room: Room) -> None:
    assert "did you mean" in room.command("/knob restor TARGET_CTAS=512")
    assert room.client.recent(5) == []
    hostile = room.command("/knob set <!channel>=1")
    assert "<!" not in hostile
    assert "not available in this version" in room.command("/knob try X=1")


def test_a_guest_is_told_why_nothing_happens(room: Room) -> None:
    assert "is a guest of this workspace" in room.command("/knob restore TARGET_CTAS=512", user="U0GUS")
    assert room.client.recent(5) == []


def test_every_click_is_answered(room: Room) -> None:
    planned = room.plan()
    value = f'{{"c":"C-1","o":"co-restart","d":"{planned.plans[0].digest}"}}'
    assert "the requester is never an approver" in room.click("clawback.confirm.co-restart", value, "U0ANA")
    old = '{"c":"C-1","o":"co-restart","d":"' + "0" * 64 + '"}'
    assert "no longer the plan" in room.click("clawback.confirm.co-restart", old, "U0BEN")
    assert "nothing that can be read" in room.click("clawback.confirm.co-restart", "{", "U0BEN")
    assert "no change C-9" in room.click("clawback.deny", '{"c":"C-9"}', "U0BEN")
    assert "guest" in room.click("clawback.confirm.co-restart", value, "U0GUS")
    assert room.click("clawback.confirm.co-restart", value, "U0BEN") == "C-1: confirm by <@U0BEN> is recorded"
    assert "has no meaning for C-1 now" in room.click("clawback.confirm.co-restart", value, "U0BEN")
    kinds = [entry.event.kind for entry in room.client.entries("C-1")]
    assert kinds.count("approval_given") == 1
    assert room.client.change("C-1").state == "approved"


def test_a_deciding_click_that_was_heard_late_is_not_acted_on(room: Room) -> None:
    planned = room.plan()
    value = f'{{"c":"C-1","o":"co-restart","d":"{planned.plans[0].digest}"}}'
    for word in ("confirm.co-restart", "keep", "undo", "retry"):
        told = room.click(f"clawback.{word}", value, "U0BEN", age_s=95)
        assert told == "this click is 95 s old; nothing was done: look at the card and click again"
    assert len(room.client.entries("C-1")) == 2
    assert "is recorded" in room.click("clawback.confirm.co-restart", value, "U0BEN", age_s=59)


def test_a_late_word_is_not_acted_on_and_a_late_no_or_abort_is(room: Room) -> None:
    room.plan()
    url = room.slack.tickets.new_response_url("commands", "C0PERF", "U0BEN")
    heard = HeardCommand(
        command="/knob",
        text="confirm C-1 via co-restart",
        user="U0BEN",
        team="T0SANDBOX",
        channel="C0PERF",
        response_url=url,
        put_at=room.now - 120,
    )
    room.hearing.hear(room.put(heard))
    assert room.told("U0BEN")[-1].endswith("nothing was done: look at the card and say it again")
    assert "deny by" in room.click("clawback.deny", '{"c":"C-1"}', "U0BEN", age_s=3600)


def test_a_click_that_was_recorded_in_time_is_answered_however_late(room: Room) -> None:
    planned = room.plan()
    url = room.slack.tickets.new_response_url("actions", "C0PERF", "U0BEN")
    heard = HeardAction(
        action_id="clawback.confirm.co-restart",
        value=f'{{"c":"C-1","o":"co-restart","d":"{planned.plans[0].digest}"}}',
        user="U0BEN",
        team="T0SANDBOX",
        channel="C0PERF",
        message_ts="1764600000.000100",
        thread_ts=None,
        response_url=url,
        put_at=room.now,
    )
    item = room.put(heard)
    act = Act(kind="confirm", change="C-1", order="co-restart", digest=planned.plans[0].digest)
    room.client.act(act, Actor(id="U0BEN", name="ben", roles=("approvers",)), key=item)
    room.now += 300  # the worker ended before it answered
    room.hearing.hear(item)
    assert room.told("U0BEN")[-1] == "C-1: confirm by <@U0BEN> is recorded"


def test_a_confirmation_is_refused_while_slack_cannot_say_who_it_is(room: Room) -> None:
    planned = room.plan()
    value = f'{{"c":"C-1","o":"co-restart","d":"{planned.plans[0].digest}"}}'
    room.slack.faults.add(Fault("server_error", "users.info", count=-1))
    assert "could not be checked" in room.click("clawback.confirm.co-restart", value, "U0BEN")
    assert room.client.change("C-1").state == "planned"


def test_words_in_a_mention_act_in_its_thread(room: Room) -> None:
    room.plan()
    parent = room.slack.people.say("ana", "perf", "please look")
    item = room.put(
        HeardMention(
            text="<@U0CLAWBACK> deny C-1",
            user="U0BEN",
            team="T0SANDBOX",
            channel="C0PERF",
            ts="1764600000.000200",
            thread_ts=parent.ts,
        )
    )
    room.hearing.hear(item)
    assert room.client.change("C-1").state == "denied"
    (answer,) = [m for m in room.slack.people.transcript("C0PERF") if m["ephemeral_to"] == "U0BEN"]
    assert answer["thread_ts"] == parent.ts


def test_a_channel_that_cannot_show_the_plan_starts_nothing(room: Room) -> None:
    space = room.slack.workspace
    space.add_channel("away", ("U0ANA",), channel_id="C0AWAY", with_bot=False)
    space.add_channel("secret", ("U0ANA",), channel_id="C0SECRET", with_bot=False, is_private=True)
    space.add_channel("partner", ("U0ANA",), channel_id="C0PARTNER", is_ext_shared=True)
    for channel, told in (("C0AWAY", "not in it"), ("C0SECRET", "not in it"), ("C0PARTNER", "another organisation")):
        url = room.slack.tickets.new_response_url("commands", channel, "U0ANA")
        heard = HeardCommand(
            command="/knob",
            text="set TARGET_CTAS=512",
            user="U0ANA",
            team="T0SANDBOX",
            channel=channel,
            response_url=url,
        )
        room.hearing.hear(room.put(heard))
        assert told in room.slack.people.transcript(channel)[-1]["text"]
    assert room.client.recent(5) == []


def test_questions_are_answered(room: Room) -> None:
    assert room.command("/knob status") == "no change was asked yet"
    room.plan()
    assert "C-1 planned: /knob restore TARGET_CTAS=512, asked by <@U0ANA>" in room.command("/knob status")
    assert "change C-1" in room.command("/knob status C-1")
    assert "no change C-77" in room.command("/knob status C-77")
    listed = room.command("/knob list")
    assert "TARGET_CTAS on decode@gpu1: desired 512, configured 512, live 256 · they differ" in listed
    assert room.command("/knob list on router") == "no knob matches"
    assert "TARGET_CTAS: SGLANG_SM120_MMA_TARGET_CTAS of decode, type int" in room.command("/knob show TARGET_CTAS")
    verified = room.command("/knob verify TARGET_CTAS")
    assert (
        "512 in the environment of decode@gpu1 pid 2101 (2 of 2 children unreadable: renamed) · health 200" in verified
    )


def test_help_shows_what_this_person_may_say(room: Room) -> None:
    room.slack.workspace.add_user("cyd", user_id="U0CYD")
    room.slack.workspace.channels["C0PERF"].members.add("U0CYD")
    assert "set NAME=VALUE" in room.command("/knob help")
    assert "confirm CHANGE" not in room.command("/knob help")
    assert "confirm CHANGE" in room.command("/knob help", user="U0BEN")
    mine = room.command("/knob help", user="U0CYD")
    assert "set NAME=VALUE" not in mine
    assert "status" in mine


def test_an_error_is_told_with_its_hint_and_an_unexpected_one_with_a_reference(room: Room) -> None:
    room.looks.error = HostUnreachable("`gpu1` does not answer", hint="look at the network")
    assert room.command("/knob list") == "'gpu1' does not answer; look at the network".replace("'", "")
    room.looks.error = RuntimeError("secret detail")
    said = room.command("/knob list")
    assert said.startswith("something went wrong here; reference ")
    assert "started" not in said  # it was a question
    assert "secret" not in said


def test_an_answer_finds_its_way_when_the_response_url_is_used_up(room: Room) -> None:
    room.slack.faults.add(Fault("server_error", "response_url", count=1))
    assert room.command("/knob status") == "no change was asked yet"
    assert [m for m in room.slack.people.calls if m.method == "chat.postEphemeral"]


def test_a_queue_bell_for_a_request_survives_only_its_id(room: Room, store: Store) -> None:
    room.command("/knob restore TARGET_CTAS=512")
    assert "TARGET_CTAS" not in repr(store.redis.hgetall("rq:job:prepare-C-1"))


def test_a_worker_that_ends_right_after_the_change_was_recorded_leaves_nothing_to_be_asked_twice(
    room: Room, store: Store
) -> None:
    class Ending(Client):
        def request(self, *args: Any, **named: Any) -> str:
            super().request(*args, **named)
            raise KeyboardInterrupt

    web = make_client(room.slack.bot_token, room.slack.base_url, timeout_s=3)
    ending = Ending(room.ledger, Doorbell(store.redis), room.client.fleet, lambda: room.now)
    identity, answerer = Identity(web, room.client.fleet), Answerer(web)
    at = desk(ending, store, web, lambda: room.now)
    drawn = Drawn(store.redis)
    dying = Hearing(ending, room.inbox, drawn, identity, answerer, lambda: room.looks, lambda: room.now, at)
    url = room.slack.tickets.new_response_url("commands", "C0PERF", "U0ANA")
    text = "set TARGET_CTAS=512"
    heard = HeardCommand(command="/knob", text=text, user="U0ANA", team="T0SANDBOX", channel="C0PERF", response_url=url)
    item = room.put(heard)
    with pytest.raises(KeyboardInterrupt):
        dying.hear(item)
    room.hearing.hear(item)
    assert [change.id for change in room.client.recent(5)] == ["C-1"]
    assert room.told("U0ANA") == ["C-1 asked: reading hosts; the plan follows here"]


def test_a_group_that_changed_is_read_anew_by_every_worker_that_hears(room: Room, store: Store) -> None:
    space = room.slack.workspace
    space.add_user("cyd", user_id="U0CYD")
    space.channels["C0PERF"].members.add("U0CYD")
    group = space.add_group("perf-team", ["U0ANA"])
    fleet = stories.fleet(approvers=("U0BEN",), group=group.id)
    web = make_client(room.slack.bot_token, room.slack.base_url, timeout_s=3)
    client = Client(room.ledger, Doorbell(store.redis), fleet, lambda: room.now)
    identity, answerer, drawn = Identity(web, fleet), Answerer(web), Drawn(store.redis)
    at = desk(client, store, web, lambda: room.now)
    room.hearing = Hearing(client, room.inbox, drawn, identity, answerer, lambda: room.looks, lambda: room.now, at)
    assert "set NAME=VALUE" not in room.command("/knob help", user="U0CYD")
    group.users.append("U0CYD")
    assert "set NAME=VALUE" not in room.command("/knob help", user="U0CYD")
    Inbox(store.redis).people_changed()
    assert "set NAME=VALUE" in room.command("/knob help", user="U0CYD")
