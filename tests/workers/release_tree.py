"""Release folders for tests: written below a folder, each with a manifest of what is in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class ReleaseTree:
    """A declared path with its releases. `fields` is what a request names of it."""

    def __init__(self, path: Path, *, folder: str = "releases", manifest: str = "manifest.json") -> None:
        self.path = path
        self.home = path if folder == "." else path / folder
        self.home.mkdir(parents=True)
        self.manifest = manifest
        self.fields: dict[str, Any] = {
            "path": str(path),
            "folder": folder,
            "current": "current",
            "manifest": manifest,
        }

    def release(self, name: str, files: Mapping[str, str], *, at: float | None = None) -> Path:
        """Write a release with its manifest, `at` so many seconds after the epoch."""
        folder = self.home / name
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        digests = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}
        if self.manifest.endswith(".json"):
            text = json.dumps({"version": name, "files": digests})
        else:
            text = "".join(f"{digest}  {path}\n" for path, digest in digests.items())
        (folder / self.manifest).write_text(text, encoding="utf-8")
        if at is not None:
            os.utime(folder / self.manifest, (at, at))
        return folder

    def sha256(self, name: str) -> str:
        """Of a release's manifest."""
        return hashlib.sha256((self.home / name / self.manifest).read_bytes()).hexdigest()

    def point(self, target: str) -> None:
        """Have the link name something, as by hand."""
        link = self.path / "current"
        link.unlink(missing_ok=True)
        link.symlink_to(target)

    @property
    def names(self) -> str:
        """What the link names."""
        return str((self.path / "current").readlink())

    @property
    def there(self) -> list[str]:
        """The folders that are there."""
        return sorted(p.name for p in self.home.iterdir() if not p.is_symlink())
