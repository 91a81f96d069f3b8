"""HTTP mode: what Slack signed is heard once and acknowledged; what anybody else sends is not even read."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from bot import submission
from bot.answering import Answerer
from bot.app import Ear, build_app
from bot.cards import form
from bot.heard import HEARD, AnyHeard, HeardCommand, HeardForm
from bot.http import MOST_BODY_BYTES, Events, HttpServer, address, build_http
from bot.metrics import Meter
from bot.readiness import Readiness
from bot.slack import make_client
from policies.errors import SettingsError
from sandbox.slack import Fault, SlackSandbox
from sandbox.slack.faults import FaultKind
from sandbox.slack.httpmode import signed
from sandbox.slack.records import Envelope, Json
from tests.bot.stories import fleet
from tests.conftest import Store
from tests.shared import shared
from workers.health import beat
from workers.inbox import Inbox
from workers.queue import Doorbell
from workers.store import connect

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
BUTTON = {"type": "button", "action_id": "clawback.deny", "text": {"type": "plain_text", "text": "Deny"}, "value": "{}"}
CARD = [{"type": "actions", "elements": [BUTTON]}]
COMMAND = b"command=%2Fknob&text=list&user_id=U0ANA&team_id=T0SANDBOX&channel_id=C0PERF&trigger_id=1.2.abc"
FORM = "application/x-www-form-urlencoded"


class Room:
    """A workspace in HTTP mode, the bot's server in threads of this process, and what it heard."""

    def __init__(self, slack: SlackSandbox, url: str) -> None:
        self.slack = slack
        self.redis = connect(url, retries=0)
        self.inbox = Inbox(self.redis)
        self.meter = Meter(self.redis)
        answerer = Answerer(make_client(slack.bot_token, slack.base_url, timeout_s=3))
        forms = partial(submission.read, fleet=fleet())
        ear = Ear(self.inbox, Doorbell(self.redis), answerer, self.meter.heard, forms)
        app = build_app(slack.bot_token, slack.base_url, ear, signing_secret=SECRET)
        routes = build_http(Readiness(self.redis, None), self.meter, Events(app, SECRET))
        self.server = HttpServer("127.0.0.1:0", routes)
        self.url = f"http://127.0.0.1:{self.server.port}"
        slack.http.request_url = f"{self.url}/slack/events"
        slack.http.retry_delays_s = (0.0, 0.0, 0.0)

    def heard(self) -> list[AnyHeard]:
        return [HEARD.validate_python(self.inbox.get(item)) for item in self.inbox.waiting()]

    def post(
        self, body: bytes, headers: dict[str, str] | dict[bytes, bytes], path: str = "/slack/events"
    ) -> httpx.Response:
        return httpx.post(self.url + path, content=body, headers=headers, trust_env=False, timeout=60)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, trust_env=False, timeout=60)

    def signed(self, body: bytes, kind: str = FORM, secret: str = SECRET, at: float | None = None) -> httpx.Response:
        request = signed(body, kind, secret, at=at)
        return self.post(request.body, request.headers)

    def close(self) -> None:
        self.server.close()
        self.redis.close()


@pytest.fixture(scope="module")
def running() -> Iterator[SlackSandbox]:
    with SlackSandbox(reference=shared("slack"), request_url="", signing_secret=SECRET) as slack:
        slack.workspace.add_user("ana", user_id="U0ANA")
        slack.workspace.add_channel("perf", ("U0ANA", slack.workspace.app.bot_user), channel_id="C0PERF")
        yield slack


@pytest.fixture
def workspace(running: SlackSandbox) -> Iterator[SlackSandbox]:
    """A workspace in HTTP mode, without anything that an earlier test left."""
    space = running.workspace
    for record in (space.messages, space.calls, space.envelopes, space.violations):
        record.clear()
    running.faults.clear()
    yield running
    assert space.violations == []


@pytest.fixture
def room(store: Store, workspace: SlackSandbox) -> Iterator[Room]:
    made = Room(workspace, store.url)
    yield made
    made.close()


def changed(name: str, value: bytes) -> dict[bytes, bytes]:
    """The headers of a good request with one of them replaced."""
    headers = {key.encode(): told.encode() for key, told in signed(COMMAND, FORM, SECRET).headers.items()}
    return headers | {name.encode(): value}


