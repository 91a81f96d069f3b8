"""What is recorded of silences at an Alertmanager: made, prolonged, ended, and that it could not be asked."""

from __future__ import annotations

from typing import Literal

from policies.model import Model

Doing = Literal["make", "prolong", "end"]
Why = Literal["ended", "held", "gone", "lost", "over"]


class SilenceMade(Model):
    """The alerts of a service are silenced. Subject: `si-N` for `C-N`. until: epoch seconds. matchers: as `a="b"`."""

    kind: Literal["silence_made"] = "silence_made"
    service: str
    silence: str
    until: float
    matchers: tuple[str, ...]


class SilenceProlonged(Model):
    """The change still works. silence: its id, which an Alertmanager may change with that."""

    kind: Literal["silence_prolonged"] = "silence_prolonged"
    service: str
    silence: str
    until: float


class SilenceEnded(Model):
    """No longer. why: the change has ended or is held; it was ended
    there before its time (gone); the Alertmanager no longer knows it (lost); its time was over."""

    kind: Literal["silence_ended"] = "silence_ended"
    service: str
    silence: str
    why: Why


class SilenceFailed(Model):
    """The Alertmanager did not do it, said once a change for each thing. Work goes on."""

    kind: Literal["silence_failed"] = "silence_failed"
    doing: Doing
    services: tuple[str, ...]
    error: str
    until: float | None = None  # of what could not be ended: when it ends by itself
