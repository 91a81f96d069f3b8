"""Hosts: reached or not, refused or not; why work holds; load; and what became of an undo."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "host.unreachable": "the host was not reached, so nothing was done there: {error}; {hint:or=try again}",
    "host.key-refused": (
        "the key of the host is unknown or another one, so it was not spoken to: {error}; {hint:or=check its key}"
    ),
    "host.answer-lost": "the host was asked and its answer was lost: {error}; {hint:or=try again}",
    "host.refused": "the host said no: {error}; {hint:or=look at the host}",
    "host.bad-answer": "what the host answered cannot be read: {error}; {hint:or=look at the host}",
    "host.step-unknown": "{instance}: the connection broke after the step was sent ({error}); the host is being asked",
    "hold.host-silent": "{host} does not answer, so how {instance} stands is unknown; look at the host, then ask again",
    "hold.host-refused": "{instance}: the host refused the step ({refusal}: {message}); {hint:or=look at the host}",
    "hold.file-changed": (
        "{instance}: a file is not as it was when the plan was made ({message}); {hint:or=look at the file}"
    ),
    "hold.other-incarnation": (
        "{instance} runs as pid {pid:or=none}, planned was pid {planned_pid}: it was restarted in between, not by this"
        " change; it was left as it is"
    ),
    "hold.proof-lost": "{instance}: the value was live at its gate and is not any more",
    "undo.nothing": "no value was changed, so there was nothing to undo",
    "undo.done": "{knob:code} is as it was before, and every gate of the undo passed",
    "load.in-flight": "{running} running and {queued} queued requests (metrics of {instance}, {at:at})",
    "load.unknown": "how many requests of {instance} would be cut is not known (metrics status {status:or=none})",
    "load.oldest": "the oldest request in flight is over {older_than_s:s} old (metrics of {instance}, {at:at})",
    "load.stop-timeout": "{instance} is killed when it has not stopped after {timeout_stop_s:s} ({unit:code})",
    "load.stop-unlimited": "{instance} is never killed while it stops: {unit:code} has no TimeoutStopSec",
    "load.stop-too-short": (
        "requests run for longer than {instance} may take to stop (over {older_than_s:s}, TimeoutStopSec is"
        " {timeout_stop_s:s}): they are killed, not finished"
    ),
    "load.left-out": (
        "{left} keeps running: what it holds for cut requests (such as KV) may stay held until it restarts"
    ),
}
