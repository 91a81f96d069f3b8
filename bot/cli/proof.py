"""`clawback proof --proc DIR --pid PID VAR=VALUE`: whether a process and its children have a variable."""

from __future__ import annotations

import stat
import sys
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import JsonValue

from bot.cli.output import emit
from policies.facts import ProcessEnv
from policies.proof import Answer, agrees, answer_of, environment_verdict
from policies.systemd.text import is_name, quoted

ENVIRON_MAX_BYTES = 4 * 1024 * 1024
WORDS = {
    "unreadable": "unreadable (all NUL: the process renamed itself)",
    "forbidden": "forbidden (no permission to read its environment)",
    "vanished": "vanished (it ended while it was looked at)",
}


@dataclass(frozen=True, slots=True)
class Stat:
    """What /proc/PID/stat or status says; `started` is None where only status was there."""

    parent: int
    state: str
    started: int | None


class ProcTree:
    """A folder that looks like /proc."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pids = sorted(int(p.name) for p in folder.iterdir() if p.name.isascii() and p.name.isdigit())

    def stat(self, pid: int) -> Stat | None:
        """Parent, state and start time; None where the tree does not say."""
        data = self._read(f"{pid}/stat")
        fields = data.rpartition(b")")[2].split() if data is not None else []
        if len(fields) >= 20 and fields[1].isdigit():
            return Stat(int(fields[1]), fields[0].decode("ascii", "replace"), int(fields[19]))
        lines = (self._read(f"{pid}/status") or b"").decode("utf-8", "replace").splitlines()
        said = dict(line.split(":", 1) for line in lines if ":" in line)
        parent = said.get("PPid", "").strip()
        return Stat(int(parent), said.get("State", " ?").strip()[:1], None) if parent.isdigit() else None

    def family(self, pid: int) -> tuple[list[int], str | None]:
        """The descendants of a process, and a warning when they had to be guessed."""
        stats = {p: s for p in self.pids if (s := self.stat(p)) is not None}
        if any(p != pid for p in stats):
            return self._closure(pid, {p: s.parent for p, s in stats.items()}), None
        listed = self._listed_children(pid)
        if listed is not None:
            return listed, None
        others = [p for p in self.pids if p != pid]
        if stats or not others:
            return [], None
        return others, (
            f"no stat or status file below '{self._folder}' says whose child a process is:"
            f" every other process there is taken for a child of {pid}"
        )

    def ask(self, pid: int, variable: str) -> tuple[Answer, str | None]:
        """What one process says about a variable. A start time that changes meanwhile means another process."""
        before = self.stat(pid)
        place = self._folder / str(pid) / "environ"
        try:
            with place.open("rb") as source:
                data = source.read(ENVIRON_MAX_BYTES)
            # root may read a file that nobody is allowed to read; the answer is that of the permission
            if not stat.S_IMODE(place.stat().st_mode) & 0o444:
                return "forbidden", None
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
            return "vanished", None
        except OSError:
            return "forbidden", None
        after = self.stat(pid)
        if before is not None and (after is None or after.started != before.started or after.state in ("Z", "X")):
            return "vanished", None
        return answer_of(data, variable)

    def name(self, pid: int) -> str:
        """The process's short name; empty where the tree does not say."""
        return (self._read(f"{pid}/comm") or b"").decode("utf-8", "replace").strip()

    def _closure(self, pid: int, parents: dict[int, int]) -> list[int]:
        found: set[int] = set()
        grown = True
        while grown:
            more = {p for p, parent in parents.items() if (parent == pid or parent in found) and p != pid} - found
            found |= more
            grown = bool(more)
        return sorted(found)

    def _listed_children(self, pid: int) -> list[int] | None:
        """Descendants by PID/task/*/children; None where the tree has no such files."""
        found: list[int] = []
        todo = [pid]
        seen_file = False
        while todo:
            for place in sorted((self._folder / str(todo.pop()) / "task").glob("*/children")):
                seen_file = True
                words = place.read_text(encoding="ascii", errors="replace").split()
                fresh = [int(w) for w in words if w.isdigit() and int(w) not in found and int(w) != pid]
                found += fresh
                todo += fresh
        return sorted(found) if seen_file else None

    def _read(self, path: str) -> bytes | None:
        try:
            with (self._folder / path).open("rb") as source:
                return source.read(65536)
        except OSError:
            return None


