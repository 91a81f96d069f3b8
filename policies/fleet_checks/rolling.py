"""The entries `rolling:` and `drain:` of a service in a fleet file: how its replicas are taken in turn."""

from __future__ import annotations

from typing import Literal

import yaml

from policies.fleet import Drain, RollingEntry
from policies.fleet_checks.problems import Path, quote
from policies.fleet_checks.table import Table
from policies.fleet_checks.urls import check_url
from policies.fleet_checks.values import is_empty

most_replicas = 500  # of one service: as many as a list of a fleet file holds
longest_watch_s = 3600.0  # the lease is renewed meanwhile, but nobody should wait longer for one replica
longest_deadline_s = 1800.0  # Source: FACTS-serving 4.3, a router gives a stuck request up after 1800 s
shortest_deadline_s = 1.0
kinds: tuple[Literal["regular", "prefill", "decode"], ...] = ("regular", "prefill", "decode")
overs: tuple[Literal["hold", "restart"], ...] = ("hold", "restart")


def read_rolling(service: Table) -> RollingEntry:
    """`rolling:` of a service, every key optional."""
    table = service.table("rolling", ("max_unavailable", "keep", "canary"))
    default = RollingEntry()
    if table is None:
        return default
    keep = table.whole("keep", 0, most_replicas, 1) if "keep" in table else None
    canary = table.table("canary", ("watch", "require"))
    watch_s, require = default.watch_s, default.require
    if canary is not None:
        watch_s = canary.duration("watch", 30.0, 0.0, longest_watch_s) if "watch" in canary else default.watch_s
        require = _conditions(canary)
    return RollingEntry(
        max_unavailable=table.whole("max_unavailable", 1, most_replicas, default.max_unavailable),
        keep=keep,
        watch_s=watch_s,
        require=require,
    )


def _conditions(canary: Table) -> tuple[str, ...]:
    if "require" not in canary:
        return ()
    return canary.reader.texts(canary.at("require"), canary.nodes["require"], lambda p, n: _condition(canary, p, n))


def _condition(canary: Table, path: Path, node: yaml.Node) -> str:
    text = canary.reader.text(path, node, raw=True)
    if isinstance(node, yaml.ScalarNode) and not str(node.value).strip() and not is_empty(node):
        problems = canary.reader.problems
        problems.add(path, "text.empty", "empty, expected a condition", 'write e.g. "ttft_s < 2", or remove the entry')
        return ""
    return text


def read_drain(service: Table) -> Drain | None:
    """`drain:` of a service; None where there is none."""
    table = service.table("drain", ("router", "worker", "kind", "bootstrap_port", "deadline", "over"))
    if table is None or not table.readable:
        return None
    table.need("router", "router: router")
    table.need("worker", 'worker: "http://{address}:30001"')
    return Drain(
        router=table.name("router") or "",
        worker=_worker(table),
        kind=table.word("kind", kinds, "drain.kind") or "regular",
        bootstrap_port=table.whole("bootstrap_port", 1, 65535, 8998) if "bootstrap_port" in table else None,
        deadline_s=table.duration("deadline", 60.0, shortest_deadline_s, longest_deadline_s),
        over=table.word("over", overs, "drain.over") or "hold",
    )


def _worker(table: Table) -> str:
    """The url as it stands; `{address}` is put in for each instance later."""
    text = table.text("worker")
    if not text or not check_url(table.reader.problems, table.at("worker"), text):
        return ""
    if text.rstrip("/").count("/") > 2 or "?" in text or "#" in text:
        table.reader.problems.add(
            table.at("worker"),
            "drain.worker",
            f"{quote(text)} has a path, expected scheme://host:port as the router knows the worker",
            f'write "{"/".join(text.split("/")[:3])[:60]}"',
        )
        return ""
    return text
