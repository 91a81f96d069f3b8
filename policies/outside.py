"""What happened to an instance that no change of ours did: files that were edited, processes and builds that moved.

Two looks at the same instance are compared. What could not be read in one of them is not compared: unknown is no
difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from policies.aftermath.version import own_version
from policies.events.entry import Entry
from policies.events.outside import Difference
from policies.events.work import GatePassed, StepDone, StepStarted
from policies.facts import FileText, Incarnation, UnitFacts
from policies.model import Model

ABSENT = "absent"
UNKNOWN = "?"


class Snapshot(Model):
    """What is remembered of one look. files: path -> sha256, `absent`, or `?` with why it could not be read."""

    at: float  # epoch seconds of the host
    incarnation: Incarnation
    files: dict[str, str] = Field(default_factory=dict)
    build: str | None = None  # version that the process itself says; None: it says none
    restarts: int | None = None  # that systemd made by itself since the unit was started

    @classmethod
    def of(cls, unit: UnitFacts) -> Snapshot:
        """Of one look: every file that systemd reads for the unit, its process and its build."""
        texts = (unit.fragment, *unit.dropins, *unit.env_files)
        files = {text.path: _digest(text) for text in texts if text.path}
        return cls(
            at=unit.at,
            incarnation=unit.incarnation,
            files=files,
            build=own_version(unit),
            restarts=unit.n_restarts,
        )

    def kept_from(self, before: Snapshot) -> Snapshot:
        """This look, with what it could not read as the one before knew it."""
        known = {p: was for p, was in before.files.items() if self.files.get(p, "").startswith(UNKNOWN)}
        return self.model_copy(update={"files": {**self.files, **known}, "build": self.build or before.build})


def differences(before: Snapshot, now: Snapshot) -> tuple[Difference, ...]:
    """What differs between two looks at one instance: files in order, then the process, then the build."""
    found: list[Difference] = []
    for path in sorted({*before.files, *now.files}):
        was, then = before.files.get(path, ABSENT), now.files.get(path, ABSENT)
        if was == then or was.startswith(UNKNOWN) or then.startswith(UNKNOWN):
            continue
        what = _file(was, then)
        found.append(Difference(what=what, name=path, was=_sha(was), now=_sha(then)))
    if before.incarnation != now.incarnation:
        found.append(_process(before, now))
    if None not in {before.build, now.build} and before.build != now.build:
        found.append(Difference(what="build", was=before.build, now=now.build))
    return tuple(found)


def not_ours(
    found: Iterable[Difference], entries: Iterable[Entry], instance: str, now: Snapshot
) -> tuple[Difference, ...]:
    """The differences that changes of ours do not account for. entries: of the changes that acted on the instance.

    A write of ours accounts for the file it wrote, where it left what is there now; a restart of ours for a process
    only when it is the very one that our gate saw, and then for the build that came with it. The command of a deploy
    accounts for whatever files it left.
    """
    written: set[str | None] = set()
    seen: set[Incarnation] = set()
    restarts = acted = commanded = False
    for entry in entries:
        event = entry.event
        if isinstance(event, StepStarted | StepDone) and event.instance == instance:
            acted = True
            restarts = restarts or event.step == "restart"
            commanded = commanded or event.step == "command"
        if isinstance(event, StepDone) and event.instance == instance and event.step == "write":
            written.add(event.sha256)
        if isinstance(event, GatePassed) and event.instance == instance and event.incarnation is not None:
            seen.add(event.incarnation)
    ours = now.incarnation in seen
    kept: list[Difference] = []
    for one in found:
        if one.what in {"edited", "appeared", "gone"}:
            by_us = acted and (one.now in written or (one.what == "gone" and None in written) or commanded)
        elif one.what == "build":
            by_us = ours
        else:
            by_us = restarts and ours
        if not by_us:
            kept.append(one)
    return tuple(kept)


def _file(was: str, now: str) -> Literal["edited", "appeared", "gone"]:
    if ABSENT not in {was, now}:
        return "edited"
    return "appeared" if was == ABSENT else "gone"


def _process(was: Snapshot, now: Snapshot) -> Difference:
    pids = {"was": _pid(was.incarnation), "now": _pid(now.incarnation)}
    if pids["now"] is None:
        return Difference(what="stopped", **pids)
    if pids["was"] is None:
        return Difference(what="started", **pids)
    by_systemd = None not in {was.restarts, now.restarts} and (now.restarts or 0) > (was.restarts or 0)
    return Difference(what="auto_restarted" if by_systemd else "restarted", **pids)


def _pid(life: Incarnation) -> str | None:
    return f"pid {life.main_pid}" if life.main_pid else None


def _sha(digest: str) -> str | None:
    return None if digest == ABSENT else digest


def _digest(text: FileText) -> str:
    if not text.exists:
        return ABSENT
    return text.sha256 if text.sha256 is not None else f"{UNKNOWN}{text.error or 'unread'}"
