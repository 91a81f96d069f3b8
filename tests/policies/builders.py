"""Small, valid fleets, facts and people for tests of policies; everything not said is plain."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from policies import events as e
from policies.context import Context
from policies.evidence import Record, Summary
from policies.facts import HttpAnswer, Incarnation, ProcessEnv, UnitFacts
from policies.finding import Verdict
from policies.fleet import Fleet, Knob
from policies.intents import Actor, SetKnob, Where
from policies.plan import Plan
from policies.planning.goal import Goal
from policies.planning.knob import Planning, plan_knob
from policies.suspicion import Suspicion
from tests.policies.systemd_tree import file_text
from tests.shared import ROOT

GOLDEN = ROOT / "tests" / "golden"
ENV = "SGLANG_SM120_MMA_TARGET_CTAS"
NOW = datetime.fromisoformat("2026-12-01T10:00:00+00:00").timestamp()
ANA = Actor(id="U0ANA", team="T1", name="ana", roles=("engineers",))
BEN = Actor(id="U0BEN", team="T1", name="ben", roles=("engineers", "approvers"))
CAT = Actor(id="U0CAT", team="T1", name="cat", roles=("approvers",))
RULE: dict[str, Any] = {
    "match": {"kind": "knob"}, "ask": "engineers", "approvals": 1, "by": "approvers", "expires_s": 1800.0, "line": 40,
}  # fmt: skip


def golden(name: str) -> list[dict[str, Any]]:
    """Cases of one data file below tests/golden."""
    found: list[dict[str, Any]] = json.loads((GOLDEN / name).read_text(encoding="utf-8"))
    return found


def ids(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of golden cases."""
    return [case["about"] for case in cases]


def knob(**changes: Any) -> Knob:
    """TARGET_CTAS of decode."""
    given: dict[str, Any] = {
        "name": "TARGET_CTAS", "env": ENV, "on": ("decode",), "type": "int", "range": (1, 4096),
        "restarts": ("co-restart", "decode-only"),
    }  # fmt: skip
    return Knob.model_validate({**given, **changes})


def fleet(
    *,
    hosts: Sequence[str] = ("gpu1",),
    decode_on: Sequence[str] | None = None,
    manager: str = "system",
    rules: Sequence[Mapping[str, Any]] = (RULE,),
    knobs: Sequence[Knob] = (),
    server_info: bool = False,
    canary: bool = True,
    **more: Any,
) -> Fleet:
    """prefill -> decode -> router with the orders co-restart and decode-only; the router has a canary."""
    services: dict[str, Any] = {}
    for number, name in enumerate(("prefill", "decode", "router")):
        url = f"http://127.0.0.1:{30000 + number}"
        services[name] = {
            "name": name,
            "on": tuple(hosts)[:1],
            "unit": f"sgl-{name}.service",
            "needs": ("prefill", "decode")[:number],
            "health": {"url": f"{url}/health"},
        }
    services["decode"]["on"] = tuple(hosts if decode_on is None else decode_on)
    if server_info:
        services["decode"]["server_info"] = {"url": "http://127.0.0.1:30001/server_info"}
    if canary:
        services["router"]["canary"] = {
            "url": "http://127.0.0.1:30002/v1/completions",
            "body": {"prompt": "say {nonce}"},
            "expect_text": "{nonce}",
        }
    given: dict[str, Any] = {
        "name": "dsv4",
        "hosts": {h: {"name": h, "address": "127.0.0.1", "user": "ops", "manager": manager} for h in hosts},
        "services": services,
        "restarts": {"co-restart": ("prefill", "decode", "router"), "decode-only": ("decode",)},
        "knobs": {k.name: k for k in (*knobs, knob())},
        "roles": {
            "engineers": {"name": "engineers", "users": (ANA.id, BEN.id)},
            "approvers": {"name": "approvers", "users": (BEN.id, CAT.id)},
        },
        "rules": tuple(rules),
        "sha256": "f" * 64,
    }
    return Fleet.model_validate({**given, **more})


def life(pid: int = 2101) -> Incarnation:
    """An incarnation that is like no other of another pid."""
    return Incarnation(main_pid=pid, started=pid * 100, invocation_id=f"inv{pid}")


