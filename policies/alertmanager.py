"""The Alertmanager of a fleet: where it is, and which of its alerts are about which service."""

from __future__ import annotations

from pydantic import Field

from policies.model import Model


class AlertmanagerEntry(Model):
    """match: service -> label -> value, all of which its alerts carry. `{host}` and `{address}` are its instance's.

    margin_s: how much longer than the estimate a silence lasts, so that it outlives a worker that has to be followed.
    """

    url: str
    match: dict[str, dict[str, str]] = Field(min_length=1)
    margin_s: float = 300.0
