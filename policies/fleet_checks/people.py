"""People of a fleet file: who is who, who is in which role, and the channel for what is asked at a terminal."""

from __future__ import annotations

import yaml

from policies.fleet import Role
from policies.fleet_checks.problems import quote
from policies.fleet_checks.table import Table
from policies.fleet_checks.values import Form

slack_user_form = Form(
    r"[UW][A-Z0-9]{1,30}",
    "role.user",
    "a Slack user id: U or W, then capitals and digits",
    "write users: [U01ABC]; a group goes under `group:`",
)
group_form = Form(
    r"S[A-Z0-9]{1,30}|@?[a-z0-9][a-z0-9._-]{0,79}",
    "role.group",
    "a Slack user group: its id (S...) or its handle",
    "write group: S0PERF or group: perf-team",
)
os_user_form = Form(
    r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", "people.os_user", "a user name of this machine", "write e.g. ana: U01ANA"
)
person_form = Form(
    r"[UW][A-Z0-9]{1,30}",
    "people.slack_user",
    "the Slack user id of that person: U or W, then capitals and digits",
    "write e.g. ana: U01ANA",
)
channel_form = Form(
    r"[CG][A-Z0-9]{1,30}",
    "channel.id",
    "the id of a Slack channel: C or G, then capitals and digits",
    "copy the id from the channel's details in Slack",
)
shared_accounts = ("root", "nobody")


def read_people(top: Table) -> dict[str, str]:
    """`people:`, user names of the operating system with the Slack user that each one is.

    A person must be the same one in Slack and at a terminal, or somebody could approve what they asked for themselves.
    """
    people: dict[str, str] = {}
    for entry in top.named("people", "person", os_user_form):
        if entry.name in shared_accounts:
            top.reader.problems.add(
                entry.path,
                "people.shared",
                f"{quote(entry.name)} is an account and no person, expected a user name that one person alone has",
                "remove it, and let people use their own accounts",
            )
        people[entry.name] = top.reader.matching(entry.path, entry.node, person_form)
    return people


def read_channel(top: Table) -> str | None:
    """`channel:`."""
    return top.matching("channel", channel_form) or None


def read_roles(top: Table) -> dict[str, Role]:
    """`roles:`."""
    roles = {}
    for entry in top.named("roles", "role"):
        table = entry.table(top.reader, ("users", "group", "groups"))
        one = table.matching("group", group_form)
        groups = ((one,) if one else ()) + table.texts("groups", group_form)
        roles[entry.name] = Role(
            name=entry.name,
            users=table.texts("users", slack_user_form),
            groups=tuple(dict.fromkeys(group.removeprefix("@") for group in groups)),
        )
        if isinstance(entry.node, yaml.MappingNode) and not table.nodes:
            table.reader.problems.add(
                entry.path, "role.empty", "the role has nobody, expected users or a group", "add users: [U01ABC]"
            )
    return roles
