"""Recorded evidence: what the rules say of it, and its lines on a card. Numbers come with n and what they are of."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "evidence.none": (
        "no evidence is recorded for {knob:code} = {value:value} on {metric}, expected at least {at_least}"
        " (line {line} of the fleet file)"
    ),
    "evidence.stale": (
        "evidence {record} was measured {measured_at:day}, expected within the last {max_age_s:s}"
        " (line {line} of the fleet file)"
    ),
    "evidence.too-weak": (
        "evidence {record} is of class {klass}, expected at least {at_least} (line {line} of the fleet file)"
    ),
    "evidence.not-good": (
        "evidence {record} was judged {klass:words}, expected at least {at_least} (line {line} of the fleet file)"
    ),
    "evidence.not-valid": (
        "evidence {record} is {standing} today ({why}), expected one that holds (line {line} of the fleet file)"
    ),
    "evidence.weak-today": (
        "evidence {record} is of class {klass:words} and weak today ({why}), expected at least {at_least}"
        " (line {line} of the fleet file)"
    ),
    "evidence.correctness-level": (
        "evidence {record} reaches correctness level {level}, expected {needed} (1 answers compared, 2 scores with an"
        " interval, 3 both and answers that end alike; line {line} of the fleet file)"
    ),
    "evidence.could-override": (
        "as one of {role}, {actor:who} may do without enough evidence: set the value, with a reason behind because"
    ),
    "evidence.overridden": (
        "{actor:who}, one of {role}, does without enough evidence, in their words: {reason}. {record} is {klass:words}"
        " and {standing}, expected at least {at_least} (line {line} of the fleet file)"
    ),
    "evidence.no-correctness": (
        "evidence {record} compared {compared} answers, {differing} of them differ; expected at least {needed}, all the"
        " same (line {line} of the fleet file)"
    ),
    "evidence.too-few-repeats": (
        "evidence {record} has {repeats} runs per arm at its smallest point, expected {needed}"
        " (line {line} of the fleet file)"
    ),
    "evidence.enough": (
        "evidence {record} ({klass}, recorded {recorded_at:day}) is enough (line {line} of the fleet file)"
    ),
    # lines of the card
    "evidence.record": (
        "evidence {record}, {klass:words}, {age_s:s} old{holds}, recorded by {by:who}: *{points}* {metric}, {runs}"
    ),
    "evidence.short": "evidence {record}, {klass:words}, {age_s:s} old{holds}: *{points}* {metric}, {runs}",
    "evidence.short-correct": "{differing} of {compared} answers differ (up to {could} % could)",
    "evidence.measured-on": "measured on {day}",
    "evidence.one-run": "n=1 per arm, no interval",
    "evidence.runs": "n={n} per arm, no interval",
    "evidence.runs-interval": "n={n} per arm, 95 % intervals",
    "evidence.uneven-runs": "n={least} to {most} per arm, no interval",
    "evidence.no-worse": "no regression seen up to C{concurrency}, as recorded",
    "evidence.correct": (
        "correctness {differing} of {compared} differ (up to {could} % could: rule of three, 95 % bound)"
    ),
    "evidence.incorrect": "correctness {differing} of {compared} differ",
    "evidence.uncompared": "correctness: not measured",
    "evidence.scores": (
        "{name}: {a} % in A, {b} % in B, N={n} ({how}), difference {points} points, 95 % [{low}, {high}]: a loss of"
        " {margin} points is ruled out"
    ),
    "evidence.scores-not-shown": (
        "{name}: {a} % in A, {b} % in B, N={n} ({how}), difference {points} points, 95 % [{low}, {high}]: a loss of"
        " {margin} points is not ruled out"
    ),
    "evidence.endings-alike": "answers end for the same reasons and are as long",
    "evidence.endings-differ": "answers do not end alike, or are not as long",
    "evidence.not-monotone": (
        "{point} is worse than both its neighbours {before} and {after}, without an interval: repeat it before you"
        " believe it"
    ),
    "evidence.may-record": "{actor:who} may record evidence for {knob:code}",
    "evidence.may-not-record": (
        "{actor:who} may not record evidence for {knob:code}: the rules let {roles:or=nobody} ask for or approve a"
        " change of it"
    ),
    "evidence.against": "against {baseline:value}",
    "evidence.context": "on {context}",
    "evidence.about": "evidence for {knob}, newest first: {n:n=record}",
    "evidence.nothing": "no evidence is recorded for {knob:code}; `evidence add` opens a form for result files",
    "evidence.files": "{arm}: {files}",
    "evidence.no-files": "no files are known",
    "evidence.note": "{by:who} notes: \u201c{note}\u201d",
    "evidence.pictures-at": "<{link}|pictures>",
    "evidence.pictures-follow": "pictures follow in this channel",
    "evidence.absent": "no evidence is recorded for {knob:code} = {value:value}",
}
