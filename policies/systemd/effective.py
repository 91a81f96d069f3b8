"""The value with which a unit would start, and the line that decides it.

Order, weakest first: the manager's own environment, Environment= (later wins), EnvironmentFile= (later file wins, later
line wins), and UnsetEnvironment= which takes away at the end. Source: systemd 252, src/core/execute.c (`exec_child`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate

from policies.facts import FileText
from policies.finding import Effect, Finding
from policies.model import Model
from policies.systemd import envfile
from policies.systemd.settings import EnvFileRef, Place, Settings, read
from policies.systemd.specifiers import SYSTEM

MANAGER = "(manager environment)"


class Overridden(Model):
    """An assignment that does not count, because something later wins or takes it away."""

    file: str
    line: int
    value: str


class Effective(Model):
    """The answer for one variable. `value` None: not in the environment.

    `certain` is false when something that could change the answer could not be read; `starts` is false when systemd
    would refuse to start the unit at all (a mandatory environment file is missing or broken, or the unit itself is).
    """

    variable: str
    value: str | None
    decided_by: Place | None
    overridden: tuple[Overridden, ...]
    warnings: tuple[Finding, ...]
    certain: bool = True
    starts: bool = True


def effective(
    fragment: FileText,
    dropins: Sequence[FileText],
    env_files: Mapping[str, FileText],
    unit_name: str,
    variable: str,
    manager_env: Mapping[str, str],
    *,
    specifiers: Mapping[str, str] = SYSTEM,
) -> Effective:
    """The value of `variable` after the next start.

    `env_files` maps the paths of EnvironmentFile= (after specifiers and patterns) to their text; one that is not in it
    is taken for missing.
    """
    settings = read(fragment, dropins, unit_name, specifiers)
    return decide(settings, env_files, variable, manager_env)


def decide(
    settings: Settings, env_files: Mapping[str, FileText], variable: str, manager_env: Mapping[str, str]
) -> Effective:
    """As `effective`, for settings that were read already."""
    said: list[tuple[str, Place]] = []  # in order of strength
    certain = True
    warnings = list(settings.findings)
    if any(finding.code == "unit.unreadable" for finding in warnings):
        certain = False
    starts = not settings.broken
    if variable in manager_env:
        said.append((manager_env[variable], Place(file=MANAGER, line=0)))
    gone: list[tuple[str, Place]] = []
    reset: Place | None = None
    for assignment in settings.environment:
        if assignment.name == variable:
            (gone if assignment.reset else said).append((assignment.value, assignment.place))
            reset = assignment.reset or reset
            certain = certain and (assignment.certain or assignment.reset is not None)
    for ref in settings.env_files:
        files = matches(ref, env_files)
        if not files:
            code = "optional-missing" if ref.optional else "missing"
            warnings.append(_about(code, "note" if ref.optional else "warn", ref.path, ref))
            starts = starts and ref.optional
        for file in files:
            sound = _take_file(file, ref, variable, said, warnings)
            certain = certain and sound != "unknown"
            starts = starts and (ref.optional or sound != "rejected")
    value, place = said[-1] if said else (None, reset)
    overridden = gone + said[:-1]
    for removal in settings.unset:
        if (value is None and removal.word == variable) or (value is not None and removal.removes(variable, value)):
            overridden = gone + said
            value, place = None, removal.place
            break
    return Effective(
        variable=variable,
        value=value,
        decided_by=place,
        overridden=tuple(Overridden(file=p.file, line=p.line, value=v) for v, p in overridden),
        warnings=tuple(warnings),
        certain=certain,
        starts=starts,
    )


def matches(ref: EnvFileRef, env_files: Mapping[str, FileText]) -> list[FileText]:
    """The files that exist for one EnvironmentFile= directive, a pattern expanded in sorted order."""
    if ref.path in env_files:
        found = [env_files[ref.path]]
    elif is_pattern(ref.path):
        # each part of a path is matched alone: a star does not cross a slash, nor stand for a leading dot
        parts = [re.compile(translate(part)) for part in ref.path.split("/")]
        found = [env_files[path] for path in sorted(env_files) if _fits(path, ref.path, parts)]
    else:
        found = []
    return [file for file in found if file.exists or file.error is not None]


def is_pattern(path: str) -> bool:
    """Whether the path has to be expanded."""
    return re.search(r"[*?\[]", path) is not None


def _fits(path: str, pattern: str, parts: Sequence[re.Pattern[str]]) -> bool:
    names, wanted = path.split("/"), pattern.split("/")
    return len(names) == len(parts) and all(
        part.fullmatch(name) and (name[:1] != "." or shape[:1] == ".")
        for part, name, shape in zip(parts, names, wanted, strict=True)
    )


def _about(code: str, effect: Effect, file: str, ref: EnvFileRef, error: str | None = None) -> Finding:
    values: dict[str, str | int | float | None] = {"file": file, "asked_in": f"{ref.place.file}:{ref.place.line}"}
    if error is not None:
        values["error"] = error
    return Finding(code=f"envfile.{code}", effect=effect, values=values)


def _take_file(
    file: FileText, ref: EnvFileRef, variable: str, said: list[tuple[str, Place]], warnings: list[Finding]
) -> str:
    """Adds what one file says: "read", "rejected" (systemd takes nothing from it) or "unknown" (not readable)."""
    if file.text is None:
        warnings.append(_about("unreadable", "warn", file.path, ref, file.error or "unknown"))
        return "unknown"
    parsed = envfile.parse(file.text)
    warnings += envfile.report(file.text, file.path)
    if parsed.rejected is not None:
        return "rejected"
    said += [(x.value, Place(file=file.path, line=x.line)) for x in parsed.lines if x.used and x.name == variable]
    return "read"
