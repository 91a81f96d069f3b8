"""Keeps other web sites out: loopback Host headers only, and no request that another origin's page caused."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
READING = frozenset({"GET", "HEAD", "OPTIONS"})
BROWSER_ONLY = "/_page/"
"""Below this path nothing is changed without an Origin header, which every browser sends with a POST."""


class Guard:
    """ASGI middleware. A foreign Host is a rebound name, a foreign Origin is somebody else's page: both get 403."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        why = refusal(Headers(scope=scope), scope.get("method", "GET"), scope["path"])
        if why is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": why})
        else:
            await PlainTextResponse(why + "\n", status_code=403)(scope, receive, send)


def refusal(headers: Headers, method: str, path: str) -> str | None:
    """Why a request is refused, or None."""
    host = headers.get("host", "")
    name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
    if name.lower() not in LOOPBACK_NAMES:
        return f"host {host!r}: expected a loopback name, one of {', '.join(sorted(LOOPBACK_NAMES))}"
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return f"origin {origin!r}: expected the page of this workspace, http://{host}"
    if method in READING:
        return None
    if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return "a page of another site caused this request"
    if origin is None and path.startswith(BROWSER_ONLY):
        return f"no origin header: {path} is for the page, programs use /_control/"
    return None
