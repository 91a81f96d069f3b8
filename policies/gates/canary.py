"""Does one generation come through the whole path, with a text that only this request can have?

What comes through a router proves the path: where there are replicas behind it, another one than the restarted may have
answered. Only a canary that is sent to one instance itself says something about that instance, and nothing about one
of those that it hands the request on to.
"""

from __future__ import annotations

import json

from pydantic import JsonValue

from policies.facts import HttpAnswer
from policies.finding import Verdict
from policies.fleet import Fleet
from policies.gates import Values, failed, passed, readable, undecided

PLACEHOLDER = "{nonce}"
PASSED = frozenset({"gate.canary.text", "gate.canary.path", "gate.canary.instance", "gate.canary.instance-path"})


def filled(value: JsonValue, nonce: str) -> JsonValue:
    """The canary's body with every `{nonce}` replaced."""
    if isinstance(value, str):
        return value.replace(PLACEHOLDER, nonce)
    if isinstance(value, list):
        return [filled(item, nonce) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, nonce) for key, item in value.items()}
    return value


def generated_text(body: str) -> str | None:
    """The text of the first choice of an OpenAI-style completion or chat completion; None when there is none."""
    try:
        choice = json.loads(body)["choices"][0]
        text = choice["text"] if "text" in choice else choice["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    return readable(text) if isinstance(text, str) else None


def replicas_behind(fleet: Fleet, service: str, *, own: bool = True) -> str | None:
    """`2 prefill, 3 decode`: the replicas of which any may have answered; None where there is one of each.

    own False: without those of the service itself, because one of them was asked by its address.
    """
    seen: dict[str, int] = {}
    waiting = [service]
    while waiting:
        name = waiting.pop(0)
        if name not in seen:
            seen[name] = len(fleet.services[name].on)
            waiting += fleet.services[name].needs
    return ", ".join(f"{n} {name}" for name, n in seen.items() if n > 1 and (own or name != service)) or None


def judge(
    service: str,
    answer: HttpAnswer | None,
    expected: str,
    *,
    instance: str | None = None,
    behind: str | None = None,
) -> Verdict:
    """Pass when the generated text contains `expected`; a 200 without the text is a fail.

    instance: that it was sent to itself. behind: the replicas of which any may have answered, see `replicas_behind`.
    """
    if answer is None:
        return undecided("gate.canary.not-asked", {"service": service})
    text = generated_text(answer.body)
    values: Values = {
        "service": service,
        "instance": instance,
        "behind": behind,
        "status": answer.status,
        "error": answer.error,
        "expected": expected,
        "text": None if text is None else text[:80],
        "took_s": answer.took_s,
        "at": answer.at,
    }
    if answer.status is None:
        return failed("gate.canary.no-answer", values)
    if answer.status != 200:
        return failed("gate.canary.status", values)
    if text is None or expected not in text:
        return failed("gate.canary.wrong-text", values)
    if instance is not None:
        return passed("gate.canary.instance" if behind is None else "gate.canary.instance-path", values)
    return passed("gate.canary.path" if behind is not None else "gate.canary.text", values)
