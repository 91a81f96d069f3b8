"""The workers of a router as `GET /workers` lists them, and how one of them is registered again as it was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, JsonValue

from policies.facts import HttpAnswer
from policies.finding import Finding
from policies.gates import readable
from policies.model import Model
from policies.plan import Registration

Kind = Literal["regular", "prefill", "decode"]
# Source: discover_metadata of sgl-model-gateway: labels that it reads from the worker itself when it registers. An old
# value of one among the labels of a new registration would win over what the worker says then.
DISCOVERED = frozenset(
    {
        "model_path",
        "served_model_name",
        "tokenizer_path",
        "model_type",
        "architectures",
        "tp_size",
        "dp_size",
        "version",
        "weight_version",
        "is_generation",
        "max_batch_size",
        "max_total_tokens",
        "max_prefill_tokens",
        "max_running_requests",
        "max_num_reqs",
        "load_balance_method",
        "disaggregation_mode",
    }
)
# asked for as they are where the router tells them
KEPT = ("runtime", "reasoning_parser", "tool_parser", "chat_template", "tokenizer_path")
PRIORITY, COST = 50, 1.0  # Source: sgl-model-gateway's defaults, as /workers shows them where nobody asked for others


class Listed(Model):
    """One worker as a router lists it. healthy None, load None: not told. labels: its `metadata`."""

    id: str
    url: str
    kind: Kind
    healthy: bool | None = None
    load: float | None = None
    bootstrap_port: int | None = None
    priority: int | None = None
    cost: float | None = None
    model_id: str | None = None
    no_health_check: bool = False
    labels: dict[str, str] = Field(default_factory=dict)
    more: dict[str, str] = Field(default_factory=dict)

    @property
    def body(self) -> dict[str, JsonValue]:
        """What registers it again: everything that somebody asked for, and nothing that the worker itself says."""
        asked: dict[str, JsonValue] = {"url": self.url.partition("@")[0] if is_ranked(self.url) else self.url}
        asked["worker_type"] = self.kind
        if self.bootstrap_port is not None:
            asked["bootstrap_port"] = self.bootstrap_port
        if self.priority is not None and ("priority" in self.labels or self.priority != PRIORITY):
            asked["priority"] = self.priority
        if self.cost is not None and ("cost" in self.labels or self.cost != COST):
            asked["cost"] = self.cost
        labels = {k: v for k, v in self.labels.items() if k not in DISCOVERED and k not in {"priority", "cost"}}
        if labels:
            asked["labels"] = dict(labels)
        said = {self.labels.get(name) for name in ("served_model_name", "model_path")}
        if self.model_id not in {None, "unknown", *said}:
            asked["model_id"] = self.model_id
        if self.no_health_check:
            asked["disable_health_check"] = True
        return asked | {name: value for name, value in self.more.items() if name not in self.labels}


class Taken(Model):
    """What a router knew of an instance when it was to be taken out. found None: it was not registered there."""

    router: str  # service@host
    worker: str  # url as the plan has it
    found: Listed | None


def read_workers(router: str, answer: HttpAnswer | None) -> tuple[Listed, ...] | Finding:
    """Everything that a router lists, or why it is not known: no list is never an empty one."""
    values: dict[str, str | int | float | None] = {"router": router}
    if answer is None or answer.status is None:
        values["error"] = answer.error if answer is not None else "it was not asked"
        return Finding(code="router.no-answer", effect="refuse", values=values)
    if answer.status in (401, 403):
        return Finding(code="router.forbidden", effect="refuse", values={**values, "status": answer.status})
    if answer.status != 200 or answer.truncated:
        return Finding(code="router.no-list", effect="refuse", values={**values, "status": answer.status})
    try:
        items = json.loads(answer.body)["workers"]
        return tuple(_listed(item) for item in items)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Finding(code="router.unreadable", effect="refuse", values=values)


def matching(listed: Iterable[Listed], worker: str) -> tuple[Listed, ...]:
    """The entries of one instance, however its url is spelled; a data parallel one has an entry a rank."""
    return tuple(one for one in listed if same_worker(one.url, worker))


def same_worker(one: str, other: str) -> bool:
    """Two urls name the same worker: host and port agree, whatever the spelling."""
    return _place(one) == _place(other)


def differs(step: Registration, found: Listed) -> tuple[str, ...]:
    """In what the router's registration is another than the fleet file's, as a person reads it."""
    told = []
    if found.url != step.worker:
        told.append(f"url {found.url} instead of {step.worker}")
    if found.kind != step.kind:
        told.append(f"type {found.kind} instead of {step.kind}")
    if found.bootstrap_port != step.bootstrap_port:
        told.append(f"bootstrap port {found.bootstrap_port or 'none'} instead of {step.bootstrap_port or 'none'}")
    return tuple(told)


def _listed(item: dict[str, JsonValue]) -> Listed:
    kind = item.get("worker_type")
    if kind not in ("regular", "prefill", "decode"):
        raise ValueError(kind)
    labels = item.get("metadata") or {}
    healthy, load = item.get("is_healthy"), item.get("load")
    more = {name: _text(item[name]) for name in KEPT if isinstance(item.get(name), str)}
    if isinstance(item.get("runtime_type"), str):
        more["runtime"] = _text(item["runtime_type"])
    return Listed(
        id=_text(item["id"]),
        url=_text(item["url"]),
        kind=kind,
        healthy=healthy if isinstance(healthy, bool) else None,
        load=_number(load),
        bootstrap_port=_whole(item.get("bootstrap_port")),
        priority=_whole(item.get("priority")),
        cost=_number(item.get("cost")),
        model_id=_text(item["model_id"]) if isinstance(item.get("model_id"), str) else None,
        no_health_check=item.get("disable_health_check") is True,
        labels={_text(k): _text(v) for k, v in labels.items()} if isinstance(labels, dict) else {},
        more=more,
    )


def _text(value: JsonValue) -> str:
    return readable(str(value))


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_ranked(url: str) -> bool:
    """The url of one rank of a data parallel worker, `http://host:port@RANK`."""
    return url.rpartition("@")[2].isdigit() and "@" in url.partition("://")[2]


def _place(url: str) -> tuple[str, int | None]:
    text = url.partition("@")[0] if is_ranked(url) else url
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        return (url, None)
    default = {"https": 443, "http": 80}.get(parts.scheme)
    return (parts.hostname or "", port or default)
