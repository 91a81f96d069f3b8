"""How a service gets another version, as its entry `deploy:` of the fleet file says it. Models only.

Exactly one strategy: release folders behind a symlink, a variable in the environment, or a command on the host.
Each says how the running version is read back, and which restart orders make it live.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from policies.model import Model

REF = "{ref}"  # in an argument of a command: the version that it shall bring about
# a REF that nothing else limits: one word without a slash that cannot be an option, a folder above or a hidden one
PLAIN_REF = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}"
MOST_REF = 200  # characters
MANIFEST = "manifest.json"


class Releases(Model):
    """One folder a release, and a symlink `current` that is switched by renaming a new one over it.

    A release is `path/folder/REF`; its manifest lists the sha256 of every file in it.
    """

    kind: Literal["releases"] = "releases"
    path: str
    folder: str = "releases"  # "." where the releases lie in `path` itself
    current: str = "current"
    keep: int = 5  # newest releases that pruning leaves
    manifest: str = MANIFEST  # NAME.json, or lines as sha256sum writes them
    verify_s: float = 120.0  # how long reading every file of a release may take on a host

    def place(self, ref: str) -> str:
        """The folder of a release."""
        return f"{self.path}/{ref}" if self.folder == "." else f"{self.path}/{self.folder}/{ref}"

    @property
    def link(self) -> str:
        """The symlink that names what runs."""
        return f"{self.path}/{self.current}"


class Variable(Model):
    """The version is the value of an environment variable, written where knobs are written."""

    kind: Literal["variable"] = "variable"
    env: str
    ref: str  # a regular expression for the whole REF


class CommandLine(Model):
    """A command on the host, as an argument list that no shell sees. It must bring about the same when run twice."""

    kind: Literal["command"] = "command"
    argv: tuple[str, ...]
    undo: tuple[str, ...] = ()  # {ref} is the version before; empty: what it did cannot be undone by itself
    check: tuple[str, ...] = ()  # changes nothing and ends with 0 where REF can be had
    ref: str = PLAIN_REF
    timeout_s: float = 300.0
    user: str | None = None  # who runs it, where the login is root; None: the login itself


Strategy = Annotated[Releases | Variable | CommandLine, Field(discriminator="kind")]


class VersionSource(Model):
    """How the running version is read back: exactly one of file, command and http.

    `field` is a dotted path in the JSON of the answer, None for its whole text. `part` is a regular expression with one
    group: what of a REF the version that is read must equal; None: all of it.
    """

    file: str | None = None
    command: tuple[str, ...] = ()
    http: str | None = None
    field: str | None = None
    part: str | None = None
    timeout_s: float = 10.0

    def of(self, ref: str) -> str | None:
        """What must be read where `ref` runs; None where `part` finds nothing in it."""
        if self.part is None:
            return ref
        found = re.fullmatch(self.part, ref)
        return found[1] if found is not None else None


class DeployEntry(Model):
    """The entry `deploy:` of a service."""

    strategy: Strategy
    version: VersionSource
    restarts: tuple[str, ...]  # names of restart orders; the first is the default


def pattern(strategy: Releases | Variable | CommandLine) -> str:
    """What a REF of this strategy must match as a whole."""
    return PLAIN_REF if isinstance(strategy, Releases) else strategy.ref


def filled(argv: tuple[str, ...], ref: str) -> tuple[str, ...]:
    """The argument list with every `{ref}` replaced."""
    return tuple(argument.replace(REF, ref) for argument in argv)


def sound_ref(ref: str) -> bool:
    """Whether a text could be a REF at all: one printable word, no option, and no way up or out of a folder."""
    parts = ref.split("/")
    return (
        0 < len(ref) <= MOST_REF
        and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+:/@~-]*", ref) is not None
        and not any(part in {"", ".", ".."} for part in parts)
    )