def test_the_request_url_is_verified(room: Room) -> None:
    assert room.slack.http.verify_url()


def test_a_command_is_recorded_rung_for_and_acknowledged(room: Room) -> None:
    sent = room.slack.people.command("ana", "perf", "/knob restore TARGET_CTAS=512")
    assert sent.wait()
    assert sent.statuses == [200]
    (said,) = room.heard()
    assert isinstance(said, HeardCommand)
    assert (said.command, said.text, said.user, said.team) == ("/knob", "restore TARGET_CTAS=512", "U0ANA", "T0SANDBOX")
    assert len(room.redis.lrange("rq:queue:ask", 0, -1)) == 1


def test_a_click_and_a_mention_are_heard_too(room: Room) -> None:
    bot = room.slack.workspace.app.bot_user
    card = room.slack.workspace.post("C0PERF", bot, "plan", blocks=CARD)
    assert room.slack.people.click("ana", "perf", card.ts, "clawback.deny").wait()
    room.slack.people.mention("ana", "perf", "status", card.ts)
    assert room.slack.people.wait_for(lambda: len(room.inbox.waiting()) == 2)
    kinds = {said.kind for said in room.heard()}
    assert kinds == {"action", "mention"}


@pytest.mark.parametrize("kind", ["wrong_signature", "no_signature", "old_timestamp"])
def test_what_is_forged_unsigned_or_old_is_refused_and_leaves_nothing(room: Room, kind: FaultKind) -> None:
    room.slack.faults.add(Fault(kind))
    sent = room.slack.people.command("ana", "perf", "/knob list")
    assert not sent.wait()
    assert (sent.statuses, sent.failure) == ([401], "dispatch_failed")
    assert room.inbox.waiting() == []


@pytest.mark.parametrize(("age_s", "status"), [(-295, 200), (0, 200), (295, 200), (301, 401), (-330, 401)])
def test_a_signature_holds_for_five_minutes(room: Room, age_s: float, status: int) -> None:
    assert room.signed(COMMAND, at=time.time() - age_s).status_code == status
    assert len(room.inbox.waiting()) == (status == 200)


@pytest.mark.parametrize("what", ["command", "action", "event"])
@pytest.mark.parametrize("kind", ["replay", "duplicate_envelope"])
def test_what_is_replayed_or_repeated_is_handled_once_and_acknowledged(room: Room, what: str, kind: FaultKind) -> None:
    room.slack.faults.add(Fault(kind))
    if what == "command":
        room.slack.people.command("ana", "perf", "/knob list")
    elif what == "action":
        card = room.slack.workspace.post("C0PERF", room.slack.workspace.app.bot_user, "plan", blocks=CARD)
        room.slack.people.click("ana", "perf", card.ts, "clawback.deny")
    else:
        room.slack.people.mention("ana", "perf", "help")
    assert room.slack.people.wait_for(lambda: [e.statuses for e in room.slack.people.envelopes] == [[200, 200]])
    assert len(room.inbox.waiting()) == 1
    assert len(room.redis.lrange("rq:queue:ask", 0, -1)) == 1


def test_an_event_that_slack_sends_again_is_handled_once(room: Room) -> None:
    room.slack.faults.add(Fault("drop_ack"))
    room.slack.people.mention("ana", "perf", "help")
    assert room.slack.people.wait_for(lambda: [e.statuses for e in room.slack.people.envelopes] == [[0, 200]])
    assert len(room.inbox.waiting()) == 1


def test_two_different_commands_are_two(room: Room) -> None:
    for _ in range(2):
        assert room.slack.people.command("ana", "perf", "/knob list").wait()
    assert len(room.inbox.waiting()) == 2


def test_a_body_over_the_limit_is_refused_however_it_is_sent(room: Room) -> None:
    large = b"payload=" + b"x" * MOST_BODY_BYTES
    assert room.signed(large).status_code == 413
    request = signed(large, FORM, SECRET)

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(large), 65536):
            yield large[start : start + 65536]

    answer = httpx.post(f"{room.url}/slack/events", content=pieces(), headers=request.headers, trust_env=False)
    assert answer.status_code == 413
    assert room.inbox.waiting() == []


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"payload={", FORM, 400),
        (b"payload=[]", FORM, 400),
        (b"{", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"\xff\xfe", FORM, 400),
        (b"", FORM, 400),
        (COMMAND, "text/plain", 415),
        (COMMAND, "multipart/form-data; boundary=x", 415),
        (b"ssl_check=1&token=x", FORM, 404),
        (b"command=%2Fother&text=x", FORM, 404),
    ],
)
def test_signed_nonsense_gets_a_plain_no(room: Room, body: bytes, kind: str, status: int) -> None:
    answer = room.signed(body, kind)
    assert answer.status_code == status
    assert "Traceback" not in answer.text
    assert 'File "' not in answer.text
    assert room.inbox.waiting() == []


