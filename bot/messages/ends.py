"""How a change ended, and its card's verdict."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "aborted.before-start": "aborted by {actor:who} before anything was started",
    "end.succeeded": "done in {took_s:s}: {knob:code} is {now:value} now, was {was:value}",
    "end.succeeded-mixed": "done in {took_s:s}: {knob:code} is changed on {n} instances",
    "end.restarted": "done in {took_s:s}: {path} restarted, every gate passed, no value changed",
    "end.rolled-back": "rolled back: {why}",
    "end.failed": "failed: {why}",
    "end.aborted": "aborted: {why}",
    "end.refused": "refused: {why}",
    "end.refused-next": "no host was changed; put right what is named here and ask again",
    "end.undone-for": "undo because {why}",
    "end.undone-by": "undo, as {actor:who} asked",
    "end.nothing-to-do": "{why}",
    "end.denied": "denied by {actor:who}",
    "end.expired": "expired: nobody confirmed in time, nothing was started",
    "end.kept": "kept as it is by {actor:who}, with no gate that vouches for it",
}
