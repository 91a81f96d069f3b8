"""A canary's latency in words: never without the load at that moment, and what is usual where that is recorded."""

from __future__ import annotations

from bot.causes import readings
from bot.markup import Markup, joined
from bot.messages import say
from policies.probe import Probe


def probe_line(probe: Probe) -> Markup:
    """How long it took, what is usual, and the load; a slow one says that nothing is established about why."""
    usual = say("probe.no-usual") if probe.usual_s is None else say("probe.usual", usual_s=probe.usual_s, n=probe.n)
    parts = [say("probe.took", service=probe.service, took_s=probe.took_s), usual, load(probe)]
    return joined([*parts, say("cause.not-established")] if probe.slow else parts)


def load(probe: Probe) -> Markup:
    """The load at the moment of the probe, cited."""
    return say("probe.load", load=readings(probe.load)) if probe.load else say("probe.no-load")
