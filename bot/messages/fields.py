"""How a value is written in a sentence: escaped, with its unit. The template says which way: `{took_s:s}`.

{x}       text escaped; a whole number with its digits, another with at most four significant ones
{x:code}  the same in a code span        {x:value}  a knob's value in a code span; None is `unset`
{x:who}   a mention                      {x:at}     a moment with its second      {x:day}  with its day too
{x:s}     a duration                     {x:sha}    the first twelve digits of a digest
{x:n=time} a number with what it counts: `1 time`, `3 times`
{x:words} a word of ours with blanks for its underscores
{x:cgroup} a control group, without the way out of the place from which it is seen
{x:files} what stands in the way in a unit's files, from the codes of the findings about them
{x:cause} a cause, from a `Cause` only   {x:consistent} what readings agree with, from a `Consistent` only
{x:or=..} None and an empty text are written as `..`, and so is a value that entries of older versions do not have
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

from bot import escape
from bot.markup import Markup, mention
from bot.times import clock, day_clock, duration
from policies.causes.cause import Cause, Consistent
from policies.causes.verdict import Verdict

Value = str | int | float | Cause | Consistent | None
_OUT = re.compile(r"^/?(\.\./?)+")
# what keeps a unit from starting, or its environment from being certain; other findings about files only inform
FILES = {
    "envfile.missing": "an environment file that it needs does not exist",
    "envfile.nul": "an environment file holds a NUL byte",
    "envfile.not-utf-8": "an environment file is not utf-8",
    "envfile.unreadable": "an environment file could not be read",
    "unit.unreadable": "a file of the unit could not be read",
    "unit.not-utf-8": "a file of the unit is not utf-8",
    "unit.bad-section": "a section of the unit cannot be read",
}


class Fields(string.Formatter):
    """str.format with the ways of writing above, and nothing else: no attributes, no indices, no conversions."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """One value.

        Raises: ValueError for a way of writing that does not exist or does not fit the value.
        """
        return written(value, format_spec)

    def get_field(self, field_name: str, args: Any, kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        """The value of a plain name."""
        return self.get_value(field_name, args, kwargs), field_name


def written(value: Value, way: str = "") -> str:
    """A value as the sentence shows it."""
    if isinstance(value, Cause | Consistent) or way in {"cause", "consistent"}:
        return _claimed(value, way)
    if value is None or (value == "" and (way == "cgroup" or way.startswith("or="))):
        return _absent(way)
    if isinstance(value, Markup):
        return str(value)
    match way:
        case "value" | "code":
            return escape.code(_plain(value))
        case "who":
            return mention(str(value))
        case "words":
            return escape.mrkdwn(_plain(value).replace("_", " "))
        case "cgroup":
            return escape.mrkdwn(_OUT.sub("", str(value)) or "/")
        case "files":
            found = dict.fromkeys(FILES[code] for code in str(value).split("; ") if code in FILES)
            return ", ".join(found) or "see `clawback systemd effective`"
        case "sha":
            return escape.code(str(value)[:12])
        case "s" | "at" | "day":
            if isinstance(value, str):
                message = f"{way!r} writes numbers, not {value!r}"
                raise ValueError(message)  # noqa: TRY004 - a template does not fit, whatever the type
            return {"s": duration, "at": clock, "day": day_clock}[way](value)
        case _ if way.startswith("n="):
            noun = way.removeprefix("n=")
            return escape.mrkdwn(f"{_plain(value)} {noun if value == 1 else f'{noun}s'}")
        case _ if way == "" or way.startswith("or="):
            return escape.mrkdwn(_plain(value))
        case _:
            message = f"there is no way of writing {way!r}"
            raise ValueError(message)


def _claimed(value: Value, way: str) -> str:
    """What is claimed. Only a cause is written as one, and it is written as nothing else."""
    if (isinstance(value, Cause) and way == "cause") or (isinstance(value, Consistent) and way == "consistent"):
        return _title(value.verdict)
    message = f"{way!r} does not write {value!r}"
    raise ValueError(message)


def _title(verdict: Verdict) -> str:
    if not verdict.name:
        return escape.code(verdict.needs)
    return f"*{escape.mrkdwn(verdict.name)}* ({escape.mrkdwn(verdict.about)})"


def _absent(way: str) -> str:
    if way.startswith("or="):
        return way.removeprefix("or=")
    return {"value": "unset", "who": "nobody", "cgroup": "an unknown place"}.get(way, "unknown")


def _plain(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return str(value)


def names(template: str) -> frozenset[str]:
    """The field names of a template."""
    return frozenset(name for _, name, _, _ in string.Formatter().parse(template) if name)


def needed(template: str) -> frozenset[str]:
    """Those of them that say nothing of their own absence."""
    return frozenset(
        name for _, name, way, _ in string.Formatter().parse(template) if name and not (way or "").startswith("or=")
    )


FIELDS = Fields()
