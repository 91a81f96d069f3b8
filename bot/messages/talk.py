"""Answers to questions, help, and the small words of cards."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "talk.no-words": "{code:code} ({told})",
    "talk.thread-lost": (
        "the earlier thread of {change} is gone from this channel; it goes on here, and the ledger has every entry"
    ),
    "talk.status-head": "the last {n} changes",
    "talk.status-none": "no change was asked yet",
    "talk.status-line": "{change} {state}: {said:code}, asked by {actor:who} {at:day}",
    "talk.status-one": "{change} is {state}",
    "talk.nothing-listed": "no knob matches",
    "talk.listed": "{knob:code} on {instance}: desired {desired}, configured {configured:value}, live {live}",
    "talk.drift": "differs",
    "talk.help-head": "what can be said, after /knob or a mention of the bot",
}
