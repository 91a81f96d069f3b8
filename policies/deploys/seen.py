"""What was seen of a service's versions on one host: the link, the releases, what was read back. No judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policies.model import Model


class Link(Model):
    """What the symlink of the releases names. outside: it leads to no folder of a release; `target` is its text.

    exists: the release that it names is there.
    """

    state: Literal["link", "absent", "not-a-link", "outside"]
    release: str | None
    target: str | None
    exists: bool


class Listed(Model):
    """A release that is there. at: its manifest's age, epoch seconds."""

    name: str
    at: float


class Verified(Model):
    """A release against its manifest. `error` says why it could not be compared; `extra` files it does not list."""

    ref: str
    exists: bool
    manifest_sha256: str | None = None
    files: int = 0
    bytes: int = 0
    missing: int = 0
    differing: int = 0
    extra: int = 0
    names: tuple[str, ...] = ()  # of what is missing or differs, at most some
    error: str | None = None

    @property
    def whole(self) -> bool:
        """Every file has the digest that the manifest gives."""
        return self.exists and self.error is None and not self.missing and not self.differing


class Difference(Model):
    """What a release holds against another one, by their manifests. names: at most some, with +, ~ or - in front."""

    against: str
    added: int
    changed: int
    removed: int
    names: tuple[str, ...]


class Stands(Model):
    """A process of the unit, and the release in which it stands or from which its program was started."""

    pid: int
    main: bool
    release: str


class ReleasesSeen(Model):
    """One look at a host's release folders."""

    link: Link
    releases: tuple[Listed, ...]  # the newest first
    verified: tuple[Verified, ...]  # in the order asked
    difference: Difference | None
    changes: str | None  # what the release says of itself, its first lines
    runs: tuple[Stands, ...]
    at: float

    def of(self, ref: str) -> Verified | None:
        """What was found of a release; None where it was not asked for."""
        return next((found for found in self.verified if found.ref == ref), None)


class TextRead(Model):
    """The text of a file, or what a program wrote. text None: there is none, `error` says why."""

    text: str | None
    error: str | None
    at: float
    status: int | None = None  # how the program ended


class VersionSeen(Model):
    """What was read back as the running version, and where. text None: nothing, and `error` says why."""

    text: str | None
    source: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that is known of one instance's version. `now` None: not known, or nothing.

    releases: where the strategy has folders. checks: by REF, what the declared check of a command answered.
    """

    instance: str
    now: str | None
    version: VersionSeen
    releases: ReleasesSeen | None = None
    checks: Mapping[str, TextRead] = field(default_factory=dict)

    def of(self, ref: str) -> Verified | None:
        """What was found of a release; None where there are none."""
        return self.releases.of(ref) if self.releases is not None else None
