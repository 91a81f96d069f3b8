"""The HTTP face: /api/METHOD, response_urls and the Socket Mode address."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from sandbox.slack import methods_app, methods_chat, methods_files, methods_read  # noqa: F401 - they register their methods
from sandbox.slack.cut import Cut
from sandbox.slack.errors import SlackError
from sandbox.slack.faults import Fault, FaultMenu
from sandbox.slack.methods import METHODS, Method, Request
from sandbox.slack.oracle import JSON_ARGUMENTS, Oracle
from sandbox.slack.records import Call, Json
from sandbox.slack.responses import Tickets, respond
from sandbox.slack.workspace import Workspace

UNKNOWN = frozenset({"invalid_auth", "not_authed", "token_revoked", "account_inactive"})


class WebApi:
    """Authenticates, judges, applies faults and rate limits, then runs the method."""

    def __init__(self, workspace: Workspace, oracle: Oracle, tickets: Tickets, faults: FaultMenu) -> None:
        self.workspace = workspace
        self.oracle = oracle
        self.tickets = tickets
        self.faults = faults
        self.rate_limits = False
        self._recent: dict[str, deque[float]] = defaultdict(deque)
        self._closed_until: dict[str, float] = {}

    async def call(self, http: HttpRequest) -> Response:
        """POST or GET /api/METHOD."""
        name = http.path_params["method"]
        args, token, broken = await _arguments(http)
        call = Call(name, args, time.time())
        self._record(call)
        fault = self.faults.take(name, str(args.get("channel", "")))
        if fault is not None:
            call.fault = fault.kind
            early = await self._before(fault, call, name)
            if early is not None:
                return early
        if (wait_s := self._too_fast(name, call)) is not None:
            return self._limited(name, call, wait_s)
        answer = await run_in_threadpool(self._answer, name, args, token, broken, fault)
        return await self._after(fault, call, answer, JSONResponse(answer, headers=self._headers(name, answer)))

    def _headers(self, name: str, answer: Json) -> dict[str, str]:
        """What the platform says beside an answer to a bot token that it knows."""
        known = name in METHODS and METHODS[name].token == "bot" and answer.get("error") not in UNKNOWN  # noqa: S105
        return {"X-OAuth-Scopes": ",".join(sorted(self.workspace.app.scopes))} if known else {}

    async def response(self, http: HttpRequest) -> Response:
        """POST to a response_url."""
        try:
            body: Any = json.loads(await http.body())
        except ValueError:
            body = None
        call = Call("response_url", body if isinstance(body, dict) else {}, time.time())
        gone = {"used_url", "expired_url", "no_such_url"}
        return await self.answered(
            call,
            lambda: self._respond(http.path_params["token"], body, call),
            lambda answer: JSONResponse(answer, status_code=404 if answer.get("error") in gone else 200),
        )

    async def answered(self, call: Call, work: Callable[[], Json], shown: Callable[[Json], Response]) -> Response:
        """What an address beside the methods answers: recorded, and with the faults of `call.method`."""
        self._record(call)
        fault = self.faults.take(call.method)
        if fault is not None:
            call.fault = fault.kind
            early = await self._before(fault, call, call.method)
            if early is not None:
                return early
        answer = await run_in_threadpool(work)
        return await self._after(fault, call, answer, shown(answer))

    def _respond(self, token: str, body: Any, call: Call) -> Json:
        try:
            if not isinstance(body, dict):
                raise SlackError("invalid_payload")
            respond(self.workspace, self.oracle, self.tickets.use_response(token), body, call)
        except SlackError as no:
            return {"ok": False, "error": no.error, **no.extra}
        return {"ok": True}

    # one call

    def _answer(self, name: str, args: Json, token: str, broken: str, fault: Fault | None) -> Json:
        with self.workspace.lock:
            try:
                found = self._method(name)
                self._authenticate(found, token)
                if fault is not None and fault.kind == "error":
                    raise SlackError(fault.error)
                if broken:
                    self.oracle.note(name, "invalid_json", f"argument {broken!r} is not JSON", f"/{broken}")
                    raise SlackError("invalid_blocks_format" if broken == "blocks" else "invalid_json")
                self.oracle.judge_arguments(name, args)
                kind = fault.kind if fault is not None else ""
                request = Request(name, args, self.workspace, self.oracle, self.tickets, kind)
                if found.scope:
                    request.need_scope(found.scope)
                return {"ok": True, **found.handler(request)}
            except SlackError as no:
                return {"ok": False, "error": no.error, **no.extra}

    def _method(self, name: str) -> Method:
        found = METHODS.get(name)
        if found is None:
            known = self.oracle.knows(name)
            self.oracle.note(name, "unknown_method", f"{name} " + ("is not played here" if known else "does not exist"))
            raise SlackError("unknown_method", req_method=name)
        return found

    def _authenticate(self, found: Method, token: str) -> None:
        app = self.workspace.app
        if found.token == "none":  # noqa: S105 - a kind of token
            return
        if not token:
            raise SlackError("not_authed")
        if token not in {app.bot_token, app.app_token}:
            raise SlackError("invalid_auth")
        if app.token_error:
            raise SlackError(app.token_error)
        if (token == app.app_token) != (found.token == "app"):  # noqa: S105 - a kind of token
            raise SlackError("not_allowed_token_type")

    # faults and limits

    async def _before(self, fault: Fault, call: Call, name: str) -> Response | None:
        match fault.kind:
            case "delay":
                await asyncio.sleep(fault.delay_s)
            case "ratelimited":
                return self._limited(name, call, fault.retry_after_s)
            case "server_error":
                self._finish(call, fault.status, error="http_error")
                return PlainTextResponse("upstream connect error", status_code=fault.status)
            case "reset_before_commit":
                self._finish(call, 0, error="reset")
                return Cut()
        return None

    async def _after(self, fault: Fault | None, call: Call, answer: Json, response: Response) -> Response:
        if fault is not None and fault.kind == "reset_after_commit":
            self._finish(call, 0, error="reset")
            return Cut()
        if fault is not None and fault.kind == "error_after_commit":
            self._finish(call, fault.status, error="http_error")
            return PlainTextResponse("upstream request timeout", status_code=fault.status)
        self._finish(call, response.status_code, ok=bool(answer["ok"]), error=answer.get("error"))
        return response

    def _too_fast(self, name: str, call: Call) -> int | None:
        """Seconds to wait when a limit is hit; calling during a Retry-After is a violation."""
        now = time.monotonic()
        with self.workspace.lock:
            until = self._closed_until.get(f"{name} {call.args.get('channel')}", 0.0)
            if now < until:
                self.oracle.note(name, "ignored_retry_after", f"{name} called {until - now:.1f} s too early")
                return int(until - now) + 1
            if not self.rate_limits or name not in METHODS:
                return None
            key = f"{name} {call.args.get('channel')}" if name == "chat.postMessage" else name
            recent = self._recent[key]
            while recent and recent[0] < now - 60:
                recent.popleft()
            if len(recent) >= METHODS[name].per_minute:
                return int(recent[0] + 60 - now) + 1
            recent.append(now)
            return None

    def _limited(self, name: str, call: Call, wait_s: int) -> Response:
        with self.workspace.lock:
            # a clock's rounding is not the app's fault
            key = f"{name} {call.args.get('channel')}"
            self._closed_until[key] = max(self._closed_until.get(key, 0.0), time.monotonic() + wait_s - 0.1)
        self._finish(call, 429, error="ratelimited")
        body = {"ok": False, "error": "ratelimited"}
        return JSONResponse(body, status_code=429, headers={"Retry-After": str(wait_s)})

    def _record(self, call: Call) -> None:
        with self.workspace.change():
            self.workspace.calls.append(call)

    def _finish(self, call: Call, status: int, *, ok: bool = False, error: str | None = None) -> None:
        with self.workspace.change():
            call.status, call.ok, call.error = status, ok, error


async def _arguments(http: HttpRequest) -> tuple[Json, str, str]:
    """Arguments (query, form or JSON), the token, and the name of an argument that is not JSON."""
    args: Json = dict(http.query_params)
    body = await http.body()
    kind = http.headers.get("content-type", "")
    broken = ""
    if kind.startswith("application/json"):
        try:
            decoded = json.loads(body or b"{}")
        except ValueError:
            decoded, broken = {}, "body"
        args |= decoded if isinstance(decoded, dict) else {}
    elif body:
        args |= dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
    header = http.headers.get("authorization", "")
    token = header.removeprefix("Bearer ").strip() or str(args.get("token", ""))
    args.pop("token", None)
    for name in JSON_ARGUMENTS & set(args):
        if isinstance(args[name], str) and args[name]:
            try:
                args[name] = json.loads(args[name])
            except ValueError:
                broken = name
    return args, token, broken
