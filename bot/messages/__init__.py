"""Every sentence that the bot can say: one code, one template. One file a noun; add a noun by copying `clicks.py`.

Sentences are lower-case and plain: what was read, what was expected, what to do next. A value is escaped where it
is put in, so that nothing that a person or a host wrote can ping anybody or look like a word of the bot.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.markup import Markup
from bot.messages import (
    abtests,
    applies,
    archive,
    asked,
    bakes,
    causes,
    changed,
    clicks,
    contracts,
    deploys,
    details,
    doctor,
    drains,
    drift,
    emergency,
    ends,
    errors,
    evidence,
    forms,
    gates,
    guards,
    hosts,
    identity,
    locks,
    metrics,
    misbehaviour,
    plans,
    proofs,
    readings,
    replicas,
    rolling,
    rules,
    silences,
    statements,
    steps,
    store,
    suspicions,
    systemd,
    talk,
    threads,
    waiting,
)
from bot.messages.fields import FIELDS, Value, names, needed
from policies.finding import Finding

NOUNS = (
    abtests,
    applies,
    archive,
    asked,
    bakes,
    causes,
    changed,
    clicks,
    contracts,
    deploys,
    details,
    doctor,
    drains,
    drift,
    emergency,
    ends,
    errors,
    evidence,
    forms,
    gates,
    guards,
    hosts,
    identity,
    locks,
    metrics,
    misbehaviour,
    plans,
    proofs,
    readings,
    replicas,
    rolling,
    rules,
    silences,
    statements,
    steps,
    store,
    suspicions,
    systemd,
    talk,
    threads,
    waiting,
)
SENTENCES: dict[str, str] = {code: text for noun in NOUNS for code, text in noun.SENTENCES.items()}


class NoSentence(LookupError):
    """The code has no sentence, or the values do not fill it."""


def say(code: str, /, **values: Value) -> Markup:
    """The sentence of `code`, as mrkdwn.

    Raises: NoSentence for an unknown code, a missing value or one too many.
    """
    template = _template(code)
    wanted, given = names(template), frozenset(values)
    if wanted != given:
        message = f"`{code}` needs {sorted(wanted)}, got {sorted(given)}"
        raise NoSentence(message)
    return _filled(code, template, values)


def strict(finding: Finding) -> Markup:
    """The sentence of a finding; values that it does not mention are left out.

    Raises: NoSentence.
    """
    template = _template(finding.code)
    if missing := needed(template) - finding.values.keys():
        message = f"`{finding.code}` needs {sorted(missing)} beside {sorted(finding.values)}"
        raise NoSentence(message)
    return _filled(finding.code, template, dict.fromkeys(names(template)) | finding.values)


def sentence(finding: Finding) -> Markup:
    """The sentence of a finding, whatever wrote it: one without a sentence here is shown as its code and values.

    A ledger lives longer than a version of this program, and its entries must stay drawable.
    """
    try:
        return strict(finding)
    except NoSentence:
        told = ", ".join(f"{name} {value}" for name, value in sorted(finding.values.items()))
        return say("talk.no-words", code=finding.code, told=told or "no values")


def _template(code: str) -> str:
    template = SENTENCES.get(code)
    if template is None:
        message = f"no sentence for `{code}`"
        raise NoSentence(message)
    return template


def _filled(code: str, template: str, values: Mapping[str, Value]) -> Markup:
    try:
        return Markup(FIELDS.vformat(template, (), values))
    except ValueError as error:
        message = f"`{code}`: {error}"
        raise NoSentence(message) from error
