"""A unit's files below a file-system root: which file is the unit, which drop-ins count and in which order.

Pure: the tree is given as a small reader. Source: systemd 252, systemd.unit(5) and src/basic/unit-file.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import Protocol

from policies.facts import FileText
from policies.finding import Finding
from policies.systemd import unitfile, words
from policies.systemd.effective import Effective, decide, is_pattern
from policies.systemd.settings import Settings, read
from policies.systemd.specifiers import SYSTEM

SEARCH_PATH = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
MANAGER_FOLDERS = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd")
_UNIT_NAME = re.compile(r"[A-Za-z0-9:_.\\-]+(?:@[A-Za-z0-9:_.\\@-]*)?\.service")


class Tree(Protocol):
    """A file system seen from its own root; paths are absolute in it."""

    def read(self, path: str) -> FileText:
        """The file, symbolic links followed inside the tree; one that leads to /dev/null reads as empty text."""

    def names(self, path: str) -> tuple[str, ...]:
        """Entries of a folder; empty when there is none."""

    def link(self, path: str) -> str | None:
        """Where a symbolic link points to, as it is written; None when it is none."""


@dataclass(frozen=True, slots=True)
class UnitFiles:
    """The files of one unit. `fragment` None: there is no such unit. `masked`: it is linked to /dev/null or empty."""

    name: str
    fragment: FileText | None
    dropins: tuple[FileText, ...]
    masked: bool


def unit_name(text: str) -> str | None:
    """A full service name: `.service` is added where no type is given; None when it cannot be a unit's name."""
    name = text if text.endswith(".service") else f"{text}.service"
    return name if _UNIT_NAME.fullmatch(name) and len(name) <= 255 else None


def template(name: str) -> str | None:
    """`a@x.service` as `a@.service`; None for a name without an instance."""
    prefix, at, rest = name.partition("@")
    return f"{prefix}@.service" if at and rest != ".service" else None


def load(tree: Tree, name: str, search_path: Iterable[str] = SEARCH_PATH) -> UnitFiles:
    """Finds the unit and its drop-ins in the order in which systemd reads them."""
    folders = tuple(search_path)
    names = [name]
    path = _find(tree, name, folders)
    if path is not None:
        alias = (tree.link(path) or "").rpartition("/")[2]
        if alias not in ("", name, template(name)) and unit_name(alias) == alias:
            names.append(alias)
    fragment = tree.read(path) if path is not None else None
    masked = fragment is not None and fragment.text is not None and not fragment.text
    dropins = tuple(tree.read(p) for p in dropin_paths(tree, names, folders))
    return UnitFiles(name, fragment, dropins, masked)


def _find(tree: Tree, name: str, folders: Iterable[str]) -> str | None:
    listings = [(folder, frozenset(tree.names(folder))) for folder in folders]
    for wanted in (name, template(name)):
        for folder, entries in listings:
            if wanted is not None and wanted in entries:
                return f"{folder}/{wanted}"
    return None


def dropin_paths(tree: Tree, names: Iterable[str], folders: Iterable[str]) -> list[str]:
    """Each file name counts once, from the first folder that has it; then all are sorted by file name."""
    searched = tuple(folders)
    chosen: dict[str, str] = {}
    for group in [*(dropin_folders(name) for name in names), ["service"]]:
        for folder in searched:
            for name in group:
                place = f"{folder}/{name}.d"
                for entry in tree.names(place):
                    if entry.endswith(".conf") and not entry.startswith("."):
                        chosen.setdefault(entry, f"{place}/{entry}")
    return [chosen[entry] for entry in sorted(chosen, key=lambda e: e.encode("utf-8", "surrogateescape"))]


