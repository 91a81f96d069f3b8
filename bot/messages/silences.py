"""Silences at the Alertmanager around a change."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "silence.made": "alerts of {service} are silenced until {until:at} ({matchers:code}, silence {silence:code})",
    "silence.prolonged": "alerts of {service} stay silenced until {until:at}, work goes on (silence {silence:code})",
    "silence.ended": "alerts of {service} are heard again: the change is over (silence {silence:code} ended)",
    "silence.ended-held": (
        "alerts of {service} are heard again: the change is held and waits for a person (silence {silence:code} ended)"
    ),
    "silence.gone": (
        "the silence {silence:code} of {service} was ended at the Alertmanager before its time; none is made again for"
        " this change"
    ),
    "silence.lost": "the Alertmanager no longer knows the silence {silence:code} of {service}",
    "silence.over": "the silence {silence:code} of {service} is over, its time ran out",
    "silence.not-made": "alerts of {services} are not silenced, the Alertmanager did not do it: {error}; work goes on",
    "silence.not-prolonged": (
        "the silence of {services} could not be prolonged, the Alertmanager did not do it: {error}; work goes on"
    ),
    "silence.not-ended": "the silence of {services} could not be ended: {error}; it is tried again",
    "silence.not-ended-yet": (
        "the silence of {services} could not be ended: {error}; it is tried again, and ends by itself at {until:at}"
    ),
}
