"""What a unit file and its drop-ins together set, as far as it matters for a process's environment and its start."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.facts import FileText
from policies.finding import Finding
from policies.model import Model
from policies.systemd import unitfile, words
from policies.systemd.specifiers import SYSTEM, resolve
from policies.systemd.text import is_assignment, is_name, quoted

DEFAULT_TIMEOUT_START_S = 90.0  # Source: systemd 252, DefaultTimeoutStartSec
_SPAN_UNITS_S = {
    "us": 1e-6, "usec": 1e-6, "µs": 1e-6, "ms": 1e-3, "msec": 1e-3,
    "": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0, "w": 604800.0, "week": 604800.0, "weeks": 604800.0,
    "M": 2629800.0, "month": 2629800.0, "months": 2629800.0, "y": 31557600.0, "year": 31557600.0, "years": 31557600.0,
}  # fmt: skip


class Place(Model):
    """Where something is said. `line` counts from 1; 0 with a file in parentheses is no file."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """NAME=VALUE of an Environment= directive; `reset` is the later empty Environment= that took it away again."""

    name: str
    value: str
    place: Place
    certain: bool = True  # false when the value holds a specifier that only the host can tell
    reset: Place | None = None


@dataclass(frozen=True, slots=True)
class EnvFileRef:
    """One EnvironmentFile= directive; `path` may be a pattern."""

    path: str
    optional: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Removal:
    """One word of UnsetEnvironment=: a name, or NAME=VALUE that removes only this very value."""

    word: str
    place: Place

    def removes(self, name: str, value: str) -> bool:
        """Whether it takes NAME=VALUE away."""
        return self.word in (name, f"{name}={value}")


@dataclass(slots=True)
class Settings:
    """Everything read, in the order in which systemd applies it."""

    environment: list[Assignment] = field(default_factory=list)
    env_files: list[EnvFileRef] = field(default_factory=list)
    unset: list[Removal] = field(default_factory=list)
    passed: list[Removal] = field(default_factory=list)  # names of PassEnvironment=
    type: str | None = None
    timeout_start_s: float | None = DEFAULT_TIMEOUT_START_S  # None: no limit
    exec_start: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    broken: bool = False  # systemd refuses to load the unit


def read(
    fragment: FileText, dropins: Sequence[FileText], unit_name: str, specifiers: Mapping[str, str] = SYSTEM
) -> Settings:
    """Settings of the unit: the fragment first, then the drop-ins in the order given."""
    settings = Settings()
    for file in (fragment, *dropins):
        if file.text is None:
            if file.exists or file.error is not None or file is fragment:
                values = {"file": file.path, "error": file.error or "missing"}
                settings.findings.append(Finding(code="unit.unreadable", effect="warn", values=values))
            continue
        parsed = unitfile.parse(file.text, file.path)
        settings.findings += parsed.findings
        settings.broken = settings.broken or (parsed.broken and file is fragment)
        reader = _Reader(settings, unit_name, specifiers)
        for directive in parsed.directives:
            if directive.section == "Service":
                reader.take(directive)
    return settings


class _Reader:
    def __init__(self, settings: Settings, unit_name: str, specifiers: Mapping[str, str]) -> None:
        self.settings = settings
        self.unit_name = unit_name
        self.specifiers = specifiers

    def take(self, directive: unitfile.Directive) -> None:
        settings = self.settings
        match directive.key:
            case "Environment":
                self._environment(directive)
            case "EnvironmentFile":
                self._env_file(directive)
            case "UnsetEnvironment":
                settings.unset = self._words(directive, settings.unset, escapes=True)
            case "PassEnvironment":
                settings.passed = self._words(directive, settings.passed, escapes=False)
            case "Type":
                settings.type = directive.value or None
            case "TimeoutStartSec" | "TimeoutSec":
                self._timeout(directive)
            case "ExecStart":
                settings.exec_start = [*settings.exec_start, directive.value] if directive.value else []
            case _:
                pass

    def _warn(self, directive: unitfile.Directive, line: int, code: str, message: str) -> None:
        values = {"file": directive.file, "line": line, "message": quoted(message)}
        self.settings.findings.append(Finding(code=f"unit.{code}", effect="warn", values=values))

    def _resolve(self, directive: unitfile.Directive, text: str, line: int) -> tuple[str, bool] | None:
        """Text without specifiers, and whether it is certain; None when systemd ignores it for an unknown one."""
        resolved = resolve(text, self.unit_name, self.specifiers)
        if resolved.invalid is not None:
            message = f"Failed to resolve specifiers in {text}, ignoring: Invalid slot"
            self._warn(directive, line, "specifier-invalid", message)
            return None
        for letter in resolved.unknown:
            self._warn(
                directive, line, "specifier-unknown", f"%{letter} in '{text}' has a value that only the host knows"
            )
        return resolved.text, not resolved.unknown

    def _environment(self, directive: unitfile.Directive) -> None:
        settings = self.settings
        if not directive.value:
            reset = Place(file=directive.file, line=directive.line)
            settings.environment = [
                a if a.reset else Assignment(a.name, a.value, a.place, a.certain, reset) for a in settings.environment
            ]
            return
        taken = words.split(directive.value)
        for word in taken.words:
            line = directive.line_at(word.offset)
            resolved = self._resolve(directive, word.text, line)
            if resolved is None:
                continue
            text, certain = resolved
            if not is_assignment(text):
                self._warn(directive, line, "invalid-assignment", f"Invalid environment assignment, ignoring: {text}")
                continue
            name, _, value = text.partition("=")
            settings.environment.append(Assignment(name, value, Place(file=directive.file, line=line), certain))
        if taken.malformed:
            self._warn(directive, directive.line, "invalid-syntax", f"Invalid syntax, ignoring: {directive.value}")

    def _env_file(self, directive: unitfile.Directive) -> None:
        if not directive.value:
            self.settings.env_files = []
            return
        resolved = self._resolve(directive, directive.value, directive.line)
        if resolved is None:
            return
        text = resolved[0]
        optional = text.startswith("-")
        path = text.removeprefix("-")
        if not path.startswith("/"):
            message = f"EnvironmentFile= path is not absolute, ignoring: {path}"
            self._warn(directive, directive.line, "path-not-absolute", message)
            return
        if ".." in path.split("/"):
            message = f"EnvironmentFile= path is not normalized, ignoring: {simplified(path)}"
            self._warn(directive, directive.line, "path-not-normalized", message)
            return
        place = Place(file=directive.file, line=directive.line)
        self.settings.env_files.append(EnvFileRef(simplified(path), optional, place))

    def _words(self, directive: unitfile.Directive, present: list[Removal], *, escapes: bool) -> list[Removal]:
        if not directive.value:
            return []
        taken = words.split(directive.value, escapes=escapes)
        kept = list(present)
        for word in taken.words:
            line = directive.line_at(word.offset)
            resolved = self._resolve(directive, word.text, line)
            if resolved is None:
                continue
            text = resolved[0]
            if is_name(text) or (escapes and is_assignment(text)):
                kept.append(Removal(text, Place(file=directive.file, line=line)))
            else:
                message = f"Invalid environment name or assignment, ignoring: {text}"
                self._warn(directive, line, "invalid-name", message)
        if taken.malformed:
            self._warn(directive, directive.line, "invalid-syntax", f"Invalid syntax, ignoring: {directive.value}")
        return kept

    def _timeout(self, directive: unitfile.Directive) -> None:
        limit = span_s(directive.value)
        if limit is None and directive.value != "infinity":
            message = f"Failed to parse {directive.key}= parameter, ignoring: {directive.value}"
            self._warn(directive, directive.line, "invalid-time", message)
            return
        self.settings.timeout_start_s = limit or None  # 0 means no limit, too


def span_s(text: str) -> float | None:
    """A time span such as `1min 30s` in seconds; None for `infinity` and for what is no time span."""
    total = 0.0
    rest = text.strip()
    if not rest:
        return None
    while rest:
        match = re.match(r"(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-zµ]*)\s*", rest)
        if match is None or match[2] not in _SPAN_UNITS_S:
            return None
        total += float(match[1]) * _SPAN_UNITS_S[match[2]]
        rest = rest[match.end() :]
    return total


def simplified(path: str) -> str:
    """A path without doubled slashes, `/./` and a slash at its end."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
