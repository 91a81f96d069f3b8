"""The control API over HTTP: what People and the fault menu offer, as JSON under /_control/."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox.slack.admin import Admin
from sandbox.slack.errors import PersonError
from sandbox.slack.faults import Fault, FaultMenu
from sandbox.slack.forms import NamedBytes
from sandbox.slack.people import People
from sandbox.slack.records import Envelope, Json
from sandbox.slack.socketmode import SocketHub
from sandbox.slack.webapi import WebApi

Verb = Callable[[Json], Any]


def plain(value: Any) -> Any:
    """A record as JSON."""
    if isinstance(value, Envelope):
        names = [f.name for f in dataclasses.fields(value) if f.name != "settled"]
        return {name: plain(getattr(value, name)) for name in names}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def control_routes(people: People, admin: Admin, faults: FaultMenu, sockets: SocketHub, api: WebApi) -> list[Route]:
    """One route a verb. A body is the keyword arguments of the verb; 400 says what was wrong with them."""
    workspace = people.workspace

    def users(body: Json) -> Any:
        return workspace.add_user(**body)

    def wait(body: Json) -> Any:
        """Wait until a channel's transcript holds a text."""
        found = people.wait_for(
            lambda: body["text"] in json.dumps(people.transcript(body["channel"]), ensure_ascii=False),
            float(body.get("timeout_s", 10)),
        )
        return {"found": found}

    def rate_limits(body: Json) -> Any:
        api.rate_limits = bool(body.get("on", True))
        return {"on": api.rate_limits}

    posts: dict[str, Verb] = {
        "users": users,
        "users/set": lambda body: admin.set_user(**body),
        "groups": lambda body: workspace.add_group(**body),
        "channels": lambda body: workspace.add_channel(**body),
        "channels/set": lambda body: admin.set_channel(**body),
        "groups/set": lambda body: admin.set_group(**body),
        "command": lambda body: people.command(**body),
        "say": lambda body: people.say(**body),
        "mention": lambda body: people.mention(**body),
        "click": lambda body: people.click(**body),
        "share": lambda body: people.share(**body | {"files": _decoded(body["files"])}),
        "upload": lambda body: [
            {"id": f.id, "name": f.name} for f in people.upload(body["user"], _decoded(body["files"]))
        ],
        "submit": lambda body: people.submit_view(**body),
        "close": lambda body: people.close_view(**body),
        "edit": lambda body: people.edit_message_behind_the_bot(**body),
        "delete": lambda body: people.delete_message(**body),
        "faults": lambda body: faults.add(Fault(**body)),
        "faults/clear": lambda _: faults.clear(),
        "disconnect": lambda body: sockets.disconnect(**body),
        "rate_limits": rate_limits,
        "wait": wait,
    }
    gets: dict[str, Verb] = {
        "users": lambda _: list(workspace.users.values()),
        "groups": lambda _: list(workspace.groups.values()),
        "channels": lambda _: list(workspace.channels.values()),
        "transcript": lambda query: people.transcript(**query),
        "calls": lambda _: people.calls,
        "envelopes": lambda _: people.envelopes,
        "violations": lambda _: list(workspace.violations),
        "views": lambda _: dict(workspace.views),
        "files": lambda _: [workspace.files.shown(f.id, workspace.channels.values()) for f in workspace.files.all()],
        "faults": lambda _: faults.listed(),
        "state": lambda _: {"sockets": sockets.connected, "team": workspace.team_id, "bot": workspace.app.bot_user},
    }

    return [
        *(Route(f"/_control/{name}", _endpoint(verb), methods=["POST"]) for name, verb in posts.items()),
        *(Route(f"/_control/{name}", _endpoint(verb), methods=["GET"]) for name, verb in gets.items()),
    ]


def _decoded(files: list[Json]) -> list[NamedBytes]:
    """`[{"name": ..., "base64": ...}]` as names and bytes."""
    return [(str(file["name"]), base64.b64decode(file["base64"], validate=True)) for file in files]


def _endpoint(verb: Verb) -> Callable[[HttpRequest], Any]:
    async def endpoint(http: HttpRequest) -> Response:
        try:
            body = dict(http.query_params) if http.method == "GET" else json.loads(await http.body() or b"{}")
            return JSONResponse(plain(await run_in_threadpool(verb, body)))
        except (PersonError, TypeError, ValueError, KeyError) as wrong:
            return JSONResponse({"error": str(wrong)}, status_code=400)

    return endpoint
