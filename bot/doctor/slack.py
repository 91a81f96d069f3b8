"""Slack: the token and its scopes, clocks, how the bot hears, the channels, the people of the roles."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from slack_sdk import WebClient

from bot.doctor.check import Check, Patient, bad, failed, good, unknown
from bot.groups import UserGroups
from bot.http import address
from bot.manifest import SCOPES
from bot.slack import SlackRefused, SlackUnclear, call, call_whole, make_client
from policies.errors import OpsError, SettingsError
from policies.fleet import Fleet

TOKEN, SCOPE, CLOCK, HEARS, PEOPLE = "slack-token", "slack-scopes", "slack-clock", "slack-listening", "slack-people"
# Source: FACTS-slack 3, a signature is refused when it is 300 s off; half of that is time to act
MOST_SKEW_S = 150.0
MOST_PEOPLE = 50


def token(patient: Patient) -> Iterator[Check]:
    """The bot's token, what it may do, and Slack's clock against ours."""
    if patient.slack is None:
        yield bad(TOKEN, "doctor.no-token", "fix.slack-token")
        yield unknown(SCOPE, TOKEN)
        return
    began = time.time()
    try:
        said, headers = call_whole("auth.test", patient.slack.auth_test)
    except SlackRefused as error:
        yield bad(TOKEN, "doctor.token-refused", "fix.slack-token", error=error.error)
        yield unknown(SCOPE, TOKEN)
        return
    except SlackUnclear as error:
        yield bad(TOKEN, "doctor.slack-away", "fix.slack-away", why=error.why, url=patient.settings.api_url)
        yield unknown(SCOPE, TOKEN)
        return
    patient.notes["slack"] = "answers"
    yield good(TOKEN, "doctor.token", bot=str(said.get("user")), team=str(said.get("team")))
    yield _scopes(headers)
    yield from _clock(headers, (began + time.time()) / 2)


def listening(patient: Patient) -> Iterator[Check]:
    """Socket Mode opens, or HTTP mode has what it needs."""
    settings = patient.settings
    if settings.slack_signing_secret and not settings.slack_app_token:
        try:
            address(settings.http_address())
        except SettingsError as error:
            yield failed(HEARS, error)
            return
        yield good(HEARS, "doctor.http-mode", address=str(settings.clawback_http))
        return
    if settings.slack_app_token is None:
        yield bad(HEARS, "doctor.no-app-token", "fix.app-token")
        return
    client = make_client(settings.slack_app_token.get_secret_value(), settings.api_url)
    try:
        call("apps.connections.open", client.apps_connections_open, app_token=client.token)
    except SlackRefused as error:
        yield bad(HEARS, "doctor.socket-refused", "fix.app-token", error=error.error)
    except SlackUnclear as error:
        yield bad(HEARS, "doctor.slack-away", "fix.slack-away", why=error.why, url=settings.api_url)
    else:
        yield good(HEARS, "doctor.socket-mode")


def channels(patient: Patient) -> Iterator[Check]:
    """The bot is in the channel of the fleet file."""
    fleet = patient.fleet
    if not isinstance(fleet, Fleet):
        yield unknown("slack-channel", "fleet-file")
        return
    if fleet.channel is None:
        yield good("slack-channel", "doctor.no-channel")
        return
    if patient.slack is None or "slack" not in patient.notes:
        yield unknown("slack-channel", TOKEN)
        return
    try:
        asked = call("conversations.info", patient.slack.conversations_info, channel=fleet.channel)
    except (SlackRefused, SlackUnclear) as error:
        yield bad("slack-channel", "doctor.channel-unreadable", "fix.channel", channel=fleet.channel, why=_why(error))
        return
    yield _channel(fleet.channel, asked.get("channel") or {})


def people(patient: Patient) -> Iterator[Check]:
    """Everybody whom a role names is there and active, and groups can be read."""
    fleet = patient.fleet
    if not isinstance(fleet, Fleet):
        yield unknown(PEOPLE, "fleet-file")
        return
    if patient.slack is None or "slack" not in patient.notes:
        yield unknown(PEOPLE, TOKEN)
        return
    users = dict.fromkeys([*(u for role in fleet.roles.values() for u in role.users), *fleet.people.values()])
    groups = dict.fromkeys(group for role in fleet.roles.values() for group in role.groups)
    problems = [why for user in list(users)[:MOST_PEOPLE] if (why := _person(patient.slack, user))]
    problems += [why for group in groups if (why := _group(patient.slack, group))]
    if problems:
        yield bad(PEOPLE, "doctor.people-missing", "fix.people", who="; ".join(problems))
    else:
        left = max(0, len(users) - MOST_PEOPLE)
        yield good(PEOPLE, "doctor.people", users=len(users) - left, groups=len(groups), left=left)


def _scopes(headers: dict[str, str]) -> Check:
    said = headers.get("x-oauth-scopes")
    if said is None:
        return bad(SCOPE, "doctor.scopes-untold", "fix.scopes-untold")
    granted = {scope.strip() for scope in said.split(",") if scope.strip()}
    missing = [f"{scope} ({what})" for scope, what in SCOPES.items() if scope not in granted]
    if missing:
        return bad(SCOPE, "doctor.scopes-missing", "fix.scopes", missing=", ".join(missing))
    more = sorted(granted - set(SCOPES))
    return good(SCOPE, "doctor.scopes", n=len(SCOPES), more=", ".join(more) or "none")


def _clock(headers: dict[str, str], at: float) -> Iterator[Check]:
    try:
        theirs = parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return
    skew_s = at - theirs
    if abs(skew_s) > MOST_SKEW_S:
        yield bad(CLOCK, "doctor.slack-clock", "fix.clock-here", skew_s=abs(skew_s), most_s=MOST_SKEW_S)
    else:
        yield good(CLOCK, "doctor.slack-clock-fits", most_s=MOST_SKEW_S)


def _channel(name: str, channel: dict[str, Any]) -> Check:
    if channel.get("is_archived"):
        return bad("slack-channel", "doctor.channel-archived", "fix.channel-archived", channel=name)
    if not channel.get("is_member"):
        return bad("slack-channel", "doctor.channel-not-in", "fix.channel", channel=name)
    if channel.get("is_ext_shared") or channel.get("is_org_shared"):
        return bad("slack-channel", "doctor.channel-shared", "fix.channel-shared", channel=name)
    return good("slack-channel", "doctor.channel", channel=str(channel.get("name") or name))


def _person(client: WebClient, user: str) -> str:
    """Why somebody cannot ask or approve; empty when they can."""
    try:
        found = call("users.info", client.users_info, user=user).get("user") or {}
    except (SlackRefused, SlackUnclear) as error:
        return f"{user}: {_why(error)}"
    if found.get("deleted"):
        return f"{user}: deactivated"
    guest = found.get("is_restricted") or found.get("is_ultra_restricted")
    return f"{user}: a guest" if guest else f"{user}: a bot" if found.get("is_bot") else ""


def _group(client: WebClient, group: str) -> str:
    try:
        group_id = UserGroups(client).id_of(group)
        if group_id is None:
            return f"{group}: there is no such group"
        members = call("usergroups.users.list", client.usergroups_users_list, usergroup=group_id).get("users", [])
    except (SlackRefused, SlackUnclear) as error:
        return f"{group}: {_why(error)}"
    return "" if members else f"{group}: nobody is in it"


def _why(error: OpsError) -> str:
    return error.error if isinstance(error, SlackRefused) else error.message
