"""What can be said behind every word that changes something, beside what it changes."""

from __future__ import annotations

from policies.tickets import Ticketed


class Asking(Ticketed):
    """emergency: somebody alone on call does without an approver or in a freeze, for the reason that they give."""

    emergency: bool = False
