"""The ear: what Slack sends is recorded, rung for and acknowledged in time, whatever state Redis is in."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from slack_bolt import Ack

from bot.answering import Answerer
from bot.app import Ear, Socket, build_app
from bot.heard import HEARD, AnyHeard, HeardAction, HeardCommand, HeardMention
from bot.slack import make_client
from sandbox.slack import Fault, SlackSandbox
from sandbox.slack.faults import FaultKind
from tests.conftest import Store
from workers.inbox import Inbox
from workers.queue import Doorbell
from workers.store import connect

BUTTON = {"type": "button", "action_id": "clawback.deny", "text": {"type": "plain_text", "text": "Deny"}, "value": "{}"}
CARD = [{"type": "actions", "elements": [BUTTON]}]


class Listening:
    """A bot process in threads of this one."""

    def __init__(self, slack: SlackSandbox, url: str, *, most_silent_s: float = 600.0) -> None:
        self.redis = connect(url, retries=0)
        self.inbox = Inbox(self.redis)
        client = make_client(slack.bot_token, slack.base_url, timeout_s=3)
        ear = Ear(self.inbox, Doorbell(self.redis), Answerer(client))
        app = build_app(slack.bot_token, slack.base_url, ear)
        self.socket = Socket(app, slack.app_token, most_silent_s=most_silent_s)
        self.ending = threading.Event()
        self.code: list[int] = []
        self._thread = threading.Thread(target=lambda: self.code.append(self.socket.run(self.ending)))

    def __enter__(self) -> Listening:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self._thread.join(60)
        self.socket.close()
        self.redis.close()


@pytest.fixture
def listening(store: Store, slack: SlackSandbox) -> Iterator[Listening]:
    with Listening(slack, store.url) as bot:
        assert slack.people.wait_for(lambda: slack.sockets.connected, 60)
        yield bot


def heard(bot: Listening) -> list[AnyHeard]:
    return [HEARD.validate_python(bot.inbox.get(item)) for item in bot.inbox.waiting()]


def test_a_command_is_recorded_rung_for_and_acknowledged(listening: Listening, slack: SlackSandbox) -> None:
    assert slack.people.command("ana", "perf", "/knob restore TARGET_CTAS=512").wait()
    (said,) = heard(listening)
    assert isinstance(said, HeardCommand)
    assert said.put_at is not None
    assert abs(said.put_at - time.time()) < 600
    assert (said.command, said.text, said.user, said.team) == ("/knob", "restore TARGET_CTAS=512", "U0ANA", "T0SANDBOX")
    (item,) = listening.inbox.waiting()
    assert listening.redis.lrange("rq:queue:ask", 0, -1) == [f"hear-{item}".encode()]


@pytest.mark.parametrize("command", ["/deploy status", "/cause why C-1"])
def test_every_command_of_the_bot_is_heard(listening: Listening, slack: SlackSandbox, command: str) -> None:
    assert slack.people.command("ana", "perf", command).wait()
    (said,) = heard(listening)
    assert isinstance(said, HeardCommand)
    assert f"{said.command} {said.text}" == command


@pytest.mark.parametrize("kind", ["duplicate_envelope", "drop_ack"])
def test_the_same_envelope_twice_is_recorded_once(listening: Listening, slack: SlackSandbox, kind: FaultKind) -> None:
    slack.faults.add(Fault(kind, "slash_commands", count=1))
    slack.people.command("ana", "perf", "/knob status").wait()
    assert len(heard(listening)) == 1


def test_a_click_is_recorded_with_who_where_and_what(listening: Listening, slack: SlackSandbox) -> None:
    space = slack.workspace
    message = space.post("C0PERF", space.app.bot_user, "card", bot_id=space.app.bot_id, blocks=CARD)
    for _ in range(2):
        assert slack.people.click("ben", "perf", message.ts, "clawback.deny").wait()
    first, second = heard(listening)
    assert isinstance(first, HeardAction)
    assert isinstance(second, HeardAction)
    assert (first.user, first.team, first.channel, first.message_ts) == ("U0BEN", "T0SANDBOX", "C0PERF", message.ts)
    assert first.action_id == "clawback.deny"


def test_a_mention_is_recorded_with_its_thread_and_one_by_a_bot_is_not(
    listening: Listening, slack: SlackSandbox
) -> None:
    parent = slack.people.say("ana", "perf", "hm")
    slack.people.mention("ana", "perf", "status", thread_ts=parent.ts)
    assert slack.people.wait_for(lambda: len(listening.inbox.waiting()) == 1)
    (said,) = heard(listening)
    assert isinstance(said, HeardMention)
    assert (said.user, said.thread_ts) == ("U0ANA", parent.ts)
    event = {"type": "app_mention", "user": "U0CLAWBACK", "bot_id": "B1", "text": "<@U0CLAWBACK> x", "ts": "1.1"}
    assert slack.people.event({**event, "channel": "C0PERF"}).wait()
    assert len(listening.inbox.waiting()) == 1


def test_other_events_are_only_acknowledged(listening: Listening, slack: SlackSandbox) -> None:
    assert slack.people.event({"type": "member_left_channel", "user": "U0ANA"}).wait()
    assert listening.inbox.waiting() == []


def test_a_group_or_person_that_changed_is_counted_for_every_process(listening: Listening, slack: SlackSandbox) -> None:
    for number, kind in enumerate(("subteam_members_changed", "subteam_updated", "user_change"), start=1):
        assert slack.people.event({"type": kind, "subteam_id": "S0PERF", "user": {"id": "U0ANA"}}).wait()
        assert slack.people.wait_for(lambda n=number: listening.inbox.people_version() == n)  # type: ignore[misc]  # bound
    assert listening.inbox.waiting() == []


def test_many_commands_at_once_are_all_acknowledged_in_time(listening: Listening, slack: SlackSandbox) -> None:
    sent = [slack.people.command("ana", "perf", f"/knob status C-{i}") for i in range(40)]
    assert all(envelope.wait() for envelope in sent)
    assert len(heard(listening)) == 40


def test_without_redis_the_acknowledgement_says_that_nothing_was_recorded(slack: SlackSandbox) -> None:
    with Listening(slack, "redis://127.0.0.1:1/0"):
        assert slack.people.wait_for(lambda: slack.sockets.connected, 60)
        space = slack.workspace
        message = space.post("C0PERF", space.app.bot_user, "card", bot_id=space.app.bot_id, blocks=CARD)
        assert slack.people.command("ana", "perf", "/knob restore TARGET_CTAS=512").wait()
        assert slack.people.click("ben", "perf", message.ts, "clawback.deny").wait()

        def told() -> list[str]:
            return [m["text"] for m in slack.people.transcript("C0PERF") if m["ephemeral_to"]]

        assert slack.people.wait_for(lambda: len(told()) == 2)
        for text in told():
            assert text.startswith("nothing was recorded: ")
            assert text.endswith("; try again in a minute")


def test_a_store_that_falls_silent_is_not_said_to_have_recorded_nothing(store: Store, slack: SlackSandbox) -> None:
    assert store.server.pid is not None
    client = make_client(slack.bot_token, slack.base_url)
    quick = connect(f"{store.url}&socket_timeout=0.3", retries=0)
    quick.ping()
    ear = Ear(Inbox(quick), Doorbell(quick), Answerer(client))
    ack: Ack = Ack()  # type: ignore[no-untyped-call]
    os.kill(store.server.pid, signal.SIGSTOP)
    try:
        ear.command(ack, {"command": "/knob", "text": "status", "user_id": "U0ANA", "trigger_id": "1.2.3"})
    finally:
        os.kill(store.server.pid, signal.SIGCONT)
    assert ack.response is not None
    told = str(ack.response.body)
    assert "it is not known whether this was recorded: redis: TimeoutError" in told
    assert "look at the card, or ask `status`, before you try again" in told
    assert "started" not in told  # it was a question
    quick.close()
    deadline = time.monotonic() + 30
    while not Inbox(store.redis).waiting() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(Inbox(store.redis).waiting()) == 1  # what the store had been sent it does when it goes on


def test_a_bell_that_cannot_be_rung_is_no_failure(store: Store, slack: SlackSandbox) -> None:
    class Broken(Doorbell):
        def ring(self, queue: str, name: str, arg_id: str) -> bool:
            from policies.errors import StoreUnavailable

            raise StoreUnavailable("redis: gone")

    client = make_client(slack.bot_token, slack.base_url)
    ear = Ear(Inbox(store.redis), Broken(store.redis), Answerer(client))
    ack: Ack = Ack()  # type: ignore[no-untyped-call]
    ear.command(ack, {"command": "/knob", "text": "status", "user_id": "U0ANA", "trigger_id": "1.2.3"})
    assert ack.response is not None
    assert ack.response.body == ""
    assert len(Inbox(store.redis).waiting()) == 1


def test_a_silent_socket_ends_the_process_for_its_supervisor(slack: SlackSandbox, store: Store) -> None:
    with Listening(slack, store.url, most_silent_s=0.5) as bot:
        assert slack.people.wait_for(lambda: bot.code, 60)
        assert bot.code == [75]


def test_slack_that_is_away_at_the_start_is_waited_for(slack: SlackSandbox, store: Store) -> None:
    slack.faults.add(Fault("server_error", "apps.connections.open", count=2))
    with Listening(slack, store.url) as bot:
        assert slack.people.wait_for(lambda: slack.sockets.connected, 60)
        assert bot.code == []
    assert bot.code == [0]


def test_the_token_in_the_environment_draws_no_warning(
    store: Store, slack: SlackSandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", slack.bot_token)
    ear = Ear(Inbox(store.redis), Doorbell(store.redis), Answerer(make_client(slack.bot_token, slack.base_url)))
    build_app(slack.bot_token, slack.base_url, ear)
    assert caplog.messages == []
    assert os.environ["SLACK_BOT_TOKEN"] == slack.bot_token
