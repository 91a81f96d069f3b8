"""Unit files and drop-ins: sections, continuation lines and assignments, with the words in which systemd complains.

Source: systemd 252, src/shared/conf-parser.c (`config_parse`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from policies.finding import Finding
from policies.systemd.text import BLANKS, is_text, quoted

_EOL = re.compile(r"\r\n\0|\r\0\n|\n\r\0|\n\0\r|\0\r\n|\0\n\r|\r\n|\n\r|\r\0|\0\r|\n\0|\0\n|\n|\r|\0")
_SECTIONS = frozenset({"Unit", "Service", "Install"})
_LIMITS_OF_UNIT = {"StartLimitIntervalSec"}  # the older spellings are still taken in [Service]
_DEFAULT_LIMIT = "the interval stays as it was, by default 10 s"


@dataclass(frozen=True, slots=True)
class Directive:
    """`key=value` in a section. `pieces` maps offsets in `value` to lines: a value may go over several lines."""

    section: str
    key: str
    value: str
    file: str
    line: int
    pieces: tuple[tuple[int, int], ...]  # (offset, line), ascending

    def line_at(self, offset: int) -> int:
        """The line of the file on which this offset of the value stands."""
        return max((line for start, line in self.pieces if start <= offset), default=self.line)


@dataclass(frozen=True, slots=True)
class UnitText:
    """What one file says. `broken` is true when systemd stops reading it half way."""

    directives: tuple[Directive, ...]
    findings: tuple[Finding, ...]
    broken: bool = False


@dataclass(frozen=True, slots=True)
class _Logical:
    """A line after joining continuations."""

    text: str
    line: int  # of the last physical line, which systemd names in its messages
    pieces: tuple[tuple[int, int], ...]


def parse(text: str, file: str) -> UnitText:
    """Directives of the file in order."""
    directives: list[Directive] = []
    findings: list[Finding] = []
    section = ""
    ignored = False

    def warn(code: str, line: int, message: str) -> None:
        findings.append(
            Finding(code=f"unit.{code}", effect="warn", values={"file": file, "line": line, "message": quoted(message)})
        )

    for logical in _logical_lines(text):
        stripped = logical.text.strip(BLANKS)
        if not stripped:
            continue
        if not is_text(stripped):
            warn("not-utf-8", logical.line, f"String is not UTF-8 clean, ignoring assignment: {stripped}")
            return UnitText(tuple(directives), tuple(findings), broken=True)
        if stripped.startswith("["):
            if not stripped.endswith("]"):
                warn("bad-section", logical.line, f"Invalid section header '{stripped}'")
                return UnitText(tuple(directives), tuple(findings), broken=True)
            name = stripped[1:-1]
            ignored = name not in _SECTIONS
            if ignored and not name.startswith("X-"):
                warn("unknown-section", logical.line, f"Unknown section '{name}'. Ignoring.")
            section = "" if ignored else name
        elif not section:
            if not ignored:
                warn("no-section", logical.line, "Assignment outside of section. Ignoring.")
        elif "=" not in stripped:
            warn("no-equals", logical.line, "Missing '=', ignoring line.")
        elif stripped.startswith("="):
            warn("no-key", logical.line, "Missing key name before '=', ignoring line.")
        else:
            directive = _directive(section, logical, file)
            directives.append(directive)
            if section == "Service" and directive.key in _LIMITS_OF_UNIT:
                message = f"Unknown key name '{directive.key}' in section 'Service', ignoring."
                values = {"file": file, "line": directive.line, "key": directive.key, "message": message}
                findings.append(
                    Finding(code="unit.limit-in-service", effect="warn", values={**values, "default": _DEFAULT_LIMIT})
                )
    return UnitText(tuple(directives), tuple(findings))


def _directive(section: str, logical: _Logical, file: str) -> Directive:
    equals = logical.text.index("=")
    key = logical.text[:equals].strip(BLANKS)
    rest = logical.text[equals + 1 :]
    start = equals + 1 + len(rest) - len(rest.lstrip(BLANKS))
    value = rest.strip(BLANKS)
    pieces = tuple((max(0, offset - start), line) for offset, line in logical.pieces)
    first = max((line for offset, line in logical.pieces if offset <= equals), default=logical.line)
    return Directive(section, key, value, file, first, pieces)


def _logical_lines(text: str) -> list[_Logical]:
    """Lines with continuations joined; comment lines inside a continuation are left out, as systemd does."""
    found: list[_Logical] = []
    joined: str | None = None
    pieces: list[tuple[int, int]] = []
    number = 0
    physical = _EOL.split(text)
    if physical and physical[-1] == "":
        physical.pop()
    bom_seen = False
    for raw in physical:
        number += 1
        if raw.lstrip(BLANKS)[:1] in ("#", ";"):
            continue
        line = raw
        if not bom_seen and line.startswith("\ufeff"):
            line, bom_seen = line[1:], True
        if joined is None:
            pieces = []
        start = len(joined or "")
        pieces.append((start, number))
        whole = (joined or "") + line
        trailing = len(whole) - len(whole.rstrip("\\"))
        if trailing % 2 == 1:
            joined = whole[:-1] + " "
            continue
        found.append(_Logical(whole, number, tuple(pieces)))
        joined = None
    if joined is not None:
        found.append(_Logical(joined, number + 1, tuple(pieces)))
    return found
