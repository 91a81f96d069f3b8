"""What is wrong with a thread that was compared with the ledger."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "thread.edited-line": (
        "the line of entry {seq} in the thread of {change} was edited ({by:or=nobody} is named as its editor): "
        "it says {found:code}, the ledger says {expected:code}"
    ),
    "thread.edited-card": (
        "the card of {change} was edited ({by:or=nobody} is named as its editor): it says {found:code}, "
        "it should say {expected:code}"
    ),
    "thread.deleted-line": "the line of entry {seq} is missing in the thread of {change}: it said {text:code}",
    "thread.deleted-card": "the card of {change} is missing",
    "thread.added-message": (
        "a message of {at:day} stands there in the bot's name ({by}), and no entry is behind it: {text:code}"
    ),
    "thread.unknown-entry": (
        "a message of {at:day} says that it draws entry {seq} of {change}, and the ledger has no such entry: "
        "{text:code}"
    ),
    "thread.doubled": "a second message of {at:day} draws the same of {change}: {text:code}",
    "thread.moved-line": "a message about {change} stands where it does not belong, posted {at:day}",
    "thread.gone": "the thread of {change} is gone: its first message was deleted",
    "thread.unreadable": "the thread of {change} could not be read, so nothing is known about it: {why}",
    "thread.unreadable-channel": "the channel {channel} could not be read, so nothing is known about it: {why}",
    "thread.not-compared": "the entries of {change} make no story, so its thread could not be drawn again: {why}",
    "thread.pending": "{change} is not yet drawn from entry {seq} on ({n:n=line} to come); that is no error",
    "thread.edited-back": "the line of entry {seq} of {change} was edited by {by}, and says what it should again",
    "thread.other-words": (
        "the line of entry {seq} of {change} has the words of another version or fleet file; nobody edited it"
    ),
    "thread.picture": "a picture of {at:day} is not compared with anything",
    "thread.unheld": "a message of {at:day} about {change} is not compared: it is not known where it was posted",
}
