"""Causes stated in chat: accepted only with readings that hold, quoted as theirs, contested, struck through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from bot.answering import Answerer
from bot.asides import Asides
from bot.audit.reading import Slack
from bot.audit.threads import Threads
from bot.heard import HeardAction, HeardCommand, HeardMention
from bot.hearing import Hearing
from bot.identity import Identity
from bot.posting import Poster
from bot.slack import make_client
from policies import events as e
from policies.intents import Actor, RevertKnob
from sandbox.slack import Fault, SlackSandbox
from tests.bot import stories
from tests.bot.desks import desk
from tests.bot.suspected import record, reverted
from tests.bot.test_hearing import FakeLooks
from tests.conftest import Store
from tests.workers.going import BAD, GOOD, Going
from tests.workers.truths import fleet, texts
from workers.audit import Copies
from workers.blaming import blame
from workers.drawn import Drawn, Pointer
from workers.inbox import Inbox
from workers.remeasure import Remeasure
from workers.truth import Truth


@dataclass
class Looks(FakeLooks):
    """Hosts that answer from memory, and the judge of causes on what they said."""

    judge: Truth | None = None

    @property
    def truth(self) -> Truth:
        assert self.judge is not None
        return self.judge


class Chat(Going):
    """People on the local Slack, a worker that hears and a narrator that draws."""

    def __init__(self, store: Store, slack: SlackSandbox) -> None:
        known = fleet()
        engineers = known.roles["engineers"].model_copy(update={"users": ("U0ANA", "U0BEN")})
        super().__init__(store, known.model_copy(update={"roles": {**known.roles, "engineers": engineers}}))
        self.slack = slack
        self.web = make_client(slack.bot_token, slack.base_url, timeout_s=3)
        self.drawn = Drawn(store.redis)
        self.inbox = Inbox(store.redis)
        looks = Looks(judge=self.truth)
        identity, answerer = Identity(self.web, self.fleet), Answerer(self.web)
        at = desk(self.client, store, self.web, self.clock)
        self.hearing = Hearing(self.client, self.inbox, self.drawn, identity, answerer, lambda: looks, self.clock, at)
        self.rung: list[str] = []
        self._count = 0

    def put(self, heard: HeardCommand | HeardAction | HeardMention) -> None:
        self._count += 1
        self.hearing.hear(self.inbox.put(f"test:{self._count}", heard.model_dump(mode="json")).id)
        self.draw()

    def command(self, text: str, user: str = "U0ANA") -> str:
        word, _, rest = text.partition(" ")
        url = self.slack.tickets.new_response_url("commands", "C0PERF", user)
        where = {"user": user, "team": "T0SANDBOX", "channel": "C0PERF", "response_url": url}
        self.put(HeardCommand.model_validate({"command": word, "text": rest, **where}))
        return self.told(user)[-1]

    def mention(self, text: str, thread_ts: str | None = None, user: str = "U0ANA") -> None:
        where = {"user": user, "team": "T0SANDBOX", "channel": "C0PERF", "ts": "1764600000.7"}
        self.put(HeardMention.model_validate({"text": text, "thread_ts": thread_ts, **where}))

    def click(self, action_id: str, value: str, user: str) -> str:
        url = self.slack.tickets.new_response_url("actions", "C0PERF", user)
        where = {"user": user, "team": "T0SANDBOX", "channel": "C0PERF", "response_url": url}
        more = {"action_id": action_id, "value": value, "message_ts": "1764600000.000100", "thread_ts": None}
        self.put(HeardAction.model_validate({**where, **more}))
        return self.told(user)[-1]

    def told(self, user: str) -> list[str]:
        found: list[dict[str, Any]] = self.slack.people.transcript("C0PERF", seen_by=user)
        return [m["text"] for m in found if m["ephemeral_to"] == user]

    def asides(self) -> Asides:
        return Asides(self.client, self.drawn, Poster(self.web), self.clock, self.rung.append)

    def draw(self) -> None:
        """Everything that is to be drawn."""
        self.asides().sweep()
        for subject in [*self.rung, *self.drawn.due(self.now)]:
            self.asides().draw(subject)
        self.rung.clear()

    def public(self) -> list[dict[str, Any]]:
        """What everybody sees of the bot's."""
        found: list[dict[str, Any]] = self.slack.people.transcript("C0PERF")
        return [m for m in found if m["who"] == "clawback" and m["ephemeral_to"] is None]

    def queued(self) -> None:
        """53 requests run and 11 wait; ten minutes before nothing did."""
        self.past(500, 400, 300, 200, 100, 20)
        self.said = texts(decode={"running": 53, "queued": 11, "http": 64, "tokens": 9_000_000}, in_flight=64)

    def thread_of(self, change: str) -> str:
        """The thread of a change, as if its card had been drawn."""
        parent = str(self.web.chat_postMessage(channel="C0PERF", text=f"the card of {change}")["ts"])
        self.drawn.put(change, Pointer(channel="C0PERF", thread_ts=parent, card_ts=parent, seq=99))
        return parent


