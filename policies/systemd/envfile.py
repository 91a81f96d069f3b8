"""The text of an EnvironmentFile= as systemd reads it, which is not as a shell reads it.

Source: systemd 252, src/basic/env-file.c (`load_env_file`); checked against the installed library in the tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from policies.finding import Effect, Finding
from policies.systemd.text import BLANKS, is_name, is_text, is_value, quoted

_State = Literal[
    "before_key", "key", "before_value", "value", "value_escape",
    "single", "double", "double_escape", "comment", "comment_escape",
]  # fmt: skip
_COMMENTS = "#;"
_NEWLINES = "\n\r"
_ESCAPABLE_IN_DOUBLE = '"\\`$'
_BOM = "\ufeff"
# a blank before the sign, or a sign with a blank after it: people mean a comment, systemd keeps it
_LOOKS_LIKE_COMMENT = re.compile(r"[ \t][#;]|#[ \t]")
_LOOKS_LIKE_EXPANSION = re.compile(r"\$(?:[A-Za-z_]|\{)|`|\$\(")
_ASSIGNMENT_LINE = re.compile(r"^[ \t]*[A-Za-z_][A-Za-z0-9_]*[ \t]*=", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EnvLine:
    """One assignment in the file. `used` is false when systemd drops it at start because of its name."""

    name: str
    value: str
    line: int  # where the name stands; 1 is the first
    last_line: int  # where the value ends
    used: bool
    open_quote: bool = False  # the quote is not closed before the end of the file
    bare: str = ""  # the part of the value that stood outside of quotes


@dataclass(frozen=True, slots=True)
class EnvFile:
    """A parsed file. `rejected` says why systemd takes nothing at all from it; then `lines` is empty."""

    lines: tuple[EnvLine, ...]
    rejected: Literal["not-utf-8", "nul"] | None = None
    rejected_line: int | None = None
    comment_continued_lines: tuple[int, ...] = ()

    def values(self) -> dict[str, str]:
        """What systemd's loader returns: every name, valid or not; the last assignment of a name wins."""
        return {line.name: line.value for line in self.lines}


def parse(text: str, *, comment_continues: bool = True) -> EnvFile:
    """Assignments of the file in order.

    `comment_continues`: a comment that ends in a backslash takes the next line with it, as in systemd before 254.
    """
    if "\0" in text:
        return EnvFile((), rejected="nul", rejected_line=text.count("\n", 0, text.index("\0")) + 1)
    reader = _Reader(text, comment_continues)
    reader.run()
    for line in reader.lines:
        if not is_text(line.name) or not is_text(line.value):
            return EnvFile((), rejected="not-utf-8", rejected_line=line.line)
    return EnvFile(tuple(reader.lines), comment_continued_lines=tuple(reader.continued))


