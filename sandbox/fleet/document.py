"""The `fleet.yaml` of the demo: what an operator would write about these hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml
from pydantic import JsonValue

from policies.addresses import ADDRESS
from sandbox.fleet.layout import LOOPBACK, Layout
from sandbox.fleet.releases import MANIFEST
from sandbox.fleet.units import unit_name

KNOB = "TARGET_CTAS"
KNOB_ENV = "SGLANG_SM120_MMA_TARGET_CTAS"
ENGINE_TIMEOUT_S = 25.0
BOOT_FACTOR = 6.0
BAKE = "2s"  # the watch after the last gate; minutes on a real fleet

TTFT = "sum(sglang:time_to_first_token_seconds_sum) / sum(sglang:time_to_first_token_seconds_count)"


@dataclass(frozen=True, slots=True)
class HostEntry:
    """How one host is reached."""

    name: str
    port: int
    host_key: str
    user: str
    address: str = LOOPBACK


@dataclass(frozen=True, slots=True)
class Where:
    """Where the services are. metrics: port of a role's metrics where that is another one than its own."""

    layout: Layout
    ports: Mapping[str, int]
    metrics: Mapping[str, int] = field(default_factory=dict)

    def url(self, role: str, path: str) -> str:
        """A url of a role as the fleet file has it."""
        host = ADDRESS if self.layout.replicas else self.layout.addresses[self.layout.on[role][0]]
        port = self.metrics.get(role, self.ports[role]) if path == "/metrics" else self.ports[role]
        return f"http://{host}:{port}{path}"


@dataclass(frozen=True, slots=True)
class People:
    """Chat user ids of the two roles; terminal users with theirs; the channel for what is asked at a terminal."""

    engineers: Sequence[str] = ("U01ANA", "U02BEN")
    approvers: Sequence[str] = ("U02BEN",)
    names: Mapping[str, str] = field(default_factory=lambda: {"ana": "U01ANA", "ben": "U02BEN"})
    channel: str = "C0SERVING"


def fleet_text(
    hosts: Sequence[HostEntry],
    where: Where,
    boot_s: Mapping[str, float],
    people: People,
    timing: Mapping[str, str | int],
    released: Mapping[str, str] | None = None,
    more: Mapping[str, Mapping[str, JsonValue]] | None = None,
) -> str:
    """The whole file. `released` says where the releases of a role lie; `more` has further keys of services.

    A `drain` there needs no `worker` and no `bootstrap_port`: those of the role are put in.
    """
    services: dict[str, dict[str, JsonValue]] = {
        "prefill": _engine("prefill", where, boot_s),
        "decode": {
            **_engine("decode", where, boot_s),
            "needs": ["prefill"],
            **_deploy("decode", where, released or {}),
        },
        "router": _router(where, boot_s),
    }
    for role, keys in (more or {}).items():
        services[role] |= keys
        if isinstance(drain := keys.get("drain"), dict):
            meets: dict[str, JsonValue] = {"bootstrap_port": where.ports[role]} if drain["kind"] == "prefill" else {}
            services[role]["drain"] = {"worker": where.url(role, ""), **meets, **drain}
    document: dict[str, JsonValue] = {
        "version": 1,
        "name": "demo",
        "hosts": {host.name: _host(host) for host in hosts},
        "services": {**services},
        "restarts": {"co-restart": ["prefill", "decode", "router"], "decode-only": ["decode"]},
        "knobs": {
            KNOB: {
                "env": KNOB_ENV,
                "on": ["decode"],
                "type": "int",
                "range": [1, 4096],
                "restarts": ["co-restart", "decode-only"],
                "about": "CUDA block count of the MMA kernel on sm_120",
                "if_guilty": "state != idle",
                "reported": f"internal_states.0.env_vars.{KNOB_ENV}",
            }
        },
        "metrics": {
            "running_reqs": _metric("sum(max by (instance, dp_rank) (sglang:num_running_reqs))", "requests"),
            "queue_reqs": _metric("sum(max by (instance, dp_rank) (sglang:num_queue_reqs))", "requests"),
            "uptime_s": _metric("time() - process_start_time_seconds", "s"),
            "ttft_s": _metric(TTFT, "s"),
        },
        "causes": {
            "queued-behind-load": {
                "about": "the request queued behind live traffic",
                "needs": "queue_reqs > 0",
                "refuted_by": "queue_reqs == 0",
            },
            "cold-start": {
                "about": "cold start after a restart",
                "needs": "uptime_s < 600 and ttft_s falling",
                "refuted_by": "uptime_s > 3600 or ttft_s not falling",
            },
        },
        "people": {**people.names},
        "channel": people.channel,
        "roles": {"engineers": {"users": [*people.engineers]}, "approvers": {"users": [*people.approvers]}},
        "rules": _rules(),
    }
    document["timing"] = {"bake": BAKE, **timing}
    return yaml.safe_dump(document, sort_keys=False, width=200)


