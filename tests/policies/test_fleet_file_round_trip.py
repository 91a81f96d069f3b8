"""A fleet written out as YAML and read again is the same fleet."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from policies.fleet import Canary, EvidenceNeed, Fleet, HttpCheck, Knob, RollingEntry, Service
from policies.fleet_file import read_fleet
from policies.model import Model
from tests.shared import ROOT

GOLDEN = ROOT / "tests" / "golden" / "fleet"
EVERYTHING = GOLDEN / "good-everything.yaml"
GOOD = [ROOT / "fleet.example.yaml", *sorted(GOLDEN.glob("good-*.yaml"))]

Document = dict[str, JsonValue]


def fleet_of(text: str) -> Fleet:
    reading = read_fleet(text, "f.yaml")
    assert reading.errors == ()
    assert reading.fleet is not None
    return reading.fleet


def span(seconds: float) -> str:
    return f"{seconds:.3f}s"


def kept(model: Model, *without: str, **renamed: str) -> Document:
    """The model's values that are not None or empty; `x_s` becomes `x` with a unit."""
    values: Document = {}
    for key, value in model.model_dump(mode="json").items():
        if key in {"name", *without} or value is None or value in ([], ""):
            continue
        name = renamed.get(key, key)
        values[name.removesuffix("_s")] = span(value) if name.endswith("_s") else value
    return values


def check(found: HttpCheck, *without: str) -> Document:
    return {**kept(found, *without), "from": "host"}


def canary(found: Canary) -> Document:
    return {
        "url": found.url,
        "json": found.body,
        "expect": {"text": found.expect_text},
        "timeout": span(found.timeout_s),
    }


def service(found: Service) -> Document:
    written = kept(
        found, "health", "metrics", "canary", "server_info", "model_info", "loads", "deploy", "rolling", "drain"
    ) | {"health": check(found.health)}
    if found.rolling != RollingEntry():
        watched = {"watch": span(found.rolling.watch_s), **kept(found.rolling, "watch_s", "max_unavailable", "keep")}
        written["rolling"] = {**kept(found.rolling, "watch_s", "require"), "canary": watched}
    if found.drain:
        written["drain"] = kept(found.drain)
    if found.deploy:
        strategy = found.deploy.strategy
        written["deploy"] = {
            strategy.kind: kept(strategy, "kind"),
            "version": kept(found.deploy.version),
            "restarts": list(found.deploy.restarts),
        }
    if found.metrics:
        written["metrics"] = check(found.metrics, "boot_s")
    if found.server_info:
        written["server_info"] = check(found.server_info, "boot_s")
    for name, said in (("model_info", found.model_info), ("loads", found.loads)):
        if said:
            written[name] = check(said, "boot_s")
    if found.canary:
        written["canary"] = canary(found.canary)
    return written


def knob(found: Knob) -> Document:
    written = kept(found, "range", "reported", "envs")
    if found.envs:
        written["env"] = dict(found.envs)
    if found.range is not None:
        written["range"] = [int(end) if found.type == "int" else end for end in found.range]
    if found.reported is not None:
        written["reported"] = found.reported.path
    return written


def write(fleet: Fleet) -> str:
    document: Document = {
        "version": fleet.version,
        "name": fleet.name,
        "hosts": {name: kept(host) for name, host in fleet.hosts.items()},
        "services": {name: service(found) for name, found in fleet.services.items()},
        "restarts": {name: list(order) for name, order in fleet.restarts.items()},
        "knobs": {name: knob(found) for name, found in fleet.knobs.items()},
        "contracts": {name: kept(contract) for name, contract in fleet.contracts.items()},
        "metrics": {name: kept(metric) for name, metric in fleet.metrics.items()},
        "causes": {name: kept(cause) for name, cause in fleet.causes.items()},
        "people": dict(fleet.people),
        "roles": {name: kept(role) for name, role in fleet.roles.items()},
        "rules": [
            kept(rule, "match", "line", "evidence", "ticket")
            | {"match": kept_match(rule.match)}
            | ({"evidence": evidence(rule.evidence)} if rule.evidence else {})
            | ({"ticket": kept(rule.ticket) or "required"} if rule.ticket else {})
            for rule in fleet.rules
        ],
        "freezes": [{"name": freeze.name, **kept(freeze)} for freeze in fleet.freezes],
        "timing": kept(fleet.timing),
    }
    if fleet.emergency is not None:
        document["emergency"] = kept(fleet.emergency)
    if fleet.channel is not None:
        document["channel"] = fleet.channel
    if fleet.prometheus_url is not None:
        document["prometheus"] = {"url": fleet.prometheus_url}
    if (alerts := fleet.alertmanager) is not None:
        match: dict[str, JsonValue] = {service: dict(labels) for service, labels in alerts.match.items()}
        document["alertmanager"] = {"url": alerts.url, "match": match, "margin": f"{alerts.margin_s:.3f}s"}
    return yaml.safe_dump(document, sort_keys=False)


