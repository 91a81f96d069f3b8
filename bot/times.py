"""Points in time as Slack date tokens, and durations in words.

A token is built here from a number and never from text, so that nobody can write one into a message.
"""

from __future__ import annotations

from datetime import UTC, datetime

from bot.markup import Markup

_DAY_S = 86_400


def clock(at: float) -> Markup:
    """A moment with its second; each reader sees local time, and UTC where tokens are not drawn.

    Units: `at` is epoch seconds.
    """
    moment = datetime.fromtimestamp(at, tz=UTC)
    return Markup(f"<!date^{int(at)}^{{time_secs}}|{moment:%H:%M:%S} UTC>")


def day_clock(at: float) -> Markup:
    """A moment with its day, for what may be longer ago."""
    moment = datetime.fromtimestamp(at, tz=UTC)
    return Markup(f"<!date^{int(at)}^{{date_short_pretty}} {{time_secs}}|{moment:%Y-%m-%d %H:%M:%S} UTC>")


def duration(seconds: float) -> str:
    """`0.3 s`, `68.2 s`, `2 min 40 s`, `3 h 5 min`, `2 days`: never more than two units.

    Units: seconds.
    """
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if round(seconds, 1) < 100:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 2 * _DAY_S:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // _DAY_S} days"
