"""The routes of the page: its files, the stream of what happens, completion data, and what its reader does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from sandbox.page.feed import Feed
from sandbox.page.hints import PageHints, hints
from sandbox.page.reader import Blame, Reader, Sources
from sandbox.slack.faults import FaultMenu
from sandbox.slack.httpmode import HttpHub
from sandbox.slack.socketmode import SocketHub
from sandbox.slack.webapi import WebApi
from sandbox.slack.workspace import Workspace

STATIC = Path(__file__).with_name("static")
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
SILENCE_S = 1.0
"""A look at least this often: faults are switched without a change of the workspace."""
RETRY_MS = 400


class Page:
    """The page of one sandbox. `feed` is to be opened in the server's loop."""

    def __init__(
        self,
        workspace: Workspace,
        sockets: SocketHub,
        http: HttpHub,
        faults: FaultMenu,
        api: WebApi,
        words: PageHints,
    ) -> None:
        blame = Blame(workspace)
        self._sources = Sources(workspace, sockets, http, faults, api, blame)
        self._words = words
        self.feed = Feed(workspace, blame.note)

    def routes(self, verbs: Sequence[Route]) -> list[Route]:
        """All routes; `verbs` are those of the control API, offered to the page below /_page/do/."""
        doing = [route for route in verbs if "POST" in (route.methods or ())]
        return [
            Route("/", self._index),
            Route("/_page/static/{name}", self._file),
            Route("/_page/hints", self._hints),
            Route("/_page/events", self._events),
            *(
                Route(route.path.replace("/_control/", "/_page/do/"), route.endpoint, methods=["POST"])
                for route in doing
            ),
        ]

    async def _index(self, _: Request) -> Response:
        return _static("index.html")

    async def _file(self, http: Request) -> Response:
        return _static(http.path_params["name"])

    async def _hints(self, _: Request) -> Response:
        return JSONResponse(hints(self._sources.workspace, self._words), headers=HEADERS)

    async def _events(self, http: Request) -> Response:
        reader = Reader(self._sources, http.query_params.get("as", ""))
        return StreamingResponse(self._stream(reader), media_type="text/event-stream", headers=HEADERS)

    async def _stream(self, reader: Reader) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n\n"
        while not self.feed.over:
            heard = self.feed.rings
            news = await run_in_threadpool(reader.news)
            yield f"data: {json.dumps(news)}\n\n" if news else ": nothing new\n\n"
            await self.feed.wait(heard, SILENCE_S)


def _static(name: str) -> Response:
    """A file of the page, or 404. Only names that lie in the folder itself are looked up."""
    known = {file.name: file for file in STATIC.iterdir() if file.suffix in KINDS}
    if name not in known:
        return PlainTextResponse(f"no file {name!r}\n", status_code=404, headers=HEADERS)
    kind = KINDS[known[name].suffix]
    return Response(known[name].read_bytes(), media_type=kind, headers=HEADERS)
