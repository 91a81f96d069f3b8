"""A file system in memory for units, drop-ins and environment files, and texts as facts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.facts import FileText


def file_text(path: str, text: str) -> FileText:
    """A file that could be read."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return FileText(path=path, exists=True, text=text, sha256=digest, mode=0o644, owner="0:0")


def no_file(path: str) -> FileText:
    """A file that does not exist."""
    return FileText(path=path, exists=False, text=None, sha256=None, mode=None, owner=None)


@dataclass
class MemoryTree:
    """Files by absolute path, links by absolute path to an absolute target."""

    files: Mapping[str, str]
    links: Mapping[str, str] = field(default_factory=dict)

    def read(self, path: str) -> FileText:
        target = self.links.get(path, path)
        if target == "/dev/null":
            return file_text(path, "")
        return file_text(path, self.files[target]) if target in self.files else no_file(path)

    def names(self, path: str) -> tuple[str, ...]:
        folder = path.rstrip("/") + "/"
        below = [p[len(folder) :] for p in (*self.files, *self.links) if p.startswith(folder)]
        return tuple(sorted({name.split("/")[0] for name in below}))

    def link(self, path: str) -> str | None:
        return self.links.get(path)
