"""Replicas in turn: the floor, the replica that goes first, and a fleet whose instances differ."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "hold.floor": (
        "{away} may not be taken away now: {serving} of the {others} other instances of {service} serve"
        " ({which:or=none}), expected at least {keep}; nothing of this stage was touched"
    ),
    "floor.not-active": "{instance} does not serve: it is {state}",
    "floor.not-healthy": "{instance} does not serve: health answers {status:or=nothing} ({error:or=expected 200})",
    "floor.not-admitted": (
        "{instance} does not serve: {routers} does not say that it sends it requests (breaker {breaker:or=not read})"
    ),
    "floor.not-asked": "{instance} cannot be asked, so it is not counted as serving: {error}",
    "hold.mixed": "{instances} does not have what was approved, so this is not done",
    "mixed.now": "mixed: {found} (read {at:at})",
    "mixed.knob": "{knob:code} is mixed: {found}",
    "mixed.not-known": "what each replica has is not known: {found} (read {at:at})",
    "mixed.has": "{value:value} on {instances}",
    "mixed.has-version": "version {value:code} on {instances}",
    "mixed.unset": "unset on {instances}",
    "mixed.down": "nothing runs on {instances}",
    "mixed.unknown": "not known on {instances} ({why:or=not read})",
    "mixed.way-back": "to have one {of} on all again: {command:code}",
    "step.wave": "wave {n} of {total}: {path}",
    "step.wave-undo": "undo of wave {n}: {path}",
    "step.brought-back": "brought back: {instances}",
    "step.now-canary": "{instances} went first, watched until {until:at}",
    "canary.started": "{instances} went first and is watched until {until:at} before the others follow",
    "canary.started-plain": "{instances} went first and is judged before the others follow",
    "canary.passed": "{instances} passed: {said}; the others follow",
    "canary.failed": "{instances} as the first replica answers {answer}: {said}",
    "canary.named": "the first replica {instances} did not pass",
    "canary.held": "{condition:code} holds (read {read}, n={n})",
    "canary.not-held": "{instance}: {condition:code} does not hold: read {read}, n={n}",
    "canary.not-known": (
        "{instance}: whether {condition:code} holds is not known (read {read:or=nothing}, n={n}); no data is no pass"
    ),
    "canary.malformed": "the condition {condition:code} cannot be read: {problem}",
}
