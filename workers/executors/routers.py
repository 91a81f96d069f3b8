"""The call of the host helper that changes a router's list of workers, under the token of the router's unit."""

from __future__ import annotations

from pydantic import JsonValue

from policies.model import Model
from workers.executors.releases import Act
from workers.executors.systemd import SystemdHost


class Changed(Model):
    """The answer of `workers`: what the router said. status None: it said nothing, and `error` tells why."""

    unit: str
    status: int | None
    body: str
    error: str | None
    at: float


def add_worker(host: SystemdHost, unit: str, api: str, act: Act, body: dict[str, JsonValue], note: str = "") -> Changed:
    """Ask the router to register a worker. 202 is no yes: look whether it is listed.

    Raises: HostUnreachable, HostRefused (`stale-token`, ...), HostAnswerLost.
    """
    request = {"unit": unit, "api": api, **act.model_dump(), "add": body, "note": note}
    return host.call("workers", request, Changed, mutates=True)


def remove_worker(host: SystemdHost, unit: str, api: str, act: Act, worker_id: str, note: str = "") -> Changed:
    """Ask the router to send nothing to a worker any more. note: kept with the host's record of it.

    Raises: HostUnreachable, HostRefused (`stale-token`, ...), HostAnswerLost.
    """
    request = {"unit": unit, "api": api, **act.model_dump(), "remove": worker_id, "note": note}
    return host.call("workers", request, Changed, mutates=True)
