"""Receipts: what was read, and that it is recorded."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "asked.receipt": "{change} asked: reading hosts; the plan follows here",
    "asked.read-as": "I read this as {normalised:code}",
    "asked.not-here": (
        "no plan can be shown in this channel because the bot is not in it; nothing was started:"
        " invite the bot here and ask again"
    ),
    "asked.shared-channel": (
        "this channel is shared with another organisation, so nothing is planned here; nothing was started:"
        " ask in a channel of this workspace"
    ),
    "asked.archived": "this channel is archived, so no plan can be shown here; nothing was started: ask in another one",
    "asked.not-recorded": "nothing was recorded: {why}; try again in a minute",
    "asked.not-sure": (
        "it is not known whether this was recorded: {why}; look at the card, or ask `status`, before you try again"
    ),
}
