"""Calls of the host helper about versions: look at releases, switch, prune, run a command, read a text."""

from __future__ import annotations

from collections.abc import Sequence

from policies.deploys.seen import ReleasesSeen, TextRead
from policies.deploys.strategy import Releases
from policies.model import Model
from workers.executors.systemd import SystemdHost


class Switched(Model):
    """The answer of `switch`. `already`: this step had been done before."""

    unit: str
    already: bool
    ref_before: str | None
    ref_after: str | None
    at: float


class Pruned(Model):
    """The answer of `prune`: releases that were taken away, and those that are left."""

    unit: str
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    at: float


class Ran(Model):
    """The answer of `command`. `already`: it had ended well for this step before, and was not run now."""

    unit: str
    already: bool
    status: int | None  # None: it could not be run, or was stopped; `error` says so
    error: str | None
    lines: tuple[str, ...]  # the last that it wrote; what looks like a secret is masked already on the host
    at: float


class TextAsk(Model):
    """A file, or a program that changes nothing, to be read."""

    file: str | None = None
    argv: tuple[str, ...] = ()
    user: str | None = None
    limit_s: float = 10.0


class Texts(Model):
    """The answer of `read`, in the order asked."""

    answers: tuple[TextRead, ...]


class Act(Model):
    """Whose act it is: what every mutating call carries."""

    token: int
    change: str
    step: str


class VersionedHost:
    """The calls about versions on one host. Each mutating one is done once for (change, step).

    Raises everywhere: HostUnreachable, HostRefused; HostAnswerLost for a call that mutates, else OpsError.
    """

    def __init__(self, host: SystemdHost) -> None:
        self._host = host

    def look(
        self, unit: str, releases: Releases, verify: Sequence[str] = (), compare: tuple[str, str] | None = None
    ) -> ReleasesSeen:
        """What is there. verify: releases to compare with their manifests. compare: (new, old) by their manifests."""
        request = {"unit": unit, **_place(releases), "verify": list(verify), "compare": compare and list(compare)}
        wait_s = releases.verify_s if verify else 0.0
        return self._host.call("releases", request, ReleasesSeen, wait_s=wait_s)

    def switch(
        self,
        unit: str,
        releases: Releases,
        act: Act,
        *,
        expect: str | None,
        to: str | None,
        manifest_sha256: str | None,
    ) -> Switched:
        """Have the link name `to` instead of `expect`, with a release whose manifest is that one and that is whole.

        manifest_sha256 None: it only has to be there.
        """
        wanted = {"expect": expect, "to": to, "manifest_sha256": manifest_sha256}
        request = {"unit": unit, **_place(releases), **act.model_dump(), **wanted}
        return self._host.call("switch", request, Switched, mutates=True, wait_s=releases.verify_s)

    def prune(self, unit: str, releases: Releases, act: Act, *, protect: Sequence[str]) -> Pruned:
        """Take old releases away, none of `protect`."""
        request = {"unit": unit, **_place(releases), **act.model_dump()}
        request |= {"keep": releases.keep, "protect": list(protect)}
        return self._host.call("prune", request, Pruned, mutates=True, wait_s=releases.verify_s)

    def command(self, unit: str, argv: Sequence[str], act: Act, *, first: int, user: str | None, limit_s: float) -> Ran:
        """Run a program. first: the change's first token; what stands under lower ones was another change."""
        request = {"unit": unit, **act.model_dump(), "argv": list(argv), "first": first}
        request |= {"user": user, "limit_s": limit_s}
        return self._host.call("command", request, Ran, mutates=True, wait_s=limit_s)

    def read(self, asks: Sequence[TextAsk]) -> tuple[TextRead, ...]:
        """The texts, in order."""
        items = [ask.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for ask in asks]
        wait_s = sum(ask.limit_s for ask in asks)
        return self._host.call("read", {"items": items}, Texts, wait_s=wait_s).answers


def _place(releases: Releases) -> dict[str, str | float]:
    return {
        "path": releases.path,
        "folder": releases.folder,
        "current": releases.current,
        "manifest": releases.manifest,
        "verify_s": releases.verify_s,
    }
