"""A change that words blame: `C-12 broke it`, `the last change did it`. Only words that do blame one name it.

What denies, asks, or says that a change made something better claims nothing about what went wrong.
"""

from __future__ import annotations

import re

LAST = "last"  # the newest change before the one that it is said of

_ID = re.compile(r"\bC-[1-9][0-9]*\b", re.IGNORECASE)
_LAST = re.compile(r"\b(last|latest|previous) (change|deploy|deployment|rollout|restart|release|version|knob)\b")
_NOT_BLAMED = re.compile(
    r"\?|n't\b|\b(no|not|never|nothing|neither|nor|without|unlikely|cannot|isnt|wasnt|didnt|doesnt|unrelated|innocent"
    r"|fix|fixes|fixed|solves?|solved|cured?|helps?|helped|improves?|improved)\b"
)


def change_id(text: str) -> str | None:
    """The id of a change where the whole text is one: `c-12` is `C-12`."""
    return text.upper() if _ID.fullmatch(text) else None


def change_blamed(text: str) -> str | None:
    """The change that is blamed, `LAST` for the last one, None where none or more than one is."""
    words = text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    if _NOT_BLAMED.search(words):
        return None
    named = {found.upper() for found in _ID.findall(text)}
    if named:
        return named.pop() if len(named) == 1 else None
    return LAST if _LAST.search(words) else None