@click.command(name="proof")
@click.option(
    "--proc",
    "folder",
    default=Path("/proc"),
    show_default=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder that looks like /proc.",
)
@click.option("--pid", required=True, type=click.IntRange(min=1), help="The main process.")
@click.argument("wanted", metavar="VAR=VALUE")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: verdict, processes, warnings.")
def command(folder: Path, pid: int, wanted: str, *, as_json: bool) -> None:
    """Whether a process and its children have VAR=VALUE in their environment, byte for byte.

    VAR alone asks whether they all lack it. Exits 0 when it is live, 1 when it is not or cannot be proven.
    """
    variable, equals, text = wanted.partition("=")
    value = text if equals else None
    if not is_name(variable):
        raise click.UsageError(f"'{quoted(wanted)}' is not VAR=VALUE, expected e.g. LOG_LEVEL=info")
    try:
        tree = ProcTree(folder)
    except OSError as error:
        raise click.UsageError(f"'{folder}' cannot be read: {(error.strerror or 'unknown').lower()}") from error
    children, warning = tree.family(pid)
    absent = pid not in tree.pids
    if absent:
        warning = f"there is no process {pid} below '{folder}'"
    processes = [_asked(tree, p, variable, main=p == pid) for p in (pid, *children)]
    verdict = environment_verdict(value, processes)
    emit(
        {
            "verdict": verdict,
            "variable": variable,
            "wanted": value,
            "processes": [_entry(p) for p in processes],
            "warnings": [warning] if warning else [],
        },
        as_json,
        _told(warning, absent, value, processes, verdict),
    )
    sys.exit(0 if verdict == "live" else 1)


def _told(warning: str | None, absent: bool, value: str | None, processes: list[ProcessEnv], verdict: str) -> list[str]:
    end = summary(verdict, value, processes)
    if absent:
        return [f"{warning}", end]
    return [*([f"warning: {warning}"] if warning else []), *_lines(value, processes), end]


def _asked(tree: ProcTree, pid: int, variable: str, *, main: bool) -> ProcessEnv:
    answer, value = tree.ask(pid, variable)
    return ProcessEnv(pid=pid, name=tree.name(pid), main=main, variable=variable, answer=answer, value=value)


def _entry(process: ProcessEnv) -> JsonValue:
    return {
        "pid": process.pid,
        "name": process.name,
        "main": process.main,
        "answer": process.answer,
        "value": process.value,
    }


def _lines(wanted: str | None, processes: list[ProcessEnv]) -> list[str]:
    lines = []
    for process in processes:
        who = f"pid {process.pid}{f' {process.name}' if process.name else ''}{' (main)' if process.main else ''}"
        said = WORDS.get(process.answer, process.answer)
        if process.answer == "present":
            same = "" if agrees(process, wanted) else ", not what is wanted"
            said = f"present = {quoted(process.value or '')!r}{same}"
        lines.append(f"{who}: {said}")
    return lines


def summary(verdict: str, wanted: str | None, processes: list[ProcessEnv]) -> str:
    """The last line: the verdict, and what keeps it from being more."""
    others = [p for p in processes if not p.main]
    silent = [p for p in others if p.answer in ("unreadable", "forbidden")]
    differ = [p for p in processes if p.answer in ("present", "absent") and not agrees(p, wanted)]
    parts = [f"verdict: {verdict.replace('_', ' ')}"]
    if verdict == "live" and silent:
        whole = len(silent) == len(others)
        parts = [
            f"verdict: live in the main process; {'children' if whole else f'{len(silent)} of {len(others)} children'}"
        ]
        parts[0] += f" {' and '.join(sorted({p.answer for p in silent}))}"
    elif silent:
        parts.append(f"{len(silent)} of {len(others)} children cannot be read")
    if differ and verdict != "live":
        parts.append("not so in pid " + ", ".join(str(p.pid) for p in differ))
    return "; ".join(parts)
