"""Answers to questions, help, and the small words of cards."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "talk.no-words": "this version has no sentence for {code:code}; recorded with it: {told}",
    "talk.thread-lost": (
        "the earlier thread of {change} is gone from this channel; it goes on here, and the ledger has every entry"
    ),
    "talk.status-head": "the last {n} changes, newest first",
    "talk.status-head-one": "one change was asked so far",
    "talk.status-none": "no change was asked yet",
    "talk.status-line": "{change} {state}: {said:code}, asked by {actor:who} {at:day}",
    "talk.status-one": "{change} is {state}",
    "talk.nothing-listed": "no knob matches",
    "talk.listed": "{knob:code} on {instance}: desired {desired}, configured {configured:value}, live {live}",
    "talk.drift": "they differ",
    "talk.list-head": "{n} values",
    "talk.list-head-one": "one value",
    "talk.value": "{value:value}",
    "talk.unmanaged": "unmanaged",
    "talk.not-read": "not read ({answer})",
    "talk.knob": "*{knob}*: {variable:code} of {services}, type {type}",
    "talk.about": "{about}",
    "talk.range": "range {low} to {high}",
    "talk.values": "one of {values}",
    "talk.orders": "restart orders: {orders}",
    "talk.verify-head": "{knob} as read at {at:at}",
    "talk.health": "health {status}",
    "talk.no-health": "health gave no answer",
    "talk.help-head": "what can be said, after /knob or a mention of the bot",
    "talk.help-line": "{usage:code}: {about}, for example {example:code}",
}
