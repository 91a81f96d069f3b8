"""Who sits at the terminal: the user that the operating system knows, as the person that the fleet file maps it to.

The same person is the same Actor in Slack and here, so that four eyes stay four.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

import redis

from bot.identity import Identity
from bot.settings import Settings
from bot.slack import SlackRefused, SlackUnclear, call, is_loopback, make_client
from policies.errors import SettingsError
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Actor
from workers import world

SLACK_S = 3  # a terminal does not wait longer for Slack


@dataclass(frozen=True, slots=True)
class Person:
    """The Actor, and whether Slack could be asked about them; without it roles by user group do not count."""

    actor: Actor
    checked: bool


def os_user() -> str:
    """The user of this process by its number; what the environment says of it has no meaning."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid-{number}"


def may_pose(settings: Settings, client: redis.Redis) -> bool:
    """Whether `--as` may be used: everything that could be touched is a rehearsal.

    The Slack is on this machine, the store is the embedded one, and the bot that works on it listens to that Slack.

    Raises: StoreUnavailable.
    """
    if settings.redis_url is not None or not is_loopback(settings.api_url):
        return False
    told = world.remembered(client)
    return told is not None and is_loopback(told)


def identify(user: str, fleet: Fleet, settings: Settings, *, deciding: bool, roles: bool = True) -> Person | Finding:
    """The person that `user` is, or a finding of effect `refuse`.

    Slack is asked as for a click where it can be reached. Where it cannot, the roles are those of the fleet file
    that list the person by id.
    """
    slack_id = fleet.people.get(user)
    if slack_id is None:
        return Finding(code="identity.not-mapped", effect="refuse", values={"user": user})
    if settings.slack_bot_token is not None:
        client = make_client(settings.slack_bot_token.get_secret_value(), settings.api_url, timeout_s=SLACK_S)
        try:
            call("auth.test", client.auth_test)
        except (SlackRefused, SlackUnclear):
            pass  # Slack cannot say anything about anybody now
        else:
            found = Identity(client, fleet).identify(slack_id, "", deciding=deciding, roles=roles)
            if isinstance(found, Finding):
                return found
            return Person(found.model_copy(update={"name": user, "source": "terminal"}), checked=True)
    held = tuple(role.name for role in fleet.roles.values() if slack_id in role.users)
    return Person(Actor(id=slack_id, name=user, source="terminal", roles=held), checked=False)


def posed(name: str, fleet: Fleet) -> str:
    """The user name of the person that `--as` names, by user name or Slack id.

    Raises: SettingsError.
    """
    if name in fleet.people:
        return name
    for user, slack_id in fleet.people.items():
        if slack_id == name:
            return user
    known = ", ".join(fleet.people) or "nobody"
    raise SettingsError(f"`{name}` is not among the people of the fleet file", hint=f"known: {known}")
