"""Who somebody is, and why a person is not accepted."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "identity.not-mapped": (
        "the user {user:code} of this machine is nobody in Slack as far as the fleet file says, so nothing was done:"
        " add the user to `people` there, with their Slack user id"
    ),
    "identity.unreadable": (
        "it could not be checked with Slack who {actor:who} is ({why}), so nothing was done; try again"
    ),
    "identity.deleted": "the account {actor:who} is deactivated, so nothing was done",
    "identity.bot": "{actor:who} is a bot, expected a person; nothing was done",
    "identity.guest": "{actor:who} is a guest of this workspace, expected a full member; nothing was done",
    "identity.stranger": "{actor:who} belongs to another workspace, expected a member of this one; nothing was done",
    "identity.team-unknown": (
        "it could not be checked with Slack which workspace this is ({why}), so nobody can be told from a stranger; try"
        " again"
    ),
    "identity.group-unreadable": (
        "the user group {group:code} of the role {role:code} could not be read ({why}), so it is not known who is in"
        " it; nothing was done: try again, or list the users in the fleet file"
    ),
    "identity.group-unknown": (
        "the role {role:code} names the user group {group:code}, which this workspace does not have; nothing was done:"
        " correct the fleet file"
    ),
}