def _host(host: HostEntry) -> JsonValue:
    return {
        "address": host.address,
        "port": host.port,
        "user": host.user,
        "host_key": host.host_key,
        "manager": "user",
    }


def _health(url: str, boot_s: float) -> JsonValue:
    longest_s = max(ENGINE_TIMEOUT_S + 5, BOOT_FACTOR * boot_s)
    return {"url": url, "from": "host", "timeout": f"{ENGINE_TIMEOUT_S:g}s", "boot": f"{longest_s:g}s"}


def _engine(role: str, where: Where, boot_s: Mapping[str, float]) -> dict[str, JsonValue]:
    return {
        "on": [*where.layout.on[role]],
        "unit": unit_name(role),
        "health": _health(where.url(role, "/health"), boot_s[role]),
        "metrics": {"url": where.url(role, "/metrics"), "from": "host"},
        "server_info": {"url": where.url(role, "/server_info"), "from": "host"},
        "model_info": {"url": where.url(role, "/v1/models"), "from": "host"},
        "loads": {"url": where.url(role, "/v1/loads"), "from": "host"},
    }


def _deploy(role: str, where: Where, released: Mapping[str, str]) -> dict[str, JsonValue]:
    if role not in released:
        return {}
    version: dict[str, JsonValue] = {"http": where.url(role, "/server_info"), "field": "version"}
    releases: dict[str, JsonValue] = {"path": released[role], "current": "current", "keep": 3, "manifest": MANIFEST}
    return {"deploy": {"releases": releases, "version": version, "restarts": ["co-restart", "decode-only"]}}


def _router(where: Where, boot_s: Mapping[str, float]) -> dict[str, JsonValue]:
    return {
        "on": [*where.layout.on["router"]],
        "unit": unit_name("router"),
        "needs": ["prefill", "decode"],
        "health": _health(where.url("router", "/readiness"), boot_s["router"]),
        "metrics": {"url": where.url("router", "/metrics"), "from": "host"},
        "canary": {
            "url": where.url("router", "/v1/completions"),
            "json": {"model": "m", "prompt": "echo {nonce}", "max_tokens": 4},
            "expect": {"text": "{nonce}"},
            "timeout": "60s",
        },
    }


def _metric(query: str, unit: str) -> JsonValue:
    return {"on": "decode", "query": query, "unit": unit}


def _rules() -> list[JsonValue]:
    asked: dict[str, JsonValue] = {"ask": "engineers", "approvals": 1, "by": "approvers"}
    proven: dict[str, JsonValue] = {"at_least": "no_worse", "max_age": "90d", "repeats": 3, "correctness": 1}
    return [
        {"match": {"kind": "knob"}, **asked, "expires": "30m"},
        {"match": {"intent": "set"}, "evidence": {"metric": "output_throughput", **proven}},
        {"match": {"intent": "restore"}, "evidence": {"metric": "output_throughput", "at_least": "observed"}},
        {"match": {"kind": "deploy"}, **asked},
    ]
