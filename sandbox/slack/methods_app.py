"""auth.test, apps.connections.open, views.open, blocks.validate: the app itself."""

from __future__ import annotations

from sandbox.slack.errors import SlackError
from sandbox.slack.methods import Request, method
from sandbox.slack.records import Json


@method("auth.test", per_minute=300)
def auth_test(request: Request) -> Json:
    """Who the token belongs to."""
    workspace = request.workspace
    return {
        "url": f"https://{workspace.domain}.slack.example/",
        "team": workspace.domain,
        "user": workspace.app.name,
        "team_id": workspace.team_id,
        "user_id": workspace.app.bot_user,
        "bot_id": workspace.app.bot_id,
        "is_enterprise_install": False,
    }


@method("apps.connections.open", token="app")  # noqa: S106 - a kind of token
def connections_open(request: Request) -> Json:
    """A single-use address for one Socket Mode connection."""
    return {"url": request.tickets.new_socket_url()}


@method("views.open", per_minute=100)
def views_open(request: Request) -> Json:
    """Open a modal for whoever triggered it; the trigger works once, for 3 s."""
    view = request.oracle.judge_view(request)
    takes_files = any((block.get("element") or {}).get("type") == "file_input" for block in view["blocks"])
    if takes_files and "files:read" not in request.workspace.app.scopes:
        request.violation("missing_scope", "a file input needs files:read", "/view")
        raise SlackError("invalid_arguments", response_metadata={"messages": ["file_input needs files:read"]})
    user = request.tickets.use_trigger(request.text("trigger_id"))
    workspace = request.workspace
    with workspace.change():
        view_id = workspace.new_id("V")
        made = view | {
            "id": view_id,
            "root_view_id": view_id,
            "previous_view_id": None,
            "team_id": workspace.team_id,
            "app_id": workspace.app.app_id,
            "app_installed_team_id": workspace.team_id,
            "bot_id": workspace.app.bot_id,
            "hash": workspace.new_ts() + ".sandbox",
            "state": {"values": {}},
            "blocks": workspace.with_ids(view["blocks"]),
            "private_metadata": view.get("private_metadata", ""),
            "callback_id": view.get("callback_id", ""),
            "external_id": view.get("external_id", ""),
            "clear_on_close": view.get("clear_on_close", False),
            "notify_on_close": view.get("notify_on_close", False),
            "close": view.get("close"),
            "submit": view.get("submit"),
        }
        workspace.views[view_id] = made | {"_opened_by": user}
    return {"view": made}


@method("blocks.validate", token="none")  # noqa: S106 - public, needs no token
def blocks_validate(request: Request) -> Json:
    """Judge blocks, a message or a view; nothing is recorded as a violation."""
    given = [name for name in ("blocks", "message", "view") if request.args.get(name) is not None]
    if len(given) != 1:
        raise SlackError("invalid_arguments", response_metadata={"messages": ["give one of blocks, message, view"]})
    problems = request.oracle.validate(given[0], request.args[given[0]])
    if problems:
        raise SlackError(f"invalid_{given[0]}", errors=[problem.shown() for problem in problems])
    return {}
