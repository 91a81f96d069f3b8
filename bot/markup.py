"""Text that is Slack markup already. Everything else is escaped when it is put into a sentence."""

from __future__ import annotations

import re

from bot.escape import mrkdwn

_USER = re.compile(r"[UW][A-Z0-9]{2,20}")
_WRAPPED = re.compile(r"^<(?:@|!subteam\^)([^<>|]*)>$")
_WEB = re.compile(r"https?://[^\s<>|\"]{1,2000}")
_GROUP = re.compile(r"S[A-Z0-9]{2,20}")


class Markup(str):
    """mrkdwn that was built here: a date token, a mention, a finished sentence."""

    __slots__ = ()


def mention(who: str) -> Markup:
    """`<@U..>` or `<!subteam^S..>` for an id of Slack's, bare or in its brackets; any other name as escaped text."""
    who = _WRAPPED.sub(r"\1", who)
    if _USER.fullmatch(who):
        return Markup(f"<@{who}>")
    if _GROUP.fullmatch(who):
        return Markup(f"<!subteam^{who}>")
    return Markup(mrkdwn(who))


def is_group_id(text: str) -> bool:
    """An id of a user group, not a handle: handles are lower-case."""
    return _GROUP.fullmatch(text) is not None


def joined(parts: list[Markup] | tuple[Markup, ...], by: str = " · ") -> Markup:
    """Several pieces of markup as one."""
    return Markup(by.join(parts))


def link(url: str | None, text: str) -> Markup:
    """Text that leads to an address, or the text alone where there is none or it is no address of the web."""
    shown = mrkdwn(text)
    return Markup(f"<{url}|{shown}>" if url is not None and _WEB.fullmatch(url) else shown)
