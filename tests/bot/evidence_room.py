"""A bot on the local Slack, for tests of evidence in chat: a real ear, and a worker that does what it was rung for.

What people do reaches Bolt straight, without a socket: a connection takes seconds to come and go.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from slack_bolt import App, BoltRequest

from bot import submission
from bot.answering import Answerer
from bot.app import Ear, build_app
from bot.cards import form
from bot.downloading import Downloader
from bot.evidence_desk import EvidenceDesk
from bot.exhibits import Exhibits, pictures
from bot.hearing import Hearing
from bot.identity import Identity
from bot.posting import Poster
from bot.slack import make_client
from bot.uploading import Picture, Uploader
from policies.evidence import Record
from policies.fleet import Fleet
from sandbox.slack import SlackSandbox
from sandbox.slack.delivery import OnSettled
from sandbox.slack.forms import NamedBytes
from sandbox.slack.records import Envelope, Json
from tests.bot import stories
from tests.bot.test_cli_evidence_judge import A, B, one
from tests.bot.test_hearing import FakeLooks
from tests.conftest import Store
from workers.client import Client
from workers.drawn import Drawn
from workers.inbox import Inbox
from workers.ledger import Ledger
from workers.queue import Doorbell
from workers.store import connect

FILES_A = [(f"a{n}.json", one(value).encode()) for n, value in enumerate(A, start=1)]
FILES_B = [(f"b{n}.json", one(value).encode()) for n, value in enumerate(B, start=1)]


def fleet() -> Fleet:
    """ana may ask, ben may approve."""
    made = stories.fleet(approvers=("U0BEN",))
    engineers = made.roles["engineers"].model_copy(update={"users": ("U0ANA",)})
    return made.model_copy(update={"roles": {**made.roles, "engineers": engineers}})


KEPT: dict[tuple[str, str], list[Picture]] = {}


def drawn_once(record: Record) -> list[Picture]:
    """The pictures of a record, drawn for the first test that asks: drawing takes longer than all the rest."""
    key = (record.id, record.klass)
    if key not in KEPT:
        KEPT[key] = pictures(record)
    return KEPT[key]


class Straight:
    """Gives every envelope to Bolt at once."""

    running = True

    def __init__(self, slack: SlackSandbox, app: App) -> None:
        self._slack, self._app = slack, app

    def deliver(self, kind: str, payload: Json, *, on_settled: OnSettled | None = None) -> Envelope:
        envelope = Envelope(str(uuid.uuid4()), kind, payload, sent_at=time.time(), attempts=1)
        self._slack.workspace.envelopes.append(envelope)
        for _ in range(2 if self._slack.faults.take_envelope(kind) is not None else 1):
            answer = self._app.dispatch(BoltRequest(mode="socket_mode", body=payload))
            assert answer.status == 200, answer.body
        envelope.acked_ms, envelope.acks = 1.0, 1
        envelope.ack_payload = json.loads(answer.body) if answer.body else None
        if on_settled is not None:
            on_settled(envelope)
        envelope.settled.set()
        return envelope


class Room:
    """`work()` hears and shows what waits. `now` is the time of the ledger."""

    def __init__(self, store: Store, slack: SlackSandbox) -> None:
        self.slack, self.now, self.fleet = slack, stories.T0, fleet()
        self.redis = connect(store.url, retries=0)
        web = make_client(slack.bot_token, slack.base_url, timeout_s=3)
        self.ledger = Ledger(store.redis, lambda: self.now)
        self.client = Client(self.ledger, Doorbell(store.redis), self.fleet, lambda: self.now)
        self.inbox, self.drawn = Inbox(self.redis), Drawn(store.redis)
        self.shown: list[str] = []
        answerer = Answerer(web)
        forms = partial(submission.read, fleet=self.fleet)
        self.ear = Ear(self.inbox, Doorbell(self.redis), answerer, forms=forms)
        downloader = Downloader(web, lambda _: None)
        at = EvidenceDesk(self.client, self.drawn, web, downloader, self.shown.append, lambda: self.now)
        identity = Identity(web, self.fleet)
        self.hearing = Hearing(self.client, self.inbox, self.drawn, identity, answerer, FakeLooks, lambda: self.now, at)
        uploader = Uploader(web, lambda seconds: time.sleep(min(seconds, 0.06)))
        self.exhibits = Exhibits(self.client, self.drawn, Poster(web), uploader, lambda: self.now, drawn_once)
        self.app = build_app(slack.bot_token, slack.base_url, self.ear)
        slack.people._delivery = Straight(slack, self.app)

    def work(self, *, drawing: bool = True) -> None:
        """Everything that waits, heard and shown."""
        for item in self.inbox.waiting():
            self.hearing.hear(item)
        while drawing and self.shown:
            self.exhibits.draw(self.shown.pop(0))

    def say(self, text: str, user: str = "ana", channel: str = "perf") -> list[str]:
        """A command, and what its author alone is told then."""
        before = len(self.told(user, channel))
        assert self.slack.people.command(user, channel, text).wait()
        self.work()
        return self.told(user, channel)[before:]

    def told(self, user: str, channel: str = "perf") -> list[str]:
        """What a person alone was told, in order."""
        who = self.slack.workspace.find_user(user)
        assert who is not None
        return [m["text"] for m in self.slack.people.transcript(channel) if m["ephemeral_to"] == who.id]

    def public(self, channel: str = "perf") -> list[Json]:
        """What the bot said to everybody."""
        said = self.slack.people.transcript(channel)
        return [m for m in said if m["who"] == "clawback" and not m["ephemeral_to"]]

    def view(self) -> Json:
        """The open form."""
        (view,) = self.slack.workspace.views.values()
        return view

    def fill(
        self,
        a: Sequence[NamedBytes] | Sequence[str] = FILES_A,
        b: Sequence[NamedBytes] | Sequence[str] = FILES_B,
        *,
        user: str = "ana",
        **fields: str,
    ) -> Envelope:
        """Send the open form; arms are files of the person's own, or ids of files to choose."""
        return send(self.slack, self.view(), a, b, user=user, **fields)

    def records(self) -> list[Record]:
        """What is recorded."""
        return self.client.evidence()


def send(
    slack: SlackSandbox,
    view: Json,
    a: Sequence[NamedBytes] | Sequence[str] = FILES_A,
    b: Sequence[NamedBytes] | Sequence[str] = FILES_B,
    *,
    user: str = "ana",
    **fields: str,
) -> Envelope:
    """Fill a form in and send it; arms are files of the person's own, or ids of files to choose."""
    wanted = {"knob": "TARGET_CTAS", "value": "512", "interleaved": "interleaved"} | fields
    values: dict[str, Any] = {}
    for block in view["blocks"]:
        name, element = block["block_id"], block["element"]
        arm = {form.ARM_A: a, form.ARM_B: b}.get(name)
        held = _files(slack, user, arm) if arm is not None else _held(element, wanted.get(name))
        values[name] = {element["action_id"]: {"type": element["type"], **held}}
    return slack.people.submit_view(user, view["id"], values)


def _files(slack: SlackSandbox, user: str, arm: Sequence[Any]) -> Json:
    if arm and isinstance(arm[0], str):
        return {"selected_options": [{"value": file} for file in arm]}
    return {"files": [file.id for file in slack.people.upload(user, arm)]}


def _held(element: Json, value: str | None) -> Json:
    if element["type"] == "plain_text_input":
        return {"value": value}
    chosen = [option for option in element["options"] if option["value"] == value]
    if element["type"] == "checkboxes":
        return {"selected_options": chosen}
    return {"selected_option": chosen[0] if chosen else element.get("initial_option")}
