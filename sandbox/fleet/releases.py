"""Releases of a demo engine: folders with its program, its settings and a manifest, and the link that names one.

A good one, one that never gets well, and one whose files are not as its manifest says.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

DEPLOYED = "decode"  # the role whose program comes in releases
GOOD = "0.5.24"
BAD = "0.5.25"  # never healthy: it stays at 503
BROKEN = "0.5.26"  # one file is not as its manifest says
NEVER_S = 100_000
CHANGES = {GOOD: "decode steps are quicker\n", BAD: "a rewrite of the scheduler\n"}
MANIFEST = "manifest.json"


class EngineReleases:
    """The releases below `path`, there after `reset()`; the link names `first` until somebody switches it."""

    def __init__(self, path: Path, source: Path, first: str) -> None:
        self.path = path
        self.first = first
        self._source = source

    @property
    def current(self) -> Path:
        """The link."""
        return self.path / "current"

    @property
    def names(self) -> str:
        """The release that the link names."""
        return self.current.readlink().name

    @property
    def there(self) -> list[str]:
        """The releases that are there."""
        return sorted(entry.name for entry in (self.path / "releases").iterdir())

    def place(self, name: str) -> Path:
        """The folder of a release."""
        return self.path / "releases" / name

    def reset(self) -> None:
        """All releases as they were at first, and the link on the first of them."""
        for number, name in enumerate((self.first, GOOD, BAD, BROKEN)):
            slow: dict[str, str | float] = {"warm-s": NEVER_S} if name == BAD else {}
            self.add(name, {"version": name, **slow}, at=1_700_000_000.0 + number)
        broken = self.place(BROKEN) / "engine" / "steps.py"
        broken.write_text(broken.read_text(encoding="utf-8") + "# edited on the host\n", encoding="utf-8")
        for extra in set(self.there) - {self.first, GOOD, BAD, BROKEN}:
            shutil.rmtree(self.place(extra))
        self.point(self.first)

    def add(self, name: str, settings: Mapping[str, str | float], *, at: float) -> Path:
        """Write a release whose engine has these settings. at: the age that it shall have, epoch seconds."""
        folder = self.place(name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._source, folder / "engine", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "engine.json").write_text(json.dumps({**settings}), encoding="utf-8")
        if name in CHANGES:
            (folder / "changes").write_text(CHANGES[name], encoding="utf-8")
        files = [entry for entry in sorted(folder.rglob("*")) if entry.is_file()]
        digests = {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
        manifest = folder / MANIFEST
        manifest.write_text(json.dumps({"version": name, "files": digests}, indent=1), encoding="utf-8")
        os.utime(manifest, (at, at))
        return folder

    def point(self, name: str) -> None:
        """Switch the link by hand."""
        temporary = self.path / ".by-hand"
        temporary.symlink_to(f"releases/{name}")
        temporary.rename(self.current)