@pytest.fixture
def chat(store: Store, slack: SlackSandbox) -> Chat:
    return Chat(store, slack)


def shown(message: dict[str, Any]) -> str:
    return "\n".join(str(b["text"]["text"]) for b in message["blocks"] if b["type"] == "section")


def buttons(message: dict[str, Any]) -> list[str]:
    return [e["text"]["text"] for b in message["blocks"] if b["type"] == "actions" for e in b["elements"]]


def test_a_made_up_cause_is_refused_and_the_rival_named_with_what_was_measured(chat: Chat) -> None:
    chat.queued()
    answer = chat.command('/cause "cold start"')
    assert "cause: not established" in answer
    (message,) = chat.public()
    said = shown(message)
    assert said.startswith("st-1: <@U0ANA> says `cold start`")
    assert "cause: not established" in said
    assert "*queued-behind-load*" in said
    assert "running_reqs=53 requests" in said
    assert "queue_reqs=11 requests" in said
    assert "cause: *cold" not in said
    assert "consistent with *cold" not in said
    assert buttons(message) == ["Dispute"]
    assert message["metadata"]["event_payload"]["change"] == "st-1"


def test_a_cause_that_holds_is_stated_with_its_citations_of_both_times(chat: Chat) -> None:
    chat.queued()
    chat.command("/cause queued-behind-load")
    said = shown(chat.public()[0])
    assert "cause: *queued-behind-load* (the request queued behind live traffic)" in said
    assert "queue_reqs=11 requests" in said
    assert "before queue_reqs=0 requests" in said


def test_words_of_a_person_are_quoted_and_ping_nobody(chat: Chat) -> None:
    chat.queued()
    chat.command('/cause "our own proxy, ask &lt;@U0BEN&gt; or @here `rm`"')
    said = shown(chat.public()[0])
    assert "<@U0BEN>" not in said
    assert "@here" not in said
    assert "says `our own proxy, ask &lt;@U0BEN&gt; or @\u2060here 'rm'`" in said
    assert "nothing was cited that can be measured" in said
    assert said.count("our own proxy") == 1


@pytest.mark.parametrize("text", ["/cause gremlins", '/cause "x" citing nonsense > 1', '/cause "x" of C-99'])
def test_what_cannot_be_judged_is_answered_to_the_asker_alone(chat: Chat, text: str) -> None:
    assert chat.command(text)
    assert chat.public() == []


def test_in_a_thread_it_is_about_the_change_that_is_told_there(chat: Chat) -> None:
    record(chat.ledger, "C-7", reverted(chat.now))
    parent = chat.thread_of("C-7")
    chat.queued()
    chat.mention('<@UBOT> cause "cold start"', thread_ts=parent)
    (message,) = [m for m in chat.public() if m["thread_ts"] == parent and m["ts"] != parent]
    assert "says `cold start` about C-7" in shown(message)
    assert "about C-7, in whose thread it was said" in chat.told("U0ANA")[-1]


def test_about_a_change_it_stands_in_its_thread_wherever_it_was_said(chat: Chat) -> None:
    record(chat.ledger, "C-7", reverted(chat.now))
    parent = chat.thread_of("C-7")
    chat.command("/cause cold-start of C-7")
    assert [m["thread_ts"] for m in chat.public() if m["ts"] != parent] == [parent]


def test_a_dispute_strikes_the_words_through_and_keeps_them_with_the_trail(chat: Chat) -> None:
    chat.queued()
    chat.command('/cause "cold start"')
    first = shown(chat.public()[0])
    answer = chat.command('/cause dispute st-1 because "it queued behind live traffic"', user="U0BEN")
    assert "it does not hold and is struck through" in answer
    message, line = chat.public()
    said = shown(message).split("\n")
    assert said[: len(first.split("\n"))] == [f"~{part}~" for part in first.split("\n")]
    assert "<@U0BEN> disputes st-1: `it queued behind live traffic`" in shown(message)
    assert said[-1] == "it does not hold and is struck through"
    assert line["thread_ts"] == message["ts"]
    assert "<@U0BEN> disputes st-1" in line["text"]
    assert line["metadata"]["event_payload"]["seq"] == message["metadata"]["event_payload"]["seq"] + 1


