"""Writing the archive: entries behind the last one that is there, on the disk before it is said.

A write that was cut off at any byte is taken back when the archive is opened again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from policies.errors import ArchiveBroken, SettingsError
from policies.finding import Finding
from workers.archive.segment import FIRST, Anchor, Anchored, day_of, entry_line, last_line, lines, segments


class Archive:
    """Holds the folder's lock until it is closed. `seq` and `hash` are of the last entry that is kept.

    Raises: SettingsError when the folder cannot be used or is in use, ArchiveBroken when its last file is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.repaired: Finding | None = None
        self.seq, self.hash, self.day = 0, FIRST.prev, ""
        self._file = -1
        self._lock = _locked(self.folder)
        try:
            self._resume()
        except BaseException:
            self.close()
            raise

    def append(self, entries: Iterable[tuple[int, str]]) -> int:
        """Write entries (ledger place, text as it is stored) and wait for the disk; how many there were.

        Raises: ArchiveBroken when one does not follow the last, or cannot be written. Open the archive again then.
        """
        count = 0
        pending = bytearray()
        for number, text in entries:
            line = entry_line("the ledger", number, text)
            if line is None or not line.whole or (line.seq, line.prev) != (self.seq + 1, self.hash) or "\n" in text:
                message = f"entry {number} of the ledger does not follow entry {self.seq} of the archive"
                raise ArchiveBroken(message, hint="nothing was written over: run `clawback audit verify`")
            day = max(self.day, day_of(line.at))
            if day != self.day:
                self._write(pending)
                pending.clear()
                self._begin(Anchor(day=day, after_seq=self.seq, prev=self.hash))
            pending += text.encode() + b"\n"
            self.seq, self.hash = line.seq, line.hash
            count += 1
        self._write(pending)
        return count

    def close(self) -> None:
        """Give the folder back."""
        for descriptor in (self._file, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lock = -1

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _resume(self) -> None:
        found = segments(self.folder)
        while found:
            path = found[-1]
            size = path.stat().st_size
            end, last = last_line(path)
            if end < size:
                self._repair(path, end, size - end)
            if last is not None:
                self._continue(path, last)
                return
            path.unlink()  # not even its anchor had come to the disk
            _sync(self.folder)
            found.pop()

    def _repair(self, path: Path, end: int, cut_bytes: int) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, end)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        values: dict[str, str | int | float | None] = {"file": path.name, "size": cut_bytes}
        self.repaired = Finding(code="archive.repaired", effect="note", values=values)

    def _continue(self, path: Path, last: bytes) -> None:
        first = next(iter(lines(path)))
        line = entry_line(path.name, 0, last.decode("utf-8", "replace"))
        if not isinstance(first, Anchored) or (line is None and first.anchor.line() != last + b"\n"):
            which = "last" if isinstance(first, Anchored) else "first"
            message = f"`{path}` is damaged: its {which} line cannot be read"
            raise ArchiveBroken(message, hint="run `clawback audit verify`")
        if line is not None and not line.whole:
            raise ArchiveBroken(f"the last line of `{path}` was edited", hint="run `clawback audit verify`")
        self.seq = line.seq if line is not None else first.anchor.after_seq
        self.hash = line.hash if line is not None else first.anchor.prev
        self.day = path.name.removesuffix(".jsonl")
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def _begin(self, anchor: Anchor) -> None:
        path = self.folder / f"{anchor.day}.jsonl"
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unwritable(path, error) from error
        self._write(anchor.line())
        _sync(self.folder)
        self.day = anchor.day

    def _write(self, data: bytes | bytearray) -> None:
        view = memoryview(bytes(data))
        try:
            while view:
                view = view[os.write(self._file, view) :]
            if data:
                os.fsync(self._file)
        except OSError as error:
            raise _unwritable(self.folder, error) from error


def _locked(folder: Path) -> int:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        message = f"the archive `{folder}` cannot be used: {error.strerror}"
        raise SettingsError(message, hint="choose another folder with CLAWBACK_ARCHIVE") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        message = f"the archive `{folder}` is being written by process {holder}"
        raise SettingsError(message, hint="one `clawback archive` for one folder: `clawback up` runs one") from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _sync(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> ArchiveBroken:
    return ArchiveBroken(
        f"`{path}` cannot be written: {error.strerror}", hint="see that the disk is there and has room"
    )
