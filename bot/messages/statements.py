"""Statements about why something happened: whose they are, what was measured, and what was said against them.

What somebody said is quoted as theirs. What may be said of a cause is in `causes`, and nowhere else.
"""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "statement.by": "{actor:who} says {words:code}",
    "statement.by-about": "{actor:who} says {words:code} about {change}",
    "statement.citing": "citing {cited:code}",
    "statement.of-probe": "a slow probe, {took_s:s} where {usual_s:s} is usual (median, n={n} recorded)",
    "statement.id": "{statement}: {said}",
    "statement.window": "looked at from {start:at} to {end:at}",
    "statement.window-and-before": (
        "looked at from {start:at} to {end:at}, compared with {before:at} to {before_end:at}"
    ),
    "statement.window-and-again": (
        "looked at from {start:at} to {end:at}, compared with {before:at} to {before_end:at} and with the old state"
        " again from {again:at} to {again_end:at}"
    ),
    "statement.of-old-state": "whether {change} did it, with the old state measured again after {by}",
    "statement.old-state": "{statement}: the old state was measured again after {by}",
    "statement.load": "load then: {load}",
    "statement.not-measured": "the load then was not measured",
    "statement.instead": "what the readings agree with instead: {said}",
    "statement.disputed": "{actor:who} disputes {statement}: {reason:code}",
    "statement.disputed-click": "{actor:who} disputes {statement}",
    "statement.again": "judged once more: {said}",
    "statement.dispute-title": "contest {statement}?",
    "statement.dispute-text": "it is judged once more, and struck through when it does not hold",
    "statement.struck": "it does not hold and is struck through",
    "statement.holds-on": "it still holds",
    "statement.receipt": "{statement} is recorded and stands in the channel: {said}",
    "statement.receipt-dispute": "recorded, and {statement} is judged once more: {said}",
    "statement.unknown": "there is no statement {statement}; its number stands with it, where it was stated",
    "statement.receipt-told": "{statement} is recorded: {said}",
    "statement.none-holds": "nothing in the catalogue of the fleet file is known to hold ({n} listed)",
    "statement.no-such-cause": "the fleet file does not list {name:code}",
    "statement.names-several": "the words name several of the catalogue ({names}); state one at a time",
    "statement.of-thread": "about {change}, in whose thread it was said",
    # why CHANGE|SERVICE
    "why.knob-head": "where the value of {knob:code} comes from",
    "why.knob-came": "since {at:day} by {change}: {said:code}, asked by {actor:who}",
    "why.knob-before": "before that",
    "why.knob-unmanaged": "no change brought {knob:code} its value: it stands in the hosts' own files, or nowhere",
    "why.head": "what is known about {about}",
    "why.change": "{change} is {state}: {said:code}",
    "why.service-state": "{service}: {said}",
    "why.no-state": "what the engines were doing was not measured",
    "why.refuted": "speaks against {name:code}: {measured} ({why})",
    "why.unknown": "not known of {name:code}: {why}",
    "why.no-catalogue": "the fleet file lists nothing that is measured on it",
    "why.said": "{statement}: {actor:who} says {words:code}, which is {word}",
    "why.said-probe": "{statement}: about a slow probe",
    "why.struck": "{said} (disputed, does not hold)",
    "why.not-covered": (
        "not looked at: what is not in the fleet file, such as clients, proxies and other hosts; a health check that"
        " answers 200 says nothing about any of this"
    ),
    # why a revert is judged as it is
    "blame.against": (
        "if it were {knob:code}, {if_guilty:code} would be seen, and it was not: {said}, which speaks against it"
    ),
    "blame.spoke-against": "{said}, which speaks against it",
    "blame.seen": "{if_guilty:code} was seen, as it would be if it were {knob:code}; that alone shows nothing: {said}",
    "blame.unknown": "whether {if_guilty:code} was the case is not known: {said}",
    "blame.no-if-guilty": "the fleet file does not say what would be seen if it were {knob:code}",
    "blame.idle": "at {at:at} the engine was idle ({readings}, counters still)",
    "blame.reason": "the reason, judged: {said}",
    "blame.unread": "not judged: {said}",
    "blame.beside": "changed as well since {since:day}: {said}",
    "blame.beside-one": "{change} {said:code}",
    "blame.alone": "nothing else is recorded as changed since {since:day}, when it came",
    "blame.since-unknown": "when the value came is not recorded, so what changed since is not known",
    "blame.beside-day": "changed in the day before: {said}",
    # probes
    "probe.took": "probe through {service} took {took_s:s}",
    "probe.usual": "usual is {usual_s:s} (median, n={n} recorded)",
    "probe.no-usual": "none is recorded before to compare it with",
    "probe.load": "load then: {load}",
    "probe.no-load": "the load then was not measured",
    "blame.not-covered": "what is not in the fleet file (clients, proxies, other hosts) was not looked at",
}
