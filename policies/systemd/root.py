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
    """The value with which the unit of this tree would start; None when there is no such unit."""
    if files.fragment is None:
        return None
    settings = read(files.fragment, files.dropins, files.name, SYSTEM)
    return decide(settings, env_files(tree, settings), variable, manager_env or {})