class _Reader:
    """The state machine of `parse_env_file_internal`, with line numbers kept."""

    def __init__(self, text: str, comment_continues: bool) -> None:
        self.text = text
        self.comment_continues = comment_continues
        self.lines: list[EnvLine] = []
        self.continued: list[int] = []
        self.state: _State = "before_key"
        self.line = 1
        self.key: list[str] = []
        self.key_line = 1
        self.value: list[str] = []
        self.bare: list[str] = []
        self.blank_from: int | None = None  # where the blanks at the end of an unquoted value begin

    def run(self) -> None:
        for character in self.text:
            self._take(character)
            if character == "\n":
                self.line += 1
        if self.state not in ("before_key", "key", "comment", "comment_escape"):
            open_quote = self.state in ("single", "double", "double_escape")
            last = self.line - 1 if self.text.endswith("\n") else self.line
            self._push(last_line=last, cut=self.state == "value", open_quote=open_quote)

    def _take(self, c: str) -> None:
        match self.state:
            case "before_key":
                if c in _COMMENTS:
                    self.state = "comment"
                elif c not in BLANKS:
                    self.state, self.key, self.key_line = "key", [c], self.line
            case "key":
                if c in _NEWLINES:
                    self.state = "before_key"
                elif c == "=":
                    self.state, self.value, self.bare, self.blank_from = "before_value", [], [], None
                else:
                    self.key.append(c)
            case "before_value":
                if c in _NEWLINES:
                    self._push(last_line=self.line, cut=False)
                elif c == "'":
                    self.state = "single"
                elif c == '"':
                    self.state = "double"
                elif c == "\\":
                    self.state = "value_escape"
                elif c not in BLANKS:
                    self.state = "value"
                    self._add_bare(c)
            case "value":
                if c in _NEWLINES:
                    self._push(last_line=self.line, cut=True)
                elif c == "\\":
                    self.state, self.blank_from = "value_escape", None
                else:
                    if c not in BLANKS:
                        self.blank_from = None
                    elif self.blank_from is None:
                        self.blank_from = len(self.value)
                    self._add_bare(c)
            case "value_escape":
                self.state = "value"
                if c not in _NEWLINES:
                    self.value.append(c)
            case "single":
                if c == "'":
                    self.state = "before_value"
                else:
                    self.value.append(c)
            case "double":
                if c == '"':
                    self.state = "before_value"
                elif c == "\\":
                    self.state = "double_escape"
                else:
                    self.value.append(c)
            case "double_escape":
                self.state = "double"
                if c in _ESCAPABLE_IN_DOUBLE:
                    self.value.append(c)
                elif c != "\n":
                    self.value += ["\\", c]
            case "comment":
                if c == "\\":
                    self.state = "comment_escape"
                elif c in _NEWLINES:
                    self.state = "before_key"
            case "comment_escape":
                self.state = "comment"
                if c in _NEWLINES:
                    self.continued.append(self.line)
                    if not self.comment_continues:
                        self.state = "before_key"

    def _add_bare(self, c: str) -> None:
        self.value.append(c)
        self.bare.append(c)

    def _push(self, *, last_line: int, cut: bool, open_quote: bool = False) -> None:
        value = self.value[: self.blank_from] if cut and self.blank_from is not None else self.value
        name, text = "".join(self.key).rstrip(BLANKS), "".join(value)
        used = is_name(name) and is_value(text)
        bare = "".join(self.bare)
        self.lines.append(EnvLine(name, text, self.key_line, max(last_line, self.key_line), used, open_quote, bare))
        self.state = "before_key"


def report(text: str, file: str = "") -> tuple[Finding, ...]:
    """What a person who thinks in shell would be surprised by, line by line.

    Codes: envfile.nul, envfile.not-utf-8, envfile.bom, envfile.export, envfile.invalid-name, envfile.inline-comment,
    envfile.open-quote, envfile.swallowed, envfile.no-expansion, envfile.comment-continued.
    Values: file, line, name, value.
    """
    parsed = parse(text)
    found: list[Finding] = []

    def add(code: str, effect: Effect, line: int | None, **values: str | int | None) -> None:
        found.append(Finding(code=f"envfile.{code}", effect=effect, values={"file": file, "line": line, **values}))

    if parsed.rejected is not None:
        add(parsed.rejected, "warn", parsed.rejected_line)
        return tuple(found)
    for number in parsed.comment_continued_lines:
        add("comment-continued", "note", number)
    for line in parsed.lines:
        name, value = quoted(line.name), quoted(line.value)
        if line.name.startswith(_BOM):
            add("bom", "warn", line.line, name=quoted(line.name.removeprefix(_BOM)), value=value)
        elif re.match(r"export[ \t]", line.name):
            add("export", "warn", line.line, name=name, value=value)
        elif not line.used:
            add("invalid-name", "warn", line.line, name=name, value=value)
        if line.open_quote:
            add("open-quote", "warn", line.line, name=name, value=value, last_line=line.last_line)
        swallowed = _ASSIGNMENT_LINE.findall(_after_first_line(text, line))
        if swallowed:
            add("swallowed", "warn", line.line, name=name, value=value, last_line=line.last_line, count=len(swallowed))
        if _LOOKS_LIKE_COMMENT.search(line.bare):
            add("inline-comment", "warn", line.line, name=name, value=value)
        if _LOOKS_LIKE_EXPANSION.search(line.value):
            add("no-expansion", "note", line.line, name=name, value=value)
    return tuple(found)


def _after_first_line(text: str, line: EnvLine) -> str:
    """The raw lines of one assignment after its first: what a quote or a backslash took in."""
    return "\n".join(text.split("\n")[line.line : line.last_line])
