"""Tickets and incidents: the id of what a change is done for, as another system names it.

>>> sound_ticket("INC-123"), sound_ticket("dry"), ticket_key("inc-123")
(True, False, 'inc-123')
"""

from __future__ import annotations

import re

from policies.model import Model

MOST_TICKET = 64
# no blank, no quote, nothing that Slack, a shell or a pattern reads as something else
_TICKET = re.compile(r"[A-Za-z0-9#][A-Za-z0-9._/#:-]*")


class Ticketed(Model):
    """What every intent may carry. ticket: id of the incident or ticket for which it is done."""

    ticket: str | None = None


def sound_ticket(text: str) -> bool:
    """Whether a text could be an id: one word, with a digit or a capital letter, so that no plain word is one."""
    return len(text) <= MOST_TICKET and _TICKET.fullmatch(text) is not None and re.search("[A-Z0-9]", text) is not None


def ticket_key(ticket: str) -> str:
    """What is the same for `INC-123` and `inc-123`: trackers do not tell them apart."""
    return ticket.casefold()