@pytest.mark.parametrize("stamp", ["", "now", "-1", "9" * 40, "1e9", "\u0661"])
def test_an_odd_timestamp_is_no_signature(room: Room, stamp: str) -> None:
    assert room.post(COMMAND, changed("X-Slack-Request-Timestamp", stamp.encode())).status_code == 401


@pytest.mark.parametrize("signature", ["", "v0=", "v0=" + "0" * 64, "v1=" + "0" * 64, "v0=" + "\u00e9" * 64])
def test_an_odd_signature_is_no_signature(room: Room, signature: str) -> None:
    assert room.post(COMMAND, changed("X-Slack-Signature", signature.encode())).status_code == 401


def test_a_body_that_does_not_come_is_not_waited_for(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.http.BODY_S", 0.1)
    headers = {**signed(COMMAND, FORM, SECRET).headers, "Content-Length": str(len(COMMAND))}
    with socket.create_connection(("127.0.0.1", room.server.port), 10) as line:
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        line.sendall(f"POST /slack/events HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode() + COMMAND[:10])
        assert line.recv(200).startswith(b"HTTP/1.1 408")
    assert room.inbox.waiting() == []


def test_paths_and_methods_are_strict(room: Room) -> None:
    request = signed(COMMAND, FORM, SECRET)
    assert room.get("/slack/events").status_code == 405
    for path in ("/slack/events/", "/slack", "/", "/docs", "/openapi.json", "//slack/events"):
        assert room.post(request.body, request.headers, path).status_code == 404
    assert room.post(b"", {}, "/healthz").status_code == 405
    assert room.inbox.waiting() == []


def test_without_redis_the_acknowledgement_and_readiness_say_so(workspace: SlackSandbox) -> None:
    room = Room(workspace, "redis://127.0.0.1:1/0")
    try:
        assert workspace.people.command("ana", "perf", "/knob list").wait()
        assert workspace.people.wait_for(lambda: workspace.people.transcript("perf"))
        (told,) = workspace.people.transcript("perf", seen_by="ana")
        assert told["ephemeral_to"] == "U0ANA"
        assert told["text"].startswith("nothing was recorded: ")
        assert room.get("/healthz").status_code == 200
        parts = room.get("/readyz").json()["parts"]
        assert {part["why"] for part in parts.values()} == {"redis cannot be reached or written"}
        assert "clawback_queue_length{" not in room.get("/metrics").text
    finally:
        room.close()


def test_health_is_answered_while_listeners_wait(room: Room) -> None:
    """Slow acknowledgements hold threads, not the server."""
    room.redis.client_pause(700)
    sent = [room.slack.people.command("ana", "perf", f"/knob show K{i}") for i in range(8)]
    assert room.get("/healthz").json() == {"ok": True}
    assert all(one.wait(60) for one in sent)
    assert len(room.inbox.waiting()) == 8


def test_readiness_names_the_part_that_is_not_ready(room: Room) -> None:
    answer = room.get("/readyz")
    assert answer.status_code == 503
    told = answer.json()
    assert told["ready"] is False
    assert told["parts"]["ask"] == {"ready": False, "why": "no worker serves the queue `ask`"}
    assert told["parts"]["redis"] == told["parts"]["persistence"] == {"ready": True, "why": ""}
    beat(room.redis, ("ask",), "here:1")
    assert (room.get("/readyz").status_code, room.get("/readyz").json()["ready"]) == (200, True)


def test_readiness_wants_writes_to_be_kept(room: Room) -> None:
    beat(room.redis, ("ask",), "here:1")
    room.redis.config_set("appendfsync", "everysec")
    try:
        answer = room.get("/readyz")
    finally:
        room.redis.config_set("appendfsync", "always")
    assert answer.status_code == 503
    assert answer.json()["parts"]["persistence"]["why"] == "appendfsync is everysec, so entries may be lost"


def test_metrics_count_what_was_acknowledged(room: Room) -> None:
    assert room.slack.people.command("ana", "perf", "/knob list").wait()
    text = room.get("/metrics").text
    assert 'clawback_heard_total{kind="command"} 1.0' in text
    assert 'clawback_acknowledged_seconds_count{kind="command"} 1.0' in text
    assert 'clawback_queue_length{queue="ask"} 1.0' in text


def test_in_socket_mode_only_health_is_served(store: Store) -> None:
    client = connect(store.url, retries=0)
    problem: list[str] = ["the socket is not connected"]
    server = HttpServer("127.0.0.1:0", build_http(Readiness(client, lambda: problem[0]), Meter(client), None))
    url = f"http://127.0.0.1:{server.port}"
    beat(client, ("ask",), "here:1")

    def get(path: str) -> tuple[int, Any]:
        answer = httpx.get(url + path, trust_env=False)
        return answer.status_code, answer.json() if path != "/slack/events" else None

    try:
        assert get("/healthz") == (200, {"ok": True})
        status, told = get("/readyz")
        assert (status, told["parts"]["slack"]["why"]) == (503, "the socket is not connected")
        problem[0] = ""
        assert get("/readyz")[0] == 200
        assert get("/slack/events")[0] == 404
    finally:
        server.close()
        client.close()


@pytest.mark.parametrize("text", ["", "8080", ":8080", "host:", "host:port", "h:70000", "a b:1", "[::1:80", "h:1/x"])
def test_an_address_that_is_none_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="expected host:port"):
        address(text)


def test_an_address_in_use_is_named(room: Room) -> None:
    with pytest.raises(SettingsError, match="cannot listen on"):
        HttpServer(f"127.0.0.1:{room.server.port}", build_http(Readiness(room.redis, None), room.meter, None))


def test_the_server_ends_when_it_is_told_to(room: Room) -> None:
    ending = threading.Event()
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(room.server.run(ending, 0.05)))
    thread.start()
    ending.set()
    thread.join(60)
    assert codes == [0]