def process(value: str | None, *, answer: str | None = None, pid: int = 2101, main: bool = True) -> ProcessEnv:
    """What one process says about the knob's variable."""
    said = answer or ("absent" if value is None else "present")
    return ProcessEnv.model_validate(
        {"pid": pid, "name": "python", "main": main, "variable": ENV, "answer": said, "value": value}
    )


def unit(
    instance: str = "decode@gpu1",
    *,
    fragment: str = "[Service]\nExecStart=/opt/sgl/bin/python\n",
    dropins: Mapping[str, str] | None = None,
    env_files: Mapping[str, str] | None = None,
    running: str | None = None,
    pid: int = 2101,
    **more: Any,
) -> UnitFacts:
    """Facts of a healthy unit. `dropins` by file name, in any order; `env_files` by path."""
    service, host = instance.split("@")
    name = f"sgl-{service}.service"
    folder = f"/etc/systemd/system/{name}.d"
    found = {**(dropins or {})}
    given: dict[str, Any] = {
        "unit": name, "host": host, "service": service, "at": NOW, "load_state": "loaded", "active_state": "active",
        "sub_state": "running", "result": "success", "type": "simple", "n_restarts": 0, "exec_main_status": 0,
        "timeout_start_s": None, "timeout_stop_s": 90.0, "restart": "on-failure", "restart_s": 0.1,
        "start_limit_burst": 5, "start_limit_interval_s": 10.0, "need_daemon_reload": False,
        "control_group": f"/system.slice/{name}", "exec_start": ("/opt/sgl/bin/python",), "incarnation": life(pid),
        "fragment": file_text(f"/etc/systemd/system/{name}", fragment),
        "dropins": tuple(file_text(f"{folder}/{key}", found[key]) for key in sorted(found)),
        "loaded_dropins": tuple(f"{folder}/{key}" for key in found),
        "env_files": tuple(file_text(path, text) for path, text in (env_files or {}).items()),
        "unset_environment": (), "manager_environment": {}, "dropin_path": f"{folder}/zz-clawback.conf",
        "processes": (process(running, pid=pid),), "port": None, "http": (),
    }  # fmt: skip
    return UnitFacts.model_validate({**given, **more})


def facts(of: Fleet, **changed: UnitFacts) -> dict[str, UnitFacts]:
    """Facts for every instance of the fleet; `changed` replaces those of a service on all of its hosts."""
    found: dict[str, UnitFacts] = {}
    for number, instance in enumerate(i for service in of.services for i in of.instances(service)):
        service, host = instance.split("@")
        if service in changed:
            found[instance] = changed[service].model_copy(update={"host": host})
        else:
            found[instance] = unit(instance, pid=2100 + number)
    return found


def goal_of(of: Fleet, value: str | None = "512", **changes: Any) -> Goal:
    """Set (or unset) TARGET_CTAS on every decode, with every order."""
    one = of.knobs["TARGET_CTAS"]
    given: dict[str, Any] = {
        "knob": one, "word": "unset" if value is None else "set", "value": value,
        "instances": tuple(i for service in one.on for i in of.instances(service)), "orders": one.restarts,
    }  # fmt: skip
    return Goal(**{**given, **changes})


def planning(of: Fleet, seen: Mapping[str, UnitFacts], value: str | None = "512", **changes: Any) -> Planning:
    """What comes of setting TARGET_CTAS to `value`."""
    return plan_knob(of, goal_of(of, value, **changes), seen, ())


@cache
def plans() -> tuple[Plan, ...]:
    """The plans of set TARGET_CTAS=512 on the plain fleet: co-restart, decode-only."""
    plain = fleet()
    return planning(plain, facts(plain)).plans


def asked(actor: Actor = ANA, **intent: Any) -> e.Asked:
    """Somebody asks to set TARGET_CTAS=512."""
    return e.Asked(
        intent=SetKnob.model_validate({"knob": "TARGET_CTAS", "value": "512", **intent}),
        actor=actor,
        where=Where(channel="C1", thread_ts="1.2"),
        said="set TARGET_CTAS=512",
        normalised="set TARGET_CTAS=512",
        fleet_sha256="f" * 64,
    )