def test_a_dispute_of_what_holds_marks_it_and_strikes_nothing(chat: Chat) -> None:
    chat.queued()
    chat.command("/cause queued-behind-load")
    chat.click("clawback.dispute.st-1", '{"c":"st-1"}', "U0BEN")
    said = shown(chat.public()[0])
    assert "~" not in said
    assert "<@U0BEN> disputes st-1" in said
    assert said.endswith("it still holds")


def test_what_is_no_statement_cannot_be_disputed(chat: Chat) -> None:
    assert "there is no statement st-9" in chat.command('/cause dispute st-9 because "x"')
    assert "there is no statement C-1" in chat.click("clawback.dispute.st-9", '{"c":"C-1"}', "U0BEN")


def test_the_same_envelope_twice_is_one_statement(chat: Chat) -> None:
    chat.queued()
    url = chat.slack.tickets.new_response_url("commands", "C0PERF", "U0ANA")
    where = {"user": "U0ANA", "team": "T0SANDBOX", "channel": "C0PERF", "response_url": url}
    heard = HeardCommand.model_validate({"command": "/cause", "text": '"cold start"', **where})
    item = chat.inbox.put("same", heard.model_dump(mode="json")).id
    chat.hearing.hear(item)
    chat.ledger.redis.delete(f"clawback:once:note:heard-{item}")  # as if that worker had died before it noted it
    chat.hearing.hear(item)
    chat.draw()
    assert len(chat.public()) == 1
    assert len(chat.client.asides(9)) == 1


@pytest.mark.parametrize("kind", ["reset_after_commit", "error_after_commit", "server_error"])
def test_a_statement_stands_once_whatever_slack_does(chat: Chat, kind: str) -> None:
    chat.queued()
    chat.slack.faults.add(Fault(kind, "chat.postMessage", count=3))  # type: ignore[arg-type]  # one of its kinds
    chat.command('/cause "cold start"')
    for _ in range(6):
        chat.now += 120
        chat.draw()
    assert len(chat.public()) == 1


def compared(chat: Chat) -> list[str]:
    copies = Copies(chat.ledger, chat.drawn)
    found = Threads(copies, Slack(chat.web), chat.fleet, lambda _: None).compare()
    return [one.code for one in found.problems]


def test_what_stands_in_slack_is_compared_with_the_ledger(chat: Chat) -> None:
    chat.queued()
    chat.command('/cause "cold start"')
    chat.command('/cause dispute st-1 because "no"', user="U0BEN")
    assert compared(chat) == []
    message, line = chat.public()
    chat.slack.people.edit_message_behind_the_bot("C0PERF", line["ts"], "all is well")
    assert compared(chat) == ["thread.edited-line"]
    chat.slack.people.edit_message_behind_the_bot("C0PERF", message["ts"], "cause: cold start")
    assert sorted(compared(chat)) == ["thread.edited-card", "thread.edited-line"]


# suspicions that hang on it


def suspected(chat: Chat, because: str = "cold start") -> None:
    """Ana reverted for that reason, which was judged on what was read then; it is done."""
    chat.past(500, 300, 100)
    intent = RevertKnob(knob="TARGET_CTAS", because=because)
    events = reverted(chat.now)
    asked = events[0]
    assert isinstance(asked, e.Asked)
    asked = asked.model_copy(update={"intent": intent})
    found = blame(chat, chat.measuring, asked, "C-7")  # type: ignore[arg-type]  # as much of the wiring as it needs
    planned = events[1]
    assert isinstance(planned, e.Planned)
    record(chat.ledger, "C-7", [asked, planned.model_copy(update={"blame": found}), *events[2:]])
    chat.thread_of("C-7")


def test_another_cause_that_is_verified_refutes_the_suspicion_and_offers_the_value_back(chat: Chat) -> None:
    chat.queued()
    suspected(chat)
    chat.command("/cause queued-behind-load of C-7")
    (message,) = [m for m in chat.public() if m["blocks"]]
    assert "cause: *queued-behind-load*" in shown(message)
    assert "su-7 is closed: st-1 speaks against it; the value can be given back" in shown(message)
    assert buttons(message) == ["Restore TARGET_CTAS=512", "Dispute"]
    assert [kept.standing.word for kept in chat.client.suspicions()] == ["refuted"]
    assert "su-7" in chat.command("/knob reclaim")


def test_the_reason_itself_refuted_refutes_the_suspicion(chat: Chat) -> None:
    chat.queued()
    suspected(chat)
    chat.command("/cause cold-start of C-7")
    kept = chat.client.suspicion("su-7")
    assert kept is not None
    assert (kept.standing.word, kept.standing.by) == ("refuted", "st-1")


def test_the_reason_itself_verified_confirms_it_and_nothing_is_offered(chat: Chat) -> None:
    chat.queued()
    suspected(chat, because="queued behind load")
    chat.command("/cause queued-behind-load of C-7")
    (message,) = [m for m in chat.public() if m["blocks"]]
    assert "su-7 is closed: st-1 confirmed what it stood on" in shown(message)
    assert buttons(message) == ["Dispute"]
    assert chat.client.suspicions() == []


