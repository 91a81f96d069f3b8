"""What the Slack app is: its commands, events and scopes, and the manifest that makes one like it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from pydantic import JsonValue

from policies.errors import SettingsError

COMMANDS: Mapping[str, tuple[str, str]] = {
    "/knob": ("See, set, restore or revert a performance knob", "restore TARGET_CTAS=512"),
    "/deploy": ("Restart a service, or bring another version", "restart decode"),
    "/cause": ("State a cause, ask why, or dispute a statement", 'why C-12 | "cold start" of C-12'),
}
MENTION = "app_mention"
PEOPLE = ("subteam_members_changed", "subteam_updated", "user_change")
EVENTS = (MENTION, *PEOPLE)
# scope -> what it is for. A test compares them with the methods that are called.
SCOPES: Mapping[str, str] = {
    "commands": "the slash commands",
    "chat:write": "cards, lines and answers",
    "app_mentions:read": "words to the bot inside a thread",
    "channels:history": "finding its own messages again in public channels",
    "groups:history": "finding its own messages again in private channels",
    "channels:read": "whether a public channel is shared with others",
    "groups:read": "whether a private channel is shared with others",
    "files:write": "pictures of evidence",
    "files:read": "result files that people hand over, and whether a picture came to be shown",
    "users:read": "who asks and who approves",
    "usergroups:read": "who is in a group that a role names",
}
PATH = "/slack/events"
DESCRIPTION = "Plans, approvals and health-gated restarts for performance knobs and deploys"


def manifest(name: str, url: str | None) -> dict[str, JsonValue]:
    """The app's manifest. url: where Slack's requests come in, in HTTP mode; None: Socket Mode.

    Raises: SettingsError when the address is none that Slack would call.
    """
    address = None if url is None else request_url(url)
    commands: list[JsonValue] = [_command(word, address) for word in COMMANDS]
    events: dict[str, JsonValue] = {"bot_events": list(EVENTS)}
    interactivity: dict[str, JsonValue] = {"is_enabled": True}
    if address is not None:
        events["request_url"] = interactivity["request_url"] = address
    return {
        "_metadata": {"major_version": 1, "minor_version": 1},
        "display_information": {"name": name, "description": DESCRIPTION},
        "features": {"bot_user": {"display_name": name, "always_online": True}, "slash_commands": commands},
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": events,
            "interactivity": interactivity,
            "org_deploy_enabled": False,
            "socket_mode_enabled": address is None,
            "token_rotation_enabled": False,
        },
    }


def request_url(url: str) -> str:
    """The address for Slack's requests: https, and with our path where it names none.

    Raises: SettingsError.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme != "https" or not host or parts.query or parts.fragment or parts.username:
        message = f"{url[:200]!r} is not where Slack can send requests, expected https://HOST[:PORT][/PATH]"
        raise SettingsError(message, hint="give the address at which your proxy passes requests on to CLAWBACK_HTTP")
    return f"https://{parts.netloc}{parts.path if parts.path.strip('/') else PATH}"


def _command(word: str, address: str | None) -> dict[str, JsonValue]:
    about, usage = COMMANDS[word]
    made: dict[str, JsonValue] = {"command": word, "description": about, "usage_hint": usage, "should_escape": True}
    return made if address is None else {**made, "url": address}