def planned(offered: tuple[Plan, ...], **changes: Any) -> e.Planned:
    """The plans, open for half an hour from NOW."""
    given: dict[str, Any] = {
        "plans": offered, "findings": (), "approvals": 1, "by": "approvers", "mention": (), "expires_at": NOW + 1800.0,
    }  # fmt: skip
    return e.Planned.model_validate({**given, **changes})


def gate_failed(part: str = "do", index: int = 1) -> e.GateFailed:
    """Health did not pass."""
    return e.GateFailed.model_validate(
        {"part": part, "index": index, "instance": "decode@gpu1", "gate": "health", "verdict": Verdict(answer="fail")}
    )


def record(**changes: Any) -> Record:
    """A typed summary: +12.8 % at C64, one run per arm, 0 of 200 answers differ; two days old."""
    summary: dict[str, Any] = {
        "knob": "TARGET_CTAS", "value": "512", "points": [{"concurrency": 64, "ratio": 1.128}],
        "correctness": {"compared": 200, "differing": 0},
    }  # fmt: skip
    outer: dict[str, Any] = {
        "id": "ab-17", "knob": "TARGET_CTAS", "by": "U0BEN", "at": NOW - 2 * 86400, "source": "ab.yaml",
        "sha256": "0" * 64,
    }  # fmt: skip
    for key, value in changes.items():
        (summary if key in Summary.model_fields and key != "knob" else outer)[key] = value
    return Record.model_validate({**outer, "summary": summary})


def suspicion(**more: Any) -> Suspicion:
    """What the revert C-7 left: 512 was taken away on two hosts, for a week until it is reviewed."""
    fields: dict[str, Any] = {
        "id": "su-7", "change": "C-7", "knob": "TARGET_CTAS", "value": "512", "reason": "multi-round hang",
        "was": {"decode@a": "512", "decode@b": "512"}, "now": {"decode@a": None, "decode@b": None},
        "owner": "U0ANA", "at": NOW, "review_at": NOW + 604_800.0, "review_s": 604_800.0,
    }  # fmt: skip
    return Suspicion.model_validate({**fields, **more})


def judged(klass: str = "improves", *, n: int = 5, at: float = NOW - 2 * 86400, **changes: Any) -> Record:
    """A record made from runs, of this class; everything that it was measured on is told."""
    point = {
        "load": {"concurrency": 64}, "n_a": n, "n_b": n, "a": 1000.0, "b": 1128.0, "ratio": 1.128, "ci_low": 1.11,
        "ci_high": 1.15, "klass": klass,
    }  # fmt: skip
    judgement = {
        "verdict": klass, "metric": "output_throughput", "unit": "tok/s", "better": "higher", "interleaved": True,
        "margins": {}, "points": [point],
    }  # fmt: skip
    given: dict[str, Any] = {
        "id": "ab-17", "knob": "TARGET_CTAS", "klass": klass, "value": "512", "judgement": judgement, "by": "U0BEN",
        "at": at, "source": "a.jsonl, b.jsonl", "context": measured(),
        "correctness": {"compared": 200, "differing": 0},
    }  # fmt: skip
    return Record.model_validate({**given, **changes})


def measured(**changes: Any) -> Context:
    """A context of which everything is known; 64 requests ran."""
    given: dict[str, Any] = {
        "accelerator": "H200", "accelerators": 8, "model": "openai/m", "quantization": "fp8", "kv_dtype": "not set",
        "revision": "not set", "version": "0.5.23", "commit": "4f2a91c77d0e", "flags": {"max_running_requests": "256"},
        "topology": {"tp": "8"}, "load": {"low": 1, "high": 128}, "reads_knob": "yes",
    }  # fmt: skip
    return Context.model_validate({**given, **changes})


def today(**changes: Any) -> Context:
    """The same, as it runs today."""
    return measured(**{"load": {"low": 64, "high": 64, "kind": "p95"}, **changes})


def answer(status: int | None = 200, body: str = "", **more: Any) -> HttpAnswer:
    """One HTTP exchange."""
    given: dict[str, Any] = {
        "id": "x", "url": "http://127.0.0.1:30001/x", "status": status, "body": body, "at": NOW, "took_s": 0.2,
    }  # fmt: skip
    return HttpAnswer.model_validate({**given, **more})
