"""Chromium on the sandbox's page, beside a small Bolt app that answers commands and clicks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from slack_bolt import Ack, App, Respond
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient

from bot.hangup import hang_up
from sandbox.pictures import CHROMIUM, FLAGS
from sandbox.slack import SlackSandbox
from sandbox.slack.records import Json
from tests.shared import shared, skip_or_fail

# a loaded machine may take its time to draw; what never comes still fails
expect.set_options(timeout=60_000)

WORDS = {
    "": {"/knob": "performance knobs", "/deploy": "deploys and restarts"},
    "/knob": {"list": "values of every knob", "restore": "bring a value back", "set": "set a value"},
    "/knob restore": {"TARGET_CTAS=512": "was live before"},
    "/knob *": {"because": "say why", "via": "choose a restart order"},
}
CONFIRM: Json = {
    "title": {"type": "plain_text", "text": "Restart three services?"},
    "text": {"type": "mrkdwn", "text": "This cuts *53 requests* in flight."},
    "confirm": {"type": "plain_text", "text": "Restart"},
    "deny": {"type": "plain_text", "text": "Not now"},
}


def text(words: str, kind: str = "mrkdwn") -> Json:
    """A text object."""
    return {"type": kind, "text": words}


def button(action: str, label: str, **more: object) -> Json:
    """A button."""
    return {"type": "button", "action_id": action, "text": text(label, "plain_text"), "value": "C-142"} | more


def card() -> list[Json]:
    """A plan card such as the product draws."""
    lines = (
        "decode@gpu1: now unset (nothing sets it) → then `512` (zz-clawback.conf:2)",
        "evidence ab-17, 2 days old: *+12.8 % C64 · +5.7 % C96 · +1.2 % C80* output tok/s, n=1 per arm, no interval",
        "*co-restart*: prefill → decode → router, about 2 min 40 s (p90 3 min 05 s, n=7 recorded)",
        "*decode-only*: decode, about 80 s (n=3 recorded)",
        "can be confirmed until <!date^1764601800^{time_secs}|15:10:00 UTC>",
    )
    return [
        {"type": "section", "text": text("*Restore TARGET_CTAS = 512* on decode · asked by <@U0ANA> · change C-142")},
        {"type": "context", "elements": [text("please decide: <@U0BEN>")]},
        {"type": "section", "text": text("\n".join(lines))},
        {
            "type": "actions",
            "elements": [
                button("confirm", "Confirm co-restart", style="primary", confirm=CONFIRM),
                button("narrow", "Confirm decode-only"),
                button("deny", "Deny", style="danger"),
            ],
        },
        {"type": "context", "elements": [text("plan `8276b3596c88`")]},
    ]


STEPS = (
    "<!date^1764600030^{time_secs}|14:40:30 UTC> prefill restart issued (pid 1811)",
    "<!date^1764600168^{time_secs}|14:42:48 UTC> prefill healthy after 68.2 s · new pid 2044 owns port 30000",
    "<!date^1764600260^{time_secs}|14:44:20 UTC> decode restart issued with `SGLANG_SM120_MMA_TARGET_CTAS=512`",
    "<!date^1764600340^{time_secs}|14:45:40 UTC> proof: `512` in the environment of decode@gpu1 pid 2101",
)


class Room:
    """A workspace with ana and ben in #serving, and an app that draws plan cards."""

    def __init__(self, slack: SlackSandbox) -> None:
        self.slack = slack
        self.web = WebClient(slack.bot_token, base_url=slack.base_url)

    def post(self, words: str = "", **more: object) -> str:
        """Post as the app; the timestamp."""
        answer = self.web.chat_postMessage(channel="C0SERVING", text=words or "a card", **more)  # type: ignore[arg-type]  # any argument of the method
        return str(answer["ts"])

    def listen(self) -> SocketModeHandler:
        """Connect the app; `close()` ends it."""
        app = App(client=self.web, token_verification_enabled=False)

        @app.command("/knob")
        def knob(ack: Ack, respond: Respond, command: Json) -> None:
            ack()
            respond(f"I read this as `/knob {command['text']}`")
            self.post("Restore TARGET_CTAS = 512", blocks=card())

        @app.action("deny")
        def deny(ack: Ack, respond: Respond) -> None:
            ack()
            respond("you asked for it yourself: somebody else decides", replace_original=False)

        @app.action("confirm")
        def confirm(ack: Ack, body: Json) -> None:
            ack()
            ts = body["message"]["ts"]
            self.web.chat_update(channel="C0SERVING", ts=ts, text="running: step 2 of 6", blocks=card()[:3])
            for line in STEPS:
                self.post(line, thread_ts=ts)

        @app.event("app_mention")
        def mentioned(ack: Ack) -> None:
            ack()

        handler = SocketModeHandler(app, self.slack.app_token)
        handler.connect()  # type: ignore[no-untyped-call]  # slack_bolt gives it no types
        assert self.slack.people.wait_for(lambda: self.slack.sockets.connected, 60)
        return handler


@contextmanager
def room(*, with_app: bool = True, judged: bool = True) -> Iterator[Room]:
    """A running room, with an app of its own; calls are judged against the reference data, unless `judged` is off."""
    made = SlackSandbox(reference=shared("slack") if judged else None, page_hints=WORDS)
    space = made.workspace
    space.add_user("ana", user_id="U0ANA")
    space.add_user("ben", user_id="U0BEN")
    space.add_group("approvers", ["U0BEN"], group_id="S0APPROVE")
    space.add_channel("serving", ["U0ANA", "U0BEN"], channel_id="C0SERVING")
    space.add_channel("random", ["U0ANA", "U0BEN"], channel_id="C0RANDOM")
    with pytest.MonkeyPatch.context() as patch, made:
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
            patch.delenv(name, raising=False)
        here = Room(made)
        handler = here.listen() if with_app else None
        try:
            yield here
        finally:
            if handler is not None:
                hang_up(handler.client)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's browser; nothing is downloaded."""
    if not (Path(CHROMIUM).exists() or shutil.which("chromium")):
        skip_or_fail("no chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


class Tab:
    """A page of one person, and everything that went wrong in it."""

    def __init__(self, browser: Browser, here: Room, who: str, *, width: int = 1280, scheme: str = "light") -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
            timezone_id="Europe/Berlin",
            locale="en-GB",
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.mistakes: list[str] = []
        self.page.on("pageerror", lambda error: self.mistakes.append(str(error)))
        self.page.on("console", lambda said: self.mistakes.append(said.text) if said.type == "error" else None)
        self.page.goto(f"{here.slack.page_url}#as={who}&in=serving")
        self.page.locator("#link", has_text="app").wait_for()

    def type_in(self, words: str, *, field: str = "#field") -> None:
        """Type into a message field and press Enter."""
        self.page.locator(field).press_sequentially(words)
        self.page.keyboard.press("Enter")

    def close(self) -> None:
        """Close it; nothing may have gone wrong."""
        self.context.close()
        assert self.mistakes == []
