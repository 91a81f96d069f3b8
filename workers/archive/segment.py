"""One file of the archive: its name, its lines, and how they are read back."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from policies.errors import ArchiveBroken
from policies.events import GENESIS, stored_digest
from policies.model import Model

BLOCK = 65536
NAME = re.compile(r"\d{4}-\d{2}-\d{2}\.jsonl")


class Anchor(Model):
    """The first line: the entry before the first one here. after_seq 0 and GENESIS: there is none."""

    archive: Literal[1] = 1
    day: str
    after_seq: int
    prev: str

    def line(self) -> bytes:
        """As it is written."""
        return json.dumps(self.model_dump(), sort_keys=True, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of the archive as it stands there. `whole`: its text fits its hash."""

    file: str
    number: int
    seq: int
    prev: str
    hash: str
    at: float
    text: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is neither an anchor nor an entry."""

    file: str
    number: int


@dataclass(frozen=True, slots=True)
class Torn:
    """Bytes behind the last whole line: a write that was cut off."""

    file: str
    number: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Anchored:
    """An anchor where one must be."""

    file: str
    anchor: Anchor


Found = Anchored | Line | Unreadable | Torn


def segments(folder: Path) -> list[Path]:
    """The files of an archive, oldest first; empty when there is no archive.

    Raises: ArchiveBroken when the folder cannot be read.
    """
    try:
        return sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        message = f"the archive `{folder}` cannot be read: {error.strerror}"
        raise ArchiveBroken(message, hint="let its owner run this") from error


def day_of(at: float) -> str:
    """The day (UTC) of a moment. Units: epoch seconds."""
    return f"{datetime.fromtimestamp(at, tz=UTC):%Y-%m-%d}"


def lines(path: Path) -> Iterator[Found]:
    """Everything that stands in a file, in order.

    Raises: ArchiveBroken when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                yield _found(path.name, number, raw)
    except OSError as error:
        message = f"`{path}` cannot be read: {error.strerror}"
        raise ArchiveBroken(message, hint="let its owner run this") from error


def entry_line(file: str, number: int, text: str) -> Line | None:
    """The entry that a line holds; None when it holds none."""
    try:
        body = json.loads(text)
        seq, prev, digest, at = body["seq"], body["prev"], body["hash"], body["at"]
        whole = stored_digest(text) == digest
    except (ValueError, KeyError, TypeError):
        return None
    fits = isinstance(seq, int) and isinstance(prev, str) and isinstance(digest, str) and isinstance(at, int | float)
    return Line(file, number, seq, prev, digest, float(at), text, whole) if fits else None


def last_line(path: Path) -> tuple[int, bytes | None]:
    """Where the last whole line ends, and the line; None when there is none."""
    with path.open("rb") as file:
        size = start = file.seek(0, os.SEEK_END)
        tail = b""
        while start > 0:
            start = max(0, start - BLOCK)
            file.seek(start)
            tail = file.read(min(BLOCK, size - start - len(tail))) + tail
            end = tail.rfind(b"\n")
            before = tail.rfind(b"\n", 0, end) if end > 0 else -1
            if end >= 0 and (before >= 0 or start == 0):
                return start + end + 1, tail[before + 1 : end]
    return 0, None


def _found(file: str, number: int, raw: bytes) -> Found:
    if not raw.endswith(b"\n"):
        return Torn(file, number, len(raw))
    text = raw[:-1].decode("utf-8", "replace")
    if number == 1:
        try:
            return Anchored(file, Anchor.model_validate_json(text))
        except ValidationError:
            return Unreadable(file, number)
    return entry_line(file, number, text) or Unreadable(file, number)


FIRST = Anchor(day="", after_seq=0, prev=GENESIS)
