"""The bot's process: the ear, heard by Socket Mode or by HTTP, and where it says how it is."""

from __future__ import annotations

import threading
from functools import partial

import structlog
from pydantic import SecretStr

from bot import submission
from bot.answering import Answerer
from bot.app import Ear, Socket, build_app
from bot.http import Events, HttpServer, build_http
from bot.metrics import Meter
from bot.readiness import Readiness
from bot.settings import Settings
from bot.slack import make_client
from policies.errors import StoreUnavailable
from workers import world
from workers.inbox import Inbox
from workers.queue import Doorbell
from workers.store import connect
from workers.wiring import Wiring

log = structlog.get_logger(__name__)


def listen(settings: Settings, wiring: Wiring, quick_url: SecretStr, ending: threading.Event, *, http: bool) -> int:
    """Hear Slack until `ending`; the exit code of the process.

    quick_url: Redis with short waits, because Slack waits 3 s for an acknowledgement.

    Raises: SettingsError.
    """
    mode = settings.listens_by(http=http)
    bot_token = settings.secret("SLACK_BOT_TOKEN")
    quick = connect(quick_url, retries=0)
    try:
        world.remember(quick, settings.api_url)
    except StoreUnavailable as error:
        log.warning("store is away", error=error.message)  # Slack is heard all the same, and told so
    meter = Meter(quick)
    answerer = Answerer(make_client(bot_token, settings.api_url))
    ear = Ear(Inbox(quick), Doorbell(quick), answerer, meter.heard, partial(submission.read, fleet=wiring.fleet))
    try:
        if mode == "http":
            secret = settings.secret("SLACK_SIGNING_SECRET")
            app = build_app(bot_token, settings.api_url, ear, signing_secret=secret)
            routes = build_http(Readiness(quick, None), meter, Events(app, secret))
            server = HttpServer(settings.http_address(), routes)
            code = server.run(ending)
            server.close()
            return code
        socket = Socket(build_app(bot_token, settings.api_url, ear), settings.secret("SLACK_APP_TOKEN"))
        beside = None
        if settings.clawback_http is not None:
            beside = HttpServer(settings.clawback_http, build_http(Readiness(quick, socket.problem), meter, None))
        code = socket.run(ending)
        socket.close()
        if beside is not None:
            beside.close()
        return code
    finally:
        wiring.redis.close()
        quick.close()
