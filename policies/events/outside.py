"""What is recorded of things that happened to an instance and that no change did."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from policies.finding import Finding
from policies.model import Model


class Difference(Model):
    """One thing that is not as it was. name: the file's path for files, else empty. None: there is none.

    auto_restarted: systemd started the process again by itself, which it counts.
    """

    what: Literal["edited", "appeared", "gone", "restarted", "auto_restarted", "stopped", "started", "build"]
    name: str = ""
    was: str | None = None
    now: str | None = None


class DriftSeen(Model):
    """A slow look found an instance otherwise than it was left, or as it was left again. Subject: `dr-N`, one each.

    found: everything that differs now; empty: nothing does any more.
    """

    kind: Literal["drift_seen"] = "drift_seen"
    instance: str
    found: tuple[Finding, ...]


class OutsideSeen(Model):
    """A look found what no change accounts for. Subject: `out-N`.

    since, seen_at: the looks before and behind it, epoch seconds of the host.
    """

    kind: Literal["outside_seen"] = "outside_seen"
    instance: str
    since: float
    seen_at: float
    found: tuple[Difference, ...] = Field(min_length=1)
