"""Which workers a router lacks, from its own `/workers` and the text of its readiness."""

from __future__ import annotations

import json
from urllib.parse import urlsplit, urlunsplit

from pydantic import JsonValue

from policies.facts import HttpAnswer
from policies.finding import Finding
from policies.gates import readable

ASK = "workers"  # id of the probe
READINESS = "/readiness"
MOST_TEXT = 200
PAIR = frozenset({"prefill", "decode"})


def workers_url(health_url: str) -> str | None:
    """Where the router behind this readiness lists its workers; None when it is no readiness."""
    parts = urlsplit(health_url)
    if parts.path.rstrip("/") != READINESS:
        return None
    return urlunsplit((parts.scheme, parts.netloc, "/workers", "", ""))


def lacking(instance: str, health: HttpAnswer | None, listed: HttpAnswer | None) -> tuple[Finding, ...]:
    """A finding for each kind without a healthy worker; else what the readiness itself says.

    Source: FACTS-serving 3.4, readiness of a PD gateway wants one healthy prefill and one healthy decode.
    """
    found = _kinds(listed)
    lacks = [(kind, [url for url, well in urls]) for kind, urls in found.items() if not any(well for _, well in urls)]
    if found.keys() & PAIR:  # a gateway of separate kinds needs one of each
        lacks += [(kind, []) for kind in sorted(PAIR - found.keys())]
    findings = []
    for kind, urls in lacks:
        values: dict[str, str | int | float | None] = {"instance": instance, "worker": kind, "n": len(urls)}
        values |= {"urls": ", ".join(urls) or None, "source": listed.url if listed is not None else None}
        findings.append(Finding(code="gate.router-lacks", effect="note", values=values))
    if not findings and health is not None and health.body.strip():
        said: dict[str, str | int | float | None] = {"instance": instance, "url": health.url}
        said["text"] = readable(health.body.strip()[:MOST_TEXT])
        findings.append(Finding(code="gate.health-said", effect="note", values=said))
    return tuple(findings)


def _kinds(listed: HttpAnswer | None) -> dict[str, list[tuple[str, bool]]]:
    """Addresses and health by kind of worker."""
    found: dict[str, list[tuple[str, bool]]] = {}
    try:
        document: JsonValue = json.loads(listed.body) if listed is not None and listed.status == 200 else None
    except (ValueError, RecursionError):
        return {}
    workers = document.get("workers") if isinstance(document, dict) else document
    for worker in workers if isinstance(workers, list) else ():
        if isinstance(worker, dict) and isinstance(worker.get("is_healthy"), bool):
            kind = readable(str(worker.get("worker_type", "worker")))[:40]
            found.setdefault(kind, []).append((readable(str(worker.get("url", "")))[:120], bool(worker["is_healthy"])))
    return found
