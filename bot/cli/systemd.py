"""`clawback systemd effective`: the value a unit would start with, and the line that decides it."""

from __future__ import annotations

import hashlib
import html
import os
import stat
import sys
from pathlib import Path

import click
from pydantic import JsonValue

from bot.cli.output import emit
from bot.messages import sentence
from policies.errors import NotFound
from policies.facts import FileText
from policies.finding import Finding
from policies.systemd import root
from policies.systemd.effective import Effective
from policies.systemd.text import is_name, quoted

FILE_MAX_BYTES = 1024 * 1024
LINKS_MAX = 40  # Source: path_resolution(7)
FINDING_CODES_SAID = 200  # warnings of a hostile tree


class RootTree:
    """A folder of this machine as a file system's root. Links are followed inside it and never lead out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, path: str) -> FileText:
        """The file under its path in the tree; `error` says why it could not be read."""
        place = self._resolved(path)
        if place == "/dev/null":
            return self._text(path, b"", None)
        if place is None:
            return _unread(path, exists=False, error=None)
        try:
            with (self._folder / place.lstrip("/")).open("rb") as source:
                info = os.fstat(source.fileno())
                if not stat.S_ISREG(info.st_mode):
                    return _unread(path, exists=True, error="not-a-file")
                data = source.read(FILE_MAX_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return _unread(path, exists=False, error=None)
        except IsADirectoryError:
            return _unread(path, exists=True, error="not-a-file")
        except OSError:
            return _unread(path, exists=True, error="forbidden")
        if len(data) > FILE_MAX_BYTES:
            return _unread(path, exists=True, error="too-large")
        return self._text(path, data, info)

    def names(self, path: str) -> tuple[str, ...]:
        """Entries of a folder of the tree; empty when there is none."""
        place = self._resolved(path)
        if place is None:
            return ()
        try:
            return tuple(sorted(os.listdir(self._folder / place.lstrip("/"))))  # noqa: PTH208 - bytes of odd names stay
        except OSError:
            return ()

    def link(self, path: str) -> str | None:
        """Where the link points to, as written; None when it is none."""
        parent, _, name = path.rpartition("/")
        place = self._resolved(parent or "/")
        if place is None:
            return None
        try:
            return os.readlink(self._folder / place.lstrip("/") / name)  # noqa: PTH115 - as it is written
        except OSError:
            return None

    def _resolved(self, path: str) -> str | None:
        """The path with every link followed, absolute ones from the tree's root; None for a loop."""
        done: list[str] = []
        todo = [part for part in path.split("/") if part not in ("", ".")][::-1]
        links = 0
        while todo:
            part = todo.pop()
            if part == "..":
                done = done[:-1]
                continue
            try:
                target = os.readlink(self._folder.joinpath(*done, part))  # noqa: PTH115 - as it is written
            except OSError:
                done.append(part)
                continue
            links += 1
            if links > LINKS_MAX:
                return None
            if target.startswith("/"):
                done = []
            todo += [piece for piece in target.split("/") if piece not in ("", ".")][::-1]
        return "/" + "/".join(done)

    def _text(self, path: str, data: bytes, info: os.stat_result | None) -> FileText:
        # surrogateescape: systemd takes broken bytes in a comment, so the parser has to see where they stand
        return FileText(
            path=path,
            exists=True,
            text=data.decode("utf-8", "surrogateescape"),
            sha256=hashlib.sha256(data).hexdigest(),
            mode=stat.S_IMODE(info.st_mode) if info is not None else None,
            owner=f"{info.st_uid}:{info.st_gid}" if info is not None else None,
        )


def _unread(path: str, *, exists: bool, error: str | None) -> FileText:
    return FileText(path=path, exists=exists, text=None, sha256=None, mode=None, owner=None, error=error)


@click.group(name="systemd")
def command() -> None:
    """What systemd would do with a unit's files."""


@command.command(name="effective")
@click.option(
    "--root",
    "folder",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The file system's root: DIR/etc/systemd/system and so on.",
)
@click.argument("unit")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: value, decided_by, overridden, warnings.")
def effective(folder: Path, unit: str, name: str, *, as_json: bool) -> None:
    """The value of the environment variable NAME with which UNIT would start.

    Exits 0 with the value (or "unset"), 1 when the unit would not start at all, 2 when there is no such unit.
    """
    full = root.unit_name(unit)
    if full is None:
        raise click.UsageError(f"'{quoted(unit)}' is not a unit name, expected e.g. engine.service or engine@0.service")
    if not is_name(name):
        raise click.UsageError(f"'{quoted(name)}' is not the name of an environment variable, expected e.g. LOG_LEVEL")
    tree = RootTree(folder)
    files = root.load(tree, full)
    answer = root.effective_in(tree, files, name)
    if answer is None:
        raise NotFound(
            f"no unit '{full}' below '{folder}'",
            hint="looked in "
            + ", ".join(p for p in root.SEARCH_PATH if p.endswith(("/etc/systemd/system", "b/systemd/system"))),
        )
    warnings = list(answer.warnings[:FINDING_CODES_SAID])
    starts = answer.starts and not files.masked
    if files.masked:
        warnings.append(Finding(code="unit.masked", effect="warn", values={"unit": full}))
    elif not starts:
        warnings.append(Finding(code="unit.will-not-start", effect="warn", values={"unit": full}))
    emit(_document(full, answer, warnings, starts=starts), as_json, _lines(answer, warnings))
    sys.exit(0 if starts else 1)


def plain(finding: Finding) -> str:
    """The sentence of a finding for a terminal."""
    return html.unescape(sentence(finding)).replace("\u2060", "")


def _document(unit: str, answer: Effective, warnings: list[Finding], *, starts: bool) -> dict[str, JsonValue]:
    decided: JsonValue = None
    if answer.decided_by is not None:
        decided = {"file": answer.decided_by.file, "line": answer.decided_by.line}
    overridden: list[JsonValue] = [
        {"file": o.file, "line": o.line, "value": quoted(o.value)} for o in answer.overridden
    ]
    said: list[JsonValue] = [
        {"code": w.code, "message": plain(w), "file": w.values.get("file"), "line": w.values.get("line")}
        for w in warnings
    ]
    return {
        "unit": unit,
        "name": answer.variable,
        "value": None if answer.value is None else answer.value,
        "decided_by": decided,
        "overridden": overridden,
        "warnings": said,
        "certain": answer.certain,
        "starts": starts,
    }


def _lines(answer: Effective, warnings: list[Finding]) -> list[str]:
    shown = "unset" if answer.value is None else f"= {answer.value!r}"
    place = answer.decided_by
    by = f", decided by {place.file}:{place.line}" if place is not None else ", nothing sets it"
    lines = [f"{answer.variable} {shown}{by}{'' if answer.certain else ' (not certain)'}"]
    lines += [f"  overridden: {o.value!r} of {o.file}:{o.line}" for o in answer.overridden]
    return [*lines, *(f"  {w.effect}: {plain(w)}" for w in warnings)]
