"""Suspicions: what was taken away without anybody having shown why, what that costs, and how to get it back."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "suspicion.opened": "suspicion {suspicion} is open: {said}",
    "suspicion.review": "review by {owner:who} {review_at:day}",
    "suspicion.reviewed-next": "next review by {owner:who} {review_at:day}",
    "suspicion.listed-by": "`/knob reclaim` lists it",
    "suspicion.price": "{record}: given up with it: *{prices}*",
    "suspicion.unpriced": "no evidence says what {knob:code} = {value:value} was worth",
    "suspicion.head": "{n:n=open suspicion}: taken away for a reason that is not shown, and not given back",
    "suspicion.none": "no suspicion is open: nothing was taken away that is not given back or settled",
    "suspicion.line": (
        "*{suspicion}*: {knob:code} = {value:value} taken away {age_s:s} ago by {owner:who} ({change}), in their words:"
        " {reason:code}"
    ),
    "suspicion.line-mixed": (
        "*{suspicion}*: {knob:code} taken away {age_s:s} ago by {owner:who} ({change}), each instance with its own"
        " value, in their words: {reason:code}"
    ),
    "suspicion.way-unknown": "not all its restarts are recorded, so no time is told",
    "suspicion.by-name": (
        "the instances had different values, so it is given back by name: `/knob set NAME=VALUE on SCOPE`"
    ),
    "suspicion.beside": "no suspicion, stays as it is: {said}",
    "suspicion.beside-one": "{change} {said:code}",
    "suspicion.closed-reclaimed": "suspicion {suspicion} is closed: the value is given back",
    "suspicion.is-reclaimed": "{suspicion} is closed: {by} gave the value back",
    "suspicion.is-confirmed": "{suspicion} is closed: {by} confirmed what it stood on",
    "suspicion.is-refuted": "{suspicion} is closed: {by} speaks against it; the value can be given back",
    "suspicion.unknown": "there is no suspicion {suspicion}",
    "suspicion.reminder": (
        "{owner:who} {suspicion} is still open: {knob:code} = {value:value} was taken away {at:day}, in your words:"
        " {reason:code}"
    ),
    "suspicion.reminder-next": "give it back, or show by what was measured that it must stay away",
}