def test_a_command_of_8000_letters_is_kept_as_far_as_it_is_needed(room: Room) -> None:
    body = COMMAND.replace(b"text=list", b"text=" + b"y" * 9000)
    assert room.signed(body).status_code == 200
    (said,) = room.heard()
    assert isinstance(said, HeardCommand)
    assert len(said.text) == 8000
    assert json.loads(said.model_dump_json())["user"] == "U0ANA"


def test_a_form_is_answered_with_what_is_wrong_and_recorded_when_nothing_is(room: Room) -> None:
    web = make_client(room.slack.bot_token, room.slack.base_url, timeout_s=3)
    view = form.view(list(fleet().knobs.values()), form.Place(channel="C0PERF"))
    made = web.views_open(trigger_id=room.slack.tickets.new_trigger("U0ANA"), view=view)
    a, b = room.slack.people.upload("ana", [("a.json", b"{}"), ("b.json", b"[]")])

    def send(value: str) -> Envelope:
        knob = {"type": "static_select", "selected_option": {"value": "TARGET_CTAS"}}
        typed = {"type": "plain_text_input", "value": value}
        fields: Json = {"knob": knob, "value": typed, "arm-a": _file(a.id), "arm-b": _file(b.id)}
        values = {block: {f"{block}-field": field} for block, field in fields.items()}
        sent = room.slack.people.submit_view("ana", made["view"]["id"], values)
        assert sent.wait()
        return sent

    wrong = send("0x10").ack_payload
    assert wrong is not None
    assert (wrong["response_action"], list(wrong["errors"])) == ("errors", ["value"])
    assert room.heard() == []
    assert send("512").ack_payload is None
    (heard,) = room.heard()
    assert isinstance(heard, HeardForm)
    assert (heard.knob, heard.value, heard.baseline, heard.a, heard.b) == ("TARGET_CTAS", "512", None, (a.id,), (b.id,))
    assert (heard.user, heard.channel, heard.metric) == ("U0ANA", "C0PERF", "output_throughput")


def _file(file_id: str) -> Json:
    return {"type": "file_input", "files": [file_id]}