def evidence(need: EvidenceNeed) -> Document:
    written = kept(need, "correctness_level", *(["correctness"] if not need.correctness else []))
    if need.correctness_level:
        written["correctness"] = {"level": need.correctness_level, "compared": need.correctness}
    return written


def kept_match(match: Model) -> Document:
    return {key: value for key, value in match.model_dump(mode="json").items() if value is not None}


def without_place(fleet: Fleet) -> Fleet:
    """The fleet without what depends on how it was laid out."""
    rules = tuple(rule.model_copy(update={"line": 0}) for rule in fleet.rules)
    return fleet.model_copy(update={"sha256": "", "rules": rules})


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_fleet_comes_back_as_it_was(path: Path) -> None:
    fleet = fleet_of(path.read_text(encoding="utf-8"))
    assert without_place(fleet_of(write(fleet))) == without_place(fleet)


def test_the_file_with_everything_sets_every_field() -> None:
    fleet = fleet_of(EVERYTHING.read_text(encoding="utf-8"))
    assert fleet.rules[0].model_dump(exclude={"line"}) == {
        "match": {"kind": "knob", "intent": "set", "knob": "I", "service": "engine"},
        "ask": "engineers",
        "approvals": 2,
        "by": "engineers",
        "expires_s": 2700.0,
        "evidence": {
            "metric": "output_throughput",
            "at_least": "weak",
            "max_age_s": 43200.0,
            "repeats": 2,
            "correctness": 100,
            "correctness_level": 2,
            "override": "engineers",
        },
        "ticket": {"pattern": "(INC|OPS)-[0-9]+"},
    }
    assert fleet.emergency is not None
    assert fleet.emergency.model_dump() == {
        "by": "engineers",
        "ratify_by": "engineers",
        "within_s": 5400.0,
        "evidence": "skipped",
    }
    assert fleet.timing.model_dump() == {
        "approval_s": 600.0,
        "lease_s": 8.0,
        "wait_slice_s": 5.0,
        "poll_s": 0.1,
        "bake_s": 0.0,
        "health_confirmations": 3,
        "reach_s": 4.0,
        "review_s": 259_200.0,
        "scrape_s": 5.0,
        "drift_s": 120.0,
        "watch_s": 30.0,
        "keep_s": 7200.0,
    }
    body = fleet.services["router"].canary
    assert body is not None
    assert body.body["messages"] == [{"role": "user", "content": "say {nonce}"}]
    assert body.body["stop"] is None
    assert fleet.knobs["E"].values == ("on", "off", "two words")
    assert fleet.knobs["F"].range == (0.25, 1000.0)
    assert fleet.roles["engineers"].groups == ("S0PERF", "perf.team")
    assert fleet.services["router"].health.port == 443


@settings(max_examples=60, deadline=None)
@given(
    bake_ms=st.integers(0, 10**9),
    low=st.integers(-(10**9), 10**9),
    width=st.integers(0, 10**9),
    port=st.integers(1, 65535),
    about=st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=40),
    prompt=st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), max_size=40),
)
def test_any_values_come_back_as_they_were(
    bake_ms: int, low: int, width: int, port: int, about: str, prompt: str
) -> None:
    fleet = fleet_of(EVERYTHING.read_text(encoding="utf-8"))
    router = fleet.services["router"]
    assert router.canary is not None
    new_canary = router.canary.model_copy(update={"body": {"prompt": prompt, "n": low}})
    changed = fleet.model_copy(
        update={
            "timing": fleet.timing.model_copy(update={"bake_s": bake_ms / 1000}),
            "knobs": fleet.knobs
            | {"I": fleet.knobs["I"].model_copy(update={"range": (low, low + width), "about": about})},
            "hosts": fleet.hosts | {"gpu1": fleet.hosts["gpu1"].model_copy(update={"port": port})},
            "services": fleet.services | {"router": router.model_copy(update={"canary": new_canary})},
        }
    )
    assert without_place(fleet_of(write(changed))) == without_place(changed)
