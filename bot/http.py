"""HTTP mode: Slack's signed requests into the Bolt app; and where the process says how it is.

`/slack/events` takes commands, clicks and events. `/healthz`, `/readyz` and `/metrics` are there in both modes.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import uuid
from urllib.parse import parse_qsl

import structlog
import uvicorn
from slack_bolt import App
from slack_bolt.adapter.starlette.handler import to_bolt_request, to_starlette_response
from slack_sdk.signature import SignatureVerifier
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.metrics import Meter
from bot.readiness import Readiness
from policies.errors import SettingsError

log = structlog.get_logger(__name__)

EVENTS_PATH = "/slack/events"
MOST_BODY_BYTES = 1024 * 1024  # a click brings its whole message; views are at most 250 kB
BODY_S = 2.0  # to send the whole body; Slack gives up after 3
MOST_CONNECTIONS = 256
KEEP_ALIVE_S = 75  # longer than the usual balancer in front keeps an idle connection
STOP_S = 5
SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")
STAMP = re.compile(r"[0-9]{1,12}")
KINDS = frozenset({"application/json", "application/x-www-form-urlencoded"})
EXIT_DOWN = 75  # EX_TEMPFAIL: start me again


class Refused(Exception):  # not an error of ours: the sender gets an answer
    """The request is not taken."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status
        self.error = error


class Events:
    """`/slack/events`. What is not signed by Slack within the last five minutes is not even read."""

    def __init__(self, app: App, signing_secret: str) -> None:
        self._app = app
        self._verifier = SignatureVerifier(signing_secret)

    async def handle(self, request: Request) -> Response:
        """One request of Slack's."""
        try:
            body = await _body(request)
            self._verify(request, body)
            _readable(request, body)
            return await run_in_threadpool(self._dispatch, request, body)
        except Refused as no:
            log.warning("request refused", status=no.status, error=no.error)
            return JSONResponse({"error": no.error}, status_code=no.status)
        except ClientDisconnect:
            return Response(status_code=400)

    def _dispatch(self, request: Request, body: bytes) -> Response:
        # in a thread: Bolt waits for the acknowledgement, and health checks must not wait with it
        try:
            return to_starlette_response(self._app.dispatch(to_bolt_request(request, body)))
        except Exception:
            reference = uuid.uuid4().hex[:10]
            log.exception("request failed", reference=reference)
            return JSONResponse({"error": "internal error", "reference": reference}, status_code=500)

    def _verify(self, request: Request, body: bytes) -> None:
        stamp = request.headers.get("x-slack-request-timestamp", "")
        signature = request.headers.get("x-slack-signature", "")
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            raise Refused(400, "the body is not utf-8") from error
        well_formed = STAMP.fullmatch(stamp) and SIGNATURE.fullmatch(signature)
        if not well_formed or not self._verifier.is_valid(text, stamp, signature):
            raise Refused(401, "invalid signature")


async def _body(request: Request) -> bytes:
    """The body, as far as it is not too large or too slow."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in KINDS:
        raise Refused(415, "unsupported content type")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
        raise Refused(413, "the body is too large")
    found = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                found += chunk
                if len(found) > MOST_BODY_BYTES:
                    raise Refused(413, "the body is too large")
    except TimeoutError as error:
        raise Refused(408, "the body came too slowly") from error
    return bytes(found)


def _readable(request: Request, body: bytes) -> None:
    """Bolt reads the body again; what it could not read is refused here."""
    text = body.decode()
    try:
        if request.headers["content-type"].startswith("application/json") or text.startswith("{"):
            found = json.loads(text)
        else:
            fields = dict(parse_qsl(text, keep_blank_values=True))
            found = json.loads(fields["payload"]) if "payload" in fields else fields
    except (ValueError, RecursionError) as error:
        raise Refused(400, "the body cannot be read") from error
    if not isinstance(found, dict) or not found:
        raise Refused(400, "the body cannot be read")


def build_http(readiness: Readiness, meter: Meter, events: Events | None) -> Starlette:
    """The routes; every other path is 404, every other method 405. `events` None: Socket Mode."""

    async def healthz(_: Request) -> Response:
        return JSONResponse({"ok": True})

    async def readyz(_: Request) -> Response:
        parts = await run_in_threadpool(readiness.parts)
        ready = all(part.ready for part in parts)
        told = {part.name: {"ready": part.ready, "why": part.why} for part in parts}
        return JSONResponse({"ready": ready, "parts": told}, status_code=200 if ready else 503)

    async def metrics(_: Request) -> Response:
        text = await run_in_threadpool(meter.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    routes = [
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
    ]
    if events is not None:
        routes.append(Route(EVENTS_PATH, events.handle, methods=["POST"]))
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return app


def address(text: str) -> tuple[str, int]:
    """`host:port` or `[v6]:port`.

    Raises: SettingsError.
    """
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\s\[\]]+):([0-9]{1,5})", text)
    if found is None or int(found[2]) > 65535:
        raise SettingsError(
            f"CLAWBACK_HTTP is {text!r}, expected host:port", hint="for example CLAWBACK_HTTP=127.0.0.1:8080"
        )
    return found[1].strip("[]"), int(found[2])


class HttpServer:
    """Serves `app` from a thread of its own. Raises: SettingsError when the address cannot be used."""

    def __init__(self, where: str, app: Starlette) -> None:
        host, port = address(where)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._listener = socket.create_server((host, port), family=family, backlog=128)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise SettingsError(
                f"cannot listen on {where!r} ({reason})", hint="set CLAWBACK_HTTP to a free address of this machine"
            ) from error
        self.port: int = self._listener.getsockname()[1]
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)
        self._thread.start()
        log.info("http listens", host=host, port=self.port)

    def run(self, ending: threading.Event, look_s: float = 0.5) -> int:
        """Serve until `ending`; the exit code of the process."""
        while not ending.wait(look_s):
            if not self._thread.is_alive():
                log.error("http server ended")
                return EXIT_DOWN
        return 0

    def close(self) -> None:
        """Finish what is being answered and stop."""
        self._server.should_exit = True
        self._thread.join(2 * STOP_S)
        self._listener.close()

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._listener]))
