"""The bot's ear: Slack -> inbox -> doorbell -> acknowledged. It decides nothing and never waits for a host.

The same in Socket Mode (here) and in HTTP mode (`bot.http`).

What was acknowledged is recorded; of what may not be recorded the person is told which of the two it is.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import structlog
from slack_bolt import Ack, App
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_bolt.authorization import AuthorizeResult

from bot.answering import Answerer
from bot.cards.answers import told
from bot.cards.buttons import PREFIX
from bot.cards.form import CALLBACK, KNOB
from bot.hangup import hang_up
from bot.heard import AnyHeard, action_of, command_of, mention_of
from bot.manifest import COMMANDS, MENTION, PEOPLE
from bot.messages import say
from bot.slack import is_loopback, make_client
from bot.submission import Errors
from policies.errors import OpsError, StoreUnavailable
from workers.inbox import Inbox
from workers.queue import Doorbell
from workers.store import StoreUnclear

log = structlog.get_logger(__name__)

LISTENERS = 32  # Source: FACTS-slack 5.1, five busy listeners of the default make the sixth command fail
SILENT_S = 90.0  # Source: FACTS-slack 5.8, a socket can stay open and deliver nothing; pings come every 10 s
PING_S = 10.0
CONNECT_PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
BOLT_READS = ("SLACK_BOT_TOKEN", "SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET")  # what the app needs of it, it is given
EXIT_SILENT = 75  # EX_TEMPFAIL: start me again


class Ear:
    """Puts what Slack sends into the inbox and rings for it. `noted` is told the kind and the seconds it took.

    forms: reads a form that was sent; fields that are wrong are told with the acknowledgement.
    """

    def __init__(
        self,
        inbox: Inbox,
        doorbell: Doorbell,
        answerer: Answerer,
        noted: Callable[[str, float], object] = lambda _kind, _took_s: None,
        forms: Callable[[dict[str, Any]], tuple[str, AnyHeard] | Errors] = lambda _body: {},
    ) -> None:
        self._forms = forms
        self._inbox = inbox
        self._doorbell = doorbell
        self._answerer = answerer
        self._noted = noted

    def command(self, ack: Ack, body: dict[str, Any]) -> None:
        """A slash command. The failure to record it is said with the acknowledgement itself."""
        began = time.perf_counter()
        problem = self._record(*command_of(body))
        if problem is None:
            ack()
        else:
            ack(text=problem, response_type="ephemeral")
        self._noted("command", time.perf_counter() - began)

    def action(self, ack: Ack, body: dict[str, Any], action: dict[str, Any]) -> None:
        """A click. An acknowledgement shows nothing, so a failure is said behind it."""
        began = time.perf_counter()
        key, heard = action_of(body, action)
        problem = self._record(key, heard)
        ack()
        self._noted("action", time.perf_counter() - began)
        if problem is not None:
            self._answerer.answer(heard, told(problem))

    def mention(self, ack: Ack, body: dict[str, Any]) -> None:
        """A mention by a person."""
        began = time.perf_counter()
        found = mention_of(body)
        problem = self._record(*found) if found is not None else None
        ack()
        self._noted("mention", time.perf_counter() - began)
        if problem is not None and found is not None:
            self._answerer.answer(found[1], told(problem))

    def form(self, ack: Ack, body: dict[str, Any]) -> None:
        """A form. What is wrong with it, or that it cannot be recorded, is said at its fields, and it stays open."""
        began = time.perf_counter()
        found = self._forms(body)
        wrong = found if isinstance(found, dict) else {}
        if not isinstance(found, dict) and (problem := self._record(*found)) is not None:
            wrong = {KNOB: problem}
        ack(response_action="errors", errors=wrong) if wrong else ack()
        self._noted("form", time.perf_counter() - began)

    def people(self, ack: Ack, body: dict[str, Any]) -> None:
        """A group or a person changed: answers that are kept about them are dropped, in every process."""
        ack()
        try:
            self._inbox.people_changed()
        except StoreUnavailable as error:
            # a decision reads anew in any case; a question may see the old groups for a minute
            log.warning(
                "change of people not counted", event=(body.get("event") or {}).get("type"), error=error.message
            )

    def _record(self, key: str, heard: AnyHeard) -> str | None:
        """Why it could not be recorded; None when it was, now or before."""
        try:
            received = self._inbox.put(key, heard.model_copy(update={"put_at": time.time()}).model_dump(mode="json"))
        except OpsError as error:
            log.error("not recorded", kind=heard.kind, error=error.message)  # noqa: TRY400 - the reason is in it
            # it may still be heard, when the store goes on with what it had been sent
            unclear = isinstance(error, StoreUnclear)
            return say("asked.not-sure" if unclear else "asked.not-recorded", why=error.message)
        if received.first:
            try:
                self._doorbell.ring("ask", "hear", received.id)
            except StoreUnavailable as error:
                # it is recorded; a worker's tick finds it waiting
                log.warning("bell not rung", kind=heard.kind, error=error.message)
        return None


def build_app(bot_token: str, api_url: str, ear: Ear, *, signing_secret: str | None = None) -> App:
    """The Bolt app. Its start needs nothing from Slack: who the token belongs to is not asked.

    signing_secret: for HTTP mode; what comes over a socket is not signed.
    """
    with _unread(BOLT_READS):
        app = App(
            client=make_client(None, api_url),
            authorize=_authorize(bot_token),
            signing_secret=signing_secret,
            token_verification_enabled=False,
            ssl_check_enabled=False,  # it would answer before the signature is looked at
            listener_executor=ThreadPoolExecutor(LISTENERS, thread_name_prefix="listener"),
        )
    for command in COMMANDS:
        app.command(command)(ear.command)
    app.action(re.compile(f"^{re.escape(PREFIX)}"))(ear.action)
    app.view(CALLBACK)(ear.form)
    app.event(MENTION)(ear.mention)
    for event in PEOPLE:
        app.event(event)(ear.people)
    app.event(re.compile(".*"))(_only_acknowledged)
    return app


@contextmanager
def _unread(variables: tuple[str, ...]) -> Iterator[None]:
    """Hide variables from a library that reads them itself and warns of what it does not use."""
    hidden = {name: os.environ.pop(name) for name in variables if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _authorize(token: str) -> Callable[..., AuthorizeResult]:
    def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id, bot_token=token)

    return authorize


def _only_acknowledged(ack: Ack) -> None:
    """An event that the app is subscribed to and that means nothing here."""
    ack()


class Socket:
    """The Socket Mode connection with a watchdog: one that is silent for too long ends the process."""

    def __init__(
        self, app: App, app_token: str, *, most_silent_s: float = SILENT_S, clock: Callable[[], float] = time.time
    ) -> None:
        self._most_silent_s = most_silent_s
        self._handler = SocketModeHandler(app, app_token, ping_interval=PING_S)
        if is_loopback(app.client.base_url):
            self._handler.client.proxy = None
        self._clock = clock
        self._heard_at = clock()
        self._handler.client.on_message_listeners.append(self._heard)

    def run(self, ending: threading.Event) -> int:
        """Listen until `ending`; the exit code of the process."""
        if not self._connect(ending):
            return 0
        log.info("bot listens")
        while not ending.wait(1.0):
            if self.silent_s() > self._most_silent_s:
                log.error("socket is silent", silent_s=round(self.silent_s()))
                return EXIT_SILENT
        return 0

    def close(self) -> None:
        """Close the connection."""
        hang_up(self._handler.client)

    def problem(self) -> str:
        """Why nothing can be heard now; "" when the socket is open and was not silent for too long."""
        if not self._handler.client.is_connected():
            return "the socket is not connected"
        return "" if self.silent_s() <= self._most_silent_s else "the socket is silent"

    def silent_s(self) -> float:
        """Seconds since anything came over the socket, pings counted."""
        session = self._handler.client.current_session
        pinged = getattr(session, "last_ping_pong_time", None) or 0.0
        return self._clock() - max(self._heard_at, float(pinged))

    def _heard(self, _message: str) -> None:
        self._heard_at = self._clock()

    def _connect(self, ending: threading.Event) -> bool:
        failures = 0
        while not ending.is_set():
            try:
                self._handler.client.connect()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next attempt comes
                pause_s = CONNECT_PAUSES_S[min(failures, len(CONNECT_PAUSES_S) - 1)]
                log.warning("slack not reached", error=f"{type(error).__name__}: {error}"[:200], pause_s=pause_s)
                failures += 1
                ending.wait(pause_s)
            else:
                self._heard_at = self._clock()
                return True
        return False
