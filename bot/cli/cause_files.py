"""Metrics texts on disk as scrapes: `FILE` or `FILE@TIME`, and which time counts where none is given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

from bot.messages import sentence
from bot.terminal import plain
from policies.errors import SettingsError
from policies.finding import Finding
from policies.metrics.samples import Scrape, read_scrape
from policies.metrics.window import TOGETHER_S
from policies.states.work import is_engine

MAX_BYTES = 64 * 1024 * 1024
HINT = "write FILE, FILE@1796119200 or FILE@2026-12-01T10:00:00Z"
epoch_form = re.compile(r"\d{1,11}(\.\d+)?")
OF_A_PROCESS = ("process_", "python_", "go_")
INSTANCE = "engine@files"


@dataclass(frozen=True, slots=True)
class Dump:
    """One file as a scrape. said: where its time comes from."""

    path: Path
    scrape: Scrape
    said: str


@dataclass(frozen=True, slots=True)
class Moment:
    """Files of one time, read together: an engine's and its router's, or one that holds all."""

    dumps: tuple[Dump, ...]

    @property
    def at(self) -> float:
        """The newest of their times. Units: epoch seconds."""
        return max(dump.scrape.at for dump in self.dumps)

    @property
    def source(self) -> str:
        """The files."""
        return ", ".join(str(dump.path) for dump in self.dumps)

    @property
    def scrape(self) -> Scrape:
        """All samples, as if one place had answered; what a process tells of itself is the engine's."""
        first, *others = sorted(self.dumps, key=lambda dump: not is_engine(dump.scrape))
        added = (s for dump in others for s in dump.scrape.samples if not s.name.startswith(OF_A_PROCESS))
        return Scrape(INSTANCE, self.source, self.at, (*first.scrape.samples, *added))


def read_dump(given: str) -> Dump:
    """A file with its time: the one that is given, else the newest that its lines carry, else that of the file.

    Raises: SettingsError where the file or the time cannot be read.
    """
    path, at = _split(given)
    text, modified = _read(path)
    found = read_scrape(text, instance=INSTANCE, url=str(path), at=modified)
    if isinstance(found, Finding):
        raise SettingsError(plain(sentence(found), str), hint="give a text in Prometheus' exposition format")
    if not found.samples:
        raise SettingsError(f"`{path}` holds no sample, expected a metrics text", hint="save what GET /metrics answers")
    if at is not None:
        # the time that a person gives is that of the whole file
        samples = tuple(replace(sample, at=None) for sample in found.samples)
        return Dump(path, replace(found, at=at, samples=samples), "as given")
    own = [sample.at for sample in found.samples if sample.at is not None]
    if own:
        return Dump(path, replace(found, at=max(own)), "of its lines")
    return Dump(path, found, "when the file was written")


def moments_of(given: Sequence[str]) -> tuple[Moment, ...]:
    """Files as moments in time order: those that are less than two seconds apart are one.

    Raises: SettingsError.
    """
    dumps = sorted((read_dump(one) for one in given), key=lambda dump: dump.scrape.at)
    groups: list[list[Dump]] = []
    for dump in dumps:
        if groups and dump.scrape.at - groups[-1][-1].scrape.at < TOGETHER_S:
            groups[-1].append(dump)
        else:
            groups.append([dump])
    found = tuple(Moment(tuple(group)) for group in groups)
    for moment in found:
        _check_distinct(moment)
    return found


def _check_distinct(moment: Moment) -> None:
    """Files that are read together are of one engine and what stands before it: no series is in two of them."""
    names = [(sample.name, *sorted(sample.labels.items())) for sample in moment.scrape.samples]
    if len(names) != len(set(names)):
        twice = next(name[0] for name in names if names.count(name) > 1)
        raise SettingsError(
            f"{moment.source} are less than {TOGETHER_S:g} s apart and both hold {twice}, expected files of one moment",
            hint="give files of one engine and its router, or their times: FILE@2026-12-01T10:00:00Z",
        )


def _split(given: str) -> tuple[Path, float | None]:
    """A name that exists as it stands is a file without a time, whatever it holds."""
    name, mark, text = given.rpartition("@")
    if not mark or Path(given).exists():
        return Path(given), None
    return Path(name), _time(text, given)


def _time(text: str, given: str) -> float:
    """Epoch seconds, or ISO 8601; without a zone it is UTC."""
    if epoch_form.fullmatch(text):
        return float(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(
            f"`{text}` of `{given}` is no time, expected epoch seconds or ISO 8601", hint=HINT
        ) from error
    found = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    if not isfinite(found) or found < 0:
        raise SettingsError(f"`{text}` of `{given}` is before 1970, expected a later time", hint=HINT)
    return found


def _read(path: Path) -> tuple[str, float]:
    try:
        with path.open("rb") as source:
            data = source.read(MAX_BYTES + 1)
            modified = path.stat().st_mtime
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise SettingsError(f"`{path}` cannot be read ({why}), expected a metrics text", hint=HINT) from error
    if len(data) > MAX_BYTES:
        raise SettingsError(f"`{path}` is larger than {MAX_BYTES} bytes", hint="give the answer of one /metrics")
    try:
        return data.decode("utf-8"), modified
    except UnicodeDecodeError as error:
        raise SettingsError(f"`{path}` is not utf-8", hint="save it as utf-8") from error
