"""Socket Mode and the fault menu with the real slack_sdk clients: acks, redelivery, duplicates, resets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.error import URLError

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.client import BaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from bot.hangup import hang_up
from sandbox.slack import Fault, PersonError, SlackSandbox
from sandbox.slack.faults import FaultKind
from sandbox.slack.records import Json
from tests.shared import shared

PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy")


class Bot:
    """A Socket Mode client that notes what it gets, and acknowledges unless told otherwise."""

    def __init__(self, sandbox: SlackSandbox) -> None:
        self.got: list[SocketModeRequest] = []
        self.answer: Json | None = None
        self.may_ack = threading.Event()
        self.may_ack.set()
        web = WebClient(sandbox.app_token, base_url=sandbox.base_url)
        self.client = SocketModeClient(sandbox.app_token, web_client=web, ping_interval=1)
        self.client.socket_mode_request_listeners.append(self._take)
        before = sandbox.sockets.connected
        self.client.connect()
        assert sandbox.people.wait_for(lambda: sandbox.sockets.connected == before + 1)

    def _take(self, client: BaseSocketModeClient, request: SocketModeRequest) -> None:
        self.got.append(request)
        if self.may_ack.wait(10):
            client.send_socket_mode_response(SocketModeResponse(request.envelope_id, self.answer))


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlackSandbox]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    # frequent pings wake a client that waits for data, so that it closes quickly
    made = SlackSandbox(reference=shared("slack"), ping_interval_s=0.2)
    ana = made.workspace.add_user("ana")
    made.workspace.add_channel("ops", [ana.id], channel_id="C0OPS")
    with made:
        yield made


@pytest.fixture
def bots(sandbox: SlackSandbox) -> Iterator[list[Bot]]:
    made: list[Bot] = []
    yield made
    for bot in made:
        bot.may_ack.set()
        hang_up(bot.client)


@pytest.fixture
def web(sandbox: SlackSandbox) -> WebClient:
    return WebClient(sandbox.bot_token, base_url=sandbox.base_url, retry_handlers=[])


def test_an_acknowledged_command_is_recorded_with_its_milliseconds(sandbox: SlackSandbox, bots: list[Bot]) -> None:
    bots.append(Bot(sandbox))
    envelope = sandbox.people.command("ana", "ops", "/knob list")
    assert envelope.wait()
    assert envelope.acked_ms is not None
    assert envelope.failure is None
    assert bots[0].got[0].payload["text"] == "list"


def test_a_command_without_any_socket_fails_for_the_person(sandbox: SlackSandbox) -> None:
    envelope = sandbox.people.command("ana", "ops", "/knob list")
    assert envelope.wait() is False
    assert envelope.failure == "dispatch_failed"


def test_a_late_acknowledgement_is_recorded_as_late_and_the_command_is_not_sent_again(
    sandbox: SlackSandbox, bots: list[Bot]
) -> None:
    sandbox.sockets.ack_limit_s = 0.3
    bots.append(Bot(sandbox))
    bots[0].may_ack.clear()
    envelope = sandbox.people.command("ana", "ops", "/knob list")
    assert envelope.wait() is False
    assert (envelope.failure, envelope.acked_ms) == ("operation_timeout", None)
    bots[0].may_ack.set()
    assert sandbox.people.wait_for(lambda: envelope.acked_ms is not None)
    assert envelope.late is True
    assert envelope.attempts == len(bots[0].got) == 1


def test_an_unacknowledged_event_comes_again_under_the_same_ids_with_its_reason(
    sandbox: SlackSandbox, bots: list[Bot]
) -> None:
    sandbox.sockets.ack_limit_s = 0.3
    sandbox.faults.add(Fault("drop_ack", "events_api"))
    bots.append(Bot(sandbox))
    sandbox.people.mention("ana", "ops", "status")
    envelope = sandbox.people.envelopes[0]
    assert envelope.wait()
    first, second = bots[0].got
    assert first.envelope_id == second.envelope_id
    assert first.payload["event_id"] == second.payload["event_id"]
    assert (first.retry_attempt, first.retry_reason) == (0, "")
    assert (second.retry_attempt, second.retry_reason) == (1, "timeout")
    assert envelope.expired is True


def test_an_event_is_given_up_after_three_retries(sandbox: SlackSandbox, bots: list[Bot]) -> None:
    sandbox.sockets.ack_limit_s = 0.2
    sandbox.sockets.retry_delays_s = (0.0, 0.05, 0.05)
    bots.append(Bot(sandbox))
    bots[0].may_ack.clear()
    sandbox.people.mention("ana", "ops", "status")
    envelope = sandbox.people.envelopes[0]
    assert envelope.wait() is False
    assert envelope.attempts == 4
    assert envelope.failure == "operation_timeout"


def test_an_event_waits_for_a_socket(sandbox: SlackSandbox, bots: list[Bot]) -> None:
    sandbox.sockets.retry_delays_s = (1.0, 1.0, 1.0)
    sandbox.people.mention("ana", "ops", "status")
    bots.append(Bot(sandbox))
    assert sandbox.people.envelopes[0].wait()
    assert bots[0].got[0].retry_reason == "connection_failed"


def test_a_duplicate_envelope_arrives_twice(sandbox: SlackSandbox, bots: list[Bot]) -> None:
    sandbox.faults.add(Fault("duplicate_envelope", "slash_commands"))
    bots.append(Bot(sandbox))
    envelope = sandbox.people.command("ana", "ops", "/knob list")
    assert sandbox.people.wait_for(lambda: envelope.acks == 2)
    assert len({request.envelope_id for request in bots[0].got}) == 1
    assert len(set(envelope.sockets)) == 1


def test_an_envelope_can_also_arrive_on_another_socket(sandbox: SlackSandbox, bots: list[Bot]) -> None:
    sandbox.faults.add(Fault("other_socket", "slash_commands"))
    bots.extend([Bot(sandbox), Bot(sandbox)])
    envelope = sandbox.people.command("ana", "ops", "/knob list")
    assert sandbox.people.wait_for(lambda: envelope.acks == 2)
    assert len(set(envelope.sockets)) == 2
    assert [len(bot.got) for bot in bots] == [1, 1]


def test_several_sockets_share_the_envelopes(sandbox: SlackSandbox, bots: list[Bot]) -> None:
    bots.extend([Bot(sandbox), Bot(sandbox)])
    envelopes = [sandbox.people.command("ana", "ops", f"/knob list {n}") for n in range(40)]
    assert all(envelope.wait() for envelope in envelopes)
    assert sum(len(bot.got) for bot in bots) == 40
    assert all(bot.got for bot in bots)


@pytest.mark.parametrize("close_old", [True, False])
def test_after_a_disconnect_the_client_comes_back_and_gets_the_next_command(
    sandbox: SlackSandbox, bots: list[Bot], close_old: bool
) -> None:
    bots.append(Bot(sandbox))
    old = bots[0].client.session_id()
    sandbox.sockets.disconnect(close_old=close_old)
    assert sandbox.people.wait_for(lambda: bots[0].client.session_id() != old and sandbox.sockets.connected == 1)
    envelope = sandbox.people.command("ana", "ops", "/knob list")
    assert envelope.wait(60)


def test_a_socket_address_admits_one_connection(sandbox: SlackSandbox) -> None:
    url = WebClient(base_url=sandbox.base_url).apps_connections_open(app_token=sandbox.app_token)["url"]
    with connect(url, proxy=None) as first:
        assert '"hello"' in str(first.recv(5))
        with pytest.raises(InvalidStatus), connect(url, proxy=None):
            pass


def test_the_eleventh_socket_is_turned_away(sandbox: SlackSandbox) -> None:
    with ExitStack() as stack:
        sockets = [stack.enter_context(connect(sandbox.tickets.new_socket_url(), proxy=None)) for _ in range(11)]
        first_words = [str(socket.recv(5)) for socket in sockets]
    assert ["hello" in words for words in first_words] == [True] * 10 + [False]
    assert "too_many_websockets" in first_words[10]


def posted(sandbox: SlackSandbox) -> list[str]:
    return [line["text"] for line in sandbox.people.transcript("ops")]


@pytest.mark.parametrize(
    ("kind", "kept"),
    [("reset_before_commit", []), ("reset_after_commit", ["x"]), ("server_error", []), ("error_after_commit", ["x"])],
)
def test_a_failed_call_has_or_has_not_done_its_work(
    sandbox: SlackSandbox, web: WebClient, kind: FaultKind, kept: list[str]
) -> None:
    sandbox.faults.add(Fault(kind, "chat.postMessage"))
    with pytest.raises((ConnectionResetError, SlackApiError)) as caught:
        web.chat_postMessage(channel="C0OPS", text="x")
    assert isinstance(caught.value, ConnectionResetError) == kind.startswith("reset")
    assert posted(sandbox) == kept
    assert sandbox.people.calls[-1].fault == kind
    web.chat_postMessage(channel="C0OPS", text="y")
    assert posted(sandbox) == [*kept, "y"]


def test_the_default_retry_of_the_sdk_posts_twice_after_a_reset(sandbox: SlackSandbox) -> None:
    sandbox.faults.add(Fault("reset_after_commit", "chat.postMessage"))
    WebClient(sandbox.bot_token, base_url=sandbox.base_url).chat_postMessage(channel="C0OPS", text="x")
    assert posted(sandbox) == ["x", "x"]


def test_a_rate_limited_call_says_when_to_come_back_and_coming_early_is_a_violation(
    sandbox: SlackSandbox, web: WebClient
) -> None:
    sandbox.faults.add(Fault("ratelimited", "chat.postMessage", retry_after_s=1))
    patient = WebClient(sandbox.bot_token, base_url=sandbox.base_url, retry_handlers=[RateLimitErrorRetryHandler()])
    patient.chat_postMessage(channel="C0OPS", text="x")
    assert sandbox.workspace.violations == []
    sandbox.faults.add(Fault("ratelimited", "chat.postMessage", retry_after_s=30))
    for _ in range(2):
        with pytest.raises(SlackApiError) as caught:
            web.chat_postMessage(channel="C0OPS", text="y")
        assert caught.value.response.status_code == 429
        assert int(caught.value.response.headers["Retry-After"]) in {30, 31}
    assert [v.code for v in sandbox.workspace.violations] == ["ignored_retry_after"]
    assert posted(sandbox) == ["x"]


def test_rate_limits_count_per_method_once_they_are_on(sandbox: SlackSandbox, web: WebClient) -> None:
    group = sandbox.workspace.add_group("approvers")
    for _ in range(25):
        web.usergroups_users_list(usergroup=group.id)
    sandbox.api.rate_limits = True
    answers = []
    for _ in range(21):
        try:
            answers.append(web.usergroups_users_list(usergroup=group.id)["ok"])
        except SlackApiError as no:
            answers.append(no.response["error"])
    assert answers == [True] * 20 + ["ratelimited"]
    assert web.auth_test()["ok"]


def test_a_named_error_hits_its_channel_and_count_only(sandbox: SlackSandbox, web: WebClient) -> None:
    other = sandbox.workspace.add_channel("other").id
    sandbox.faults.add(Fault("error", "chat.postMessage", count=2, error="is_archived", channel="C0OPS"))
    web.chat_postMessage(channel=other, text="x")
    for _ in range(2):
        with pytest.raises(SlackApiError, match="is_archived"):
            web.chat_postMessage(channel="C0OPS", text="x")
    web.chat_postMessage(channel="C0OPS", text="x")
    assert sandbox.faults.listed() == []


def test_a_delayed_answer_outlasts_the_client_and_is_done_all_the_same(sandbox: SlackSandbox) -> None:
    sandbox.faults.add(Fault("delay", "chat.postMessage", delay_s=1.5))
    hasty = WebClient(sandbox.bot_token, base_url=sandbox.base_url, timeout=1, retry_handlers=[])
    with pytest.raises(TimeoutError):
        hasty.chat_postMessage(channel="C0OPS", text="x")
    assert sandbox.people.wait_for(lambda: posted(sandbox) == ["x"])


def test_a_workspace_that_was_down_comes_back_with_its_state_and_its_app(
    sandbox: SlackSandbox, bots: list[Bot], web: WebClient
) -> None:
    bots.append(Bot(sandbox))
    port = int(sandbox.base_url.split(":")[2].split("/")[0])
    web.chat_postMessage(channel="C0OPS", text="before")
    sandbox.stop()
    with pytest.raises((URLError, ConnectionError)):
        web.chat_postMessage(channel="C0OPS", text="lost")
    with pytest.raises(PersonError, match="is down"):
        sandbox.people.command("ana", "ops", "/knob list")
    sandbox.start(port=port)
    assert sandbox.people.wait_for(lambda: sandbox.sockets.connected == 1, 60)
    assert sandbox.people.command("ana", "ops", "/knob list").wait()
    web.chat_postMessage(channel="C0OPS", text="after")
    assert posted(sandbox) == ["before", "after"]


def test_an_acknowledgement_that_carries_what_nobody_reads_is_a_violation(
    sandbox: SlackSandbox, bots: list[Bot]
) -> None:
    bots.append(Bot(sandbox))
    bots[0].answer = {"text": "thanks"}
    sandbox.people.mention("ana", "ops", "status")
    assert sandbox.people.envelopes[0].wait()
    assert [v.code for v in sandbox.workspace.violations] == ["ack_payload_ignored"]


def test_the_fault_menu_has_no_other_dishes(sandbox: SlackSandbox) -> None:
    with pytest.raises(ValueError, match="fault 'meteor'"):
        sandbox.faults.add(Fault("meteor"))  # type: ignore[arg-type]