def dropin_folders(name: str) -> list[str]:
    """Names of the `.d` folders of one unit in systemd's order: itself, its template, then shorter prefixes.

    A template is shortened to a plain name (`a-b@.service` to `a-.service`), an instance keeps its instance.
    """
    names = [name]
    prefix, _, instance = name.removesuffix(".service").partition("@")
    if instance:
        names += dropin_folders(f"{prefix}@.service")
    cut = prefix.removesuffix("-").rfind("-")
    if cut > 0:
        names += dropin_folders(prefix[: cut + 1] + (f"@{instance}" if instance else "") + ".service")
    return list(dict.fromkeys(names))


def env_files(tree: Tree, settings: Settings) -> dict[str, FileText]:
    """The texts of all EnvironmentFile= directives, patterns expanded in the tree."""
    found: dict[str, FileText] = {}
    for ref in settings.env_files:
        paths = expand(tree, ref.path) if is_pattern(ref.path) else [ref.path]
        found.update({path: tree.read(path) for path in paths})
    return found


def expand(tree: Tree, pattern: str) -> list[str]:
    """Paths of the tree that fit the pattern, sorted."""
    paths = [""]
    for part in pattern.strip("/").split("/"):
        fits = re.compile(translate(part)).fullmatch
        paths = [
            f"{path}/{entry}"
            for path in paths
            for entry in sorted(tree.names(path or "/"))
            if fits(entry) and (part.startswith(".") or not entry.startswith("."))
        ]
    return paths


def effective_in(
    tree: Tree, files: UnitFiles, variable: str, manager_env: Mapping[str, str] | None = None
) -> Effective | None:
    """The value with which the unit of this tree would start; None when there is no such unit.

    `manager_env` None: systemd's own environment is not known, and where a value may come from it that is said.
    """
    if files.fragment is None:
        return None
    settings = read(files.fragment, files.dropins, files.name, SYSTEM)
    found = decide(settings, env_files(tree, settings), variable, manager_env or {})
    removed = found.decided_by is not None and found.decided_by in {one.place for one in settings.unset}
    if manager_env is not None or found.value is not None or removed:
        return found  # whatever the manager has is weaker than the unit
    told = [*_default_environment(tree, variable), *_passed(settings, variable)]
    if not told:
        return found
    return found.model_copy(update={"certain": False, "warnings": (*found.warnings, *told)})


def _passed(settings: Settings, variable: str) -> list[Finding]:
    places = [one.place for one in settings.passed if one.word == variable]
    return [_may_come_from("unit.passed", place.file, place.line, variable) for place in places[-1:]]


def _default_environment(tree: Tree, variable: str) -> list[Finding]:
    """The last assignment of the variable by DefaultEnvironment= in the manager's own files.

    Source: systemd-system.conf(5); drop-ins of all folders are read after the main file, sorted by name.
    """
    folders = [
        (f"{base}/system.conf.d", name) for base in MANAGER_FOLDERS for name in tree.names(f"{base}/system.conf.d")
    ]
    chosen: dict[str, str] = {}
    for folder, name in folders:
        if name.endswith(".conf"):
            chosen.setdefault(name, f"{folder}/{name}")
    main = next((f"{base}/system.conf" for base in MANAGER_FOLDERS if "system.conf" in tree.names(base)), None)
    found: list[Finding] = []
    for path in [*([main] if main else []), *(chosen[name] for name in sorted(chosen))]:
        # the same syntax as a unit's, in a section of another name
        text = (tree.read(path).text or "").replace("[Manager]", "[Service]")
        for directive in unitfile.parse(text, path).directives:
            if directive.key != "DefaultEnvironment":
                continue
            if not directive.value:
                found = []
            for word in words.split(directive.value).words:
                name, equals, value = word.text.partition("=")
                if equals and name == variable:
                    line = directive.line_at(word.offset)
                    found = [_may_come_from("unit.manager-environment", path, line, variable, value=value)]
    return found


def _may_come_from(code: str, file: str, line: int, name: str, **values: str) -> Finding:
    return Finding(code=code, effect="warn", values={"file": file, "line": line, "name": name, **values})
