"""SlackSandbox: the stand-in workspace behind a loopback port, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from typing import Self

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from sandbox.page.guard import Guard
from sandbox.page.hints import PageHints
from sandbox.page.routes import Page
from sandbox.slack.admin import Admin
from sandbox.slack.control import control_routes
from sandbox.slack.cut import CuttableProtocol
from sandbox.slack.delivery import Delivery
from sandbox.slack.faults import FaultMenu
from sandbox.slack.filedoors import FileDoors
from sandbox.slack.httpmode import HttpHub
from sandbox.slack.oracle import Oracle
from sandbox.slack.people import People
from sandbox.slack.responses import Tickets
from sandbox.slack.socketmode import SocketHub
from sandbox.slack.webapi import WebApi
from sandbox.slack.workspace import Workspace

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class SlackSandbox:
    """A local workspace for one app. Use as a context manager, or `start()` and `stop()`.

    `reference` is a folder with `method-ref/` and `block-kit/`; without it the checks that need that data are off.
    `request_url`: envelopes go there as requests signed with `signing_secret` (HTTP mode) instead of over sockets;
    "" when `http.request_url` is set later, before the first envelope.
    `page_hints` are the words that the page at `/` completes in its composer.
    """

    def __init__(
        self,
        *,
        reference: Path | None = None,
        ping_interval_s: float = 10.0,
        request_url: str | None = None,
        signing_secret: str = "",
        page_hints: PageHints | None = None,
    ) -> None:
        self.workspace = Workspace()
        self.faults = FaultMenu()
        self.tickets = Tickets(self.workspace)
        self.oracle = Oracle(self.workspace, reference)
        self.sockets = SocketHub(self.workspace, self.tickets, self.faults)
        self.api = WebApi(self.workspace, self.oracle, self.tickets, self.faults)
        self.http = HttpHub(self.workspace, self.faults, request_url or "", signing_secret)
        delivery: Delivery = self.sockets if request_url is None else self.http
        self.people = People(self.workspace, delivery, self.tickets, self.oracle)
        self.admin = Admin(self.people, delivery)
        self.page = Page(self.workspace, self.sockets, self.http, self.faults, self.api, page_hints or {})
        self._ping_interval_s = ping_interval_s
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        """What a client takes as `base_url`."""
        return self.tickets.origin + "/api/"

    @property
    def page_url(self) -> str:
        """Where a person opens the workspace in a browser."""
        return self.tickets.origin + "/"

    @property
    def bot_token(self) -> str:
        """The app's `xoxb-` token."""
        return self.workspace.app.bot_token

    @property
    def app_token(self) -> str:
        """The app's `xapp-` token."""
        return self.workspace.app.app_token

    def start(self, host: str = "127.0.0.1", port: int = 0) -> Self:
        """Listen. Raises: ValueError for anything but a loopback address; OSError when the port is taken."""
        if host not in LOOPBACK:
            raise ValueError(f"host {host!r}: only a loopback address is allowed")
        listener = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128
        )
        where = f"[{host}]" if ":" in host else host
        self.tickets.origin = self.workspace.files.origin = f"http://{where}:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            self.asgi(),
            http=CuttableProtocol,
            ws="websockets-sansio",
            ws_ping_interval=self._ping_interval_s,
            proxy_headers=False,
            lifespan="off",
            log_level="error",
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        ready = threading.Event()

        def run() -> None:
            async def main() -> None:
                self.sockets.loop = self.http.loop = asyncio.get_running_loop()
                self.page.feed.open()
                ready.set()
                await server.serve(sockets=[listener])

            asyncio.run(main())

        self._server = server
        self._thread = threading.Thread(target=run, name="slack-sandbox", daemon=True)
        self._thread.start()
        ready.wait(10)
        return self

    def asgi(self) -> ASGIApp:
        """The routes, without a port."""
        control = control_routes(self.people, self.admin, self.faults, self.sockets, self.api)
        app = Starlette(
            routes=[
                Route("/api/{method}", self.api.call, methods=["GET", "POST"]),
                Route("/commands/{team}/{number}/{token}", self.api.response, methods=["POST"]),
                Route("/actions/{team}/{number}/{token}", self.api.response, methods=["POST"]),
                WebSocketRoute("/link/", self.sockets.serve),
                *FileDoors(self.api).routes(),
                *control,
                *self.page.routes(control),
            ]
        )
        return Guard(app)

    def stop(self) -> None:
        """Close every socket and the port; the state stays, and `start(port=...)` brings it back."""
        if self._server is None or self._thread is None:
            return
        self.page.feed.close()
        self._server.should_exit = True
        self._thread.join(15)
        self.sockets.went_down()
        self.http.went_down()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        return self.start() if self._thread is None else self

    def __exit__(self, *_: object) -> None:
        self.stop()