def test_a_statement_that_is_struck_settles_nothing_any_more(chat: Chat) -> None:
    chat.queued()
    suspected(chat)
    chat.command("/cause queued-behind-load of C-7")
    chat.metrics.kept.clear()
    chat.command('/cause dispute st-1 because "there was no queue"', user="U0BEN")
    kept = chat.client.suspicion("su-7")
    assert kept is not None
    assert kept.standing.word == "open"
    (message,) = [m for m in chat.public() if m["blocks"]]
    assert "su-7 is closed" not in shown(message)


def test_what_is_not_verified_settles_nothing(chat: Chat) -> None:
    suspected(chat)
    chat.command('/cause "our own proxy" of C-7')
    kept = chat.client.suspicion("su-7")
    assert kept is not None
    assert kept.standing.word == "open"


def test_why_tells_states_load_what_holds_what_is_refuted_and_what_is_not_covered(chat: Chat) -> None:
    chat.queued()
    said = chat.command("/cause why decode")
    assert "what is known about decode" in said
    (found,) = [m for m in chat.slack.people.transcript("C0PERF", seen_by="U0ANA") if m["ephemeral_to"] == "U0ANA"]
    said = shown(found)
    assert "cause: *queued-behind-load*" in said
    assert "speaks against `cold-start`: uptime_s=" in said
    assert "running_reqs=53 requests" in said
    assert "not looked at: what is not in the fleet file" in said


def test_whoever_is_not_known_states_nothing(chat: Chat) -> None:
    chat.queued()
    chat.command("/cause queued-behind-load", user="U0GUS")
    assert chat.public() == []
    assert chat.client.asides(9) == []


def test_a_statement_survives_the_ledger_with_its_person(chat: Chat) -> None:
    chat.queued()
    chat.command("/cause queued-behind-load")
    (entry,) = chat.client.asides(9)
    assert isinstance(entry.event, e.StatementMade)
    assert isinstance(entry.event.statement.actor, Actor)
    assert entry.event.statement.actor.id == "U0ANA"
    assert entry.event.statement.where.channel == "C0PERF"
    assert entry.at >= stories.T0


# the old state, measured again


def taken_back(chat: Chat, old: float) -> list[dict[str, Any]]:
    """C-5 came and it got slow, ben blamed it, C-7 took it back to such a state; what stands below C-7."""
    chat.go(150, GOOD)
    chat.comes()
    chat.thread_of("C-5")
    chat.go(60, BAD)
    chat.command("/cause C-5 citing tput < 100", user="U0BEN")
    chat.goes()
    parent = chat.thread_of("C-7")
    chat.go(105, old)
    Remeasure(chat).round()  # type: ignore[arg-type]  # as much of the wiring as it needs
    chat.draw()
    return [m for m in chat.public() if m["thread_ts"] == parent and m["ts"] != parent]


def test_the_old_state_is_measured_again_by_itself_and_the_thread_is_told_what_that_says(chat: Chat) -> None:
    (message,) = taken_back(chat, GOOD)
    assert shown(message).startswith("st-2: whether C-5 did it, with the old state measured again after C-7")
    assert "cause: *C-5* (the change C-5)" in shown(message)
    assert "su-7 is closed: st-2 confirmed what it stood on" in shown(message)
    assert buttons(message) == ["Dispute"]
    first, line = (m for m in chat.public() if "st-1" in m["text"])
    assert "cause: not established" in shown(first)
    assert "st-1: the old state was measured again after C-7" in shown(first)
    assert "judged once more: cause: *C-5*" in shown(first)
    assert "st-1: the old state was measured again after C-7" in line["text"]
    chat.click("clawback.dispute.st-2", '{"c":"st-2"}', "U0ANA")
    (message, *_) = [m for m in chat.public() if m["ts"] == message["ts"]]
    assert shown(message).endswith("it still holds\nsuspicion su-7 is closed: st-2 confirmed what it stood on") or (
        "it still holds" in shown(message)
    )


def test_an_old_state_that_is_no_better_offers_the_value_back_in_the_thread(chat: Chat) -> None:
    (message,) = taken_back(chat, BAD)
    assert "cause: *" not in shown(message)
    assert "su-7 is closed: st-2 speaks against it; the value can be given back" in shown(message)
    assert buttons(message) == ["Restore TARGET_CTAS=512", "Dispute"]
    (first, _) = (m for m in chat.public() if "st-1" in m["text"])
    assert shown(first).startswith("~st-1: <@U0BEN> says `C-5` about C-5")
