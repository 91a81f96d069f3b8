"""Whether something can be shown in a channel: the bot is in it, it is not archived, and nobody else reads along."""

from __future__ import annotations

from typing import Literal

import structlog

from bot.answering import Answerer
from bot.slack import SlackRefused, SlackUnclear

log = structlog.get_logger(__name__)

Trouble = Literal["not-here", "archived", "shared"]


def trouble(answerer: Answerer, channel: str) -> Trouble | None:
    """Why nothing can be shown there; None when it can, or when Slack does not say."""
    try:
        found = answerer.channel(channel)
    except SlackRefused as error:
        return "not-here" if error.error in {"channel_not_found", "not_in_channel"} else None
    except SlackUnclear as error:
        log.warning("channel not checked", channel=channel, error=error.message)
        return None
    if found.get("is_archived"):
        return "archived"
    if found.get("is_ext_shared") or found.get("is_org_shared"):
        return "shared"
    if not found.get("is_im") and found.get("is_member") is False:
        return "not-here"
    return None
