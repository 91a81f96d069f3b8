"""clawback's own drop-in of one unit, `zz-clawback.conf`: which variables it sets and which it takes away.

The file is written whole and read back whole: a line that we did not write makes it foreign, and a foreign file
is never overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

NAME = "zz-clawback.conf"
HEAD = "# written by clawback: edits made here by hand are seen as drift and stop the next change"
_SET = re.compile(r'Environment="(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)"')
_UNSET = re.compile(r"UnsetEnvironment=(?P<name>[A-Za-z_][A-Za-z0-9_]*)")


class ForeignDropIn(ValueError):
    """The drop-in of our name holds a line that clawback did not write."""


@dataclass(frozen=True, slots=True)
class DropIn:
    """Variables by name: a value, or None for a variable that is taken away with UnsetEnvironment=."""

    variables: Mapping[str, str | None]

    def with_value(self, name: str, value: str) -> DropIn:
        """The same, with one variable set."""
        return DropIn({**self.variables, name: value})

    def taking_away(self, name: str) -> DropIn:
        """The same, with one variable removed from the environment whoever sets it."""
        return DropIn({**self.variables, name: None})

    def without(self, name: str) -> DropIn:
        """The same, saying nothing about one variable."""
        return DropIn({k: v for k, v in self.variables.items() if k != name})

    def render(self) -> str | None:
        """The file's text; None when there is nothing to say and the file is not needed."""
        if not self.variables:
            return None
        lines = [HEAD, "[Service]"]
        for name, value in sorted(self.variables.items()):
            lines.append(f"UnsetEnvironment={name}" if value is None else f'Environment="{name}={_quoted(value)}"')
        return "\n".join(lines) + "\n"


def read_dropin(text: str | None) -> DropIn:
    """What our drop-in says; no file says nothing.

    Raises: ForeignDropIn with the line's number.
    """
    variables: dict[str, str | None] = {}
    if text is None:
        return DropIn(variables)
    # splitlines() would also split at U+2028 and its like, which are text to us and to systemd
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        if line in {HEAD, "[Service]"}:
            continue
        found = _SET.fullmatch(line)
        if found:
            value = _unquoted(found["value"])
            if value is not None:
                variables[found["name"]] = value
                continue
        unset = _UNSET.fullmatch(line)
        if unset is None:
            raise ForeignDropIn(f"line {number}: `{line[:120]}`")
        variables[unset["name"]] = None
    return DropIn(variables)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def _unquoted(text: str) -> str | None:
    out: list[str] = []
    i = 0
    while i < len(text):
        pair = text[i : i + 2]
        if pair in {"\\\\", '\\"', "%%"}:
            out.append(pair[1])
            i += 2
        elif text[i] in '\\"%':
            return None  # we never write a bare one
        else:
            out.append(text[i])
            i += 1
    return "".join(out)
