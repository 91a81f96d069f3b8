"""A router that answers 200 while its first prefill still loads: its gate waits for its workers, and names them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.aftermath.workers import lacking, workers_url
from policies.facts import HttpAnswer
from policies.gates import canary, health
from policies.intents import Restart
from policies.plan import RestartStep
from policies.planning.restart import RestartGoal, plan_restart, restart_goal
from policies.preflight.look import Look
from policies.preflight.router import check
from tests.policies import builders as b

CASE: dict[str, Any] = json.loads((b.GOLDEN / "cases/5-router-too-early.json").read_text(encoding="utf-8"))
READINESS = f"{CASE['services']['router']}/readiness"


def listed(row: dict[str, Any]) -> HttpAnswer:
    """What `/workers` says at that time."""
    workers = [
        {"url": CASE["services"][kind], "worker_type": kind, "is_healthy": well}
        for kind, well in row["workers"].items()
    ]
    return b.answer(200, json.dumps({"workers": workers}), url=f"{CASE['services']['router']}/workers")


def gate(service: str, status: int | None, at_s: float) -> str:
    """The answer of the health gate."""
    answer = b.answer(status, error=None if status else "connection refused")
    return health.judge(f"{service}@gpu1", answer, confirmed=status == 200, waited_s=at_s).answer


@pytest.mark.parametrize("row", CASE["rows"], ids=lambda row: f"+{row['at_s']} s")
def test_each_gate_passes_when_its_own_reading_says_so_and_not_before(row: dict[str, Any]) -> None:
    statuses = {"prefill": row["prefill"], "decode": row["decode"], "router": row["readiness"]}
    passes = [service for service, status in statuses.items() if gate(service, status, row["at_s"]) == "pass"]
    assert passes == row["passes"]
    assert row["router_health"] == 200  # all the while


@pytest.mark.parametrize("row", CASE["rows"], ids=lambda row: f"+{row['at_s']} s")
def test_a_shut_gate_of_the_router_names_the_workers_that_it_lacks(row: dict[str, Any]) -> None:
    assert workers_url(READINESS) == f"{CASE['services']['router']}/workers"
    found = lacking("router@gpu1", b.answer(row["readiness"]), listed(row))
    assert [f.values["worker"] for f in found if f.code == "gate.router-lacks"] == row["router_lacks"]


def test_prefill_comes_first_and_nothing_later_is_reached_before_its_gate() -> None:
    fleet = b.fleet()
    goal = restart_goal(Restart(scope="gpu1", order="co-restart"), fleet)
    assert isinstance(goal, RestartGoal)
    (plan,) = plan_restart(fleet, goal, b.facts(fleet), ()).plans
    steps = [(s.service, s.gates) for s in plan.steps if isinstance(s, RestartStep)]
    assert [service for service, _ in steps] == ["prefill", "decode", "router"]
    assert steps[-1][1] == ("incarnation", "port", "health", "canary")
    first = {s: next(r["at_s"] for r in CASE["rows"] if s in r["passes"]) for s in ("prefill", "decode", "router")}
    reached: list[float] = []
    for service, _ in steps:  # one after the other: a step begins when the gate of the one before has passed
        reached.append(max([first[service], *reached]))
    assert reached == [240, 240, 330]


@pytest.mark.parametrize("said", CASE["canary"], ids=lambda said: f"+{said['at_s']} s")
def test_it_is_done_after_the_canary_only(said: dict[str, Any]) -> None:
    body = json.dumps({"choices": [{"text": said["text"]}]}) if said["text"] else ""
    answer = b.answer(said["status"], body, error=said["error"])
    assert canary.judge("router", answer, "n0nce").findings[0].code == said["code"]


def test_a_router_that_never_gets_its_prefill_stops_with_how_long_was_waited() -> None:
    row = CASE["rows"][2]
    verdict = health.judge("router@gpu1", b.answer(503, url=READINESS), confirmed=False, waited_s=300.0)
    assert (verdict.answer, verdict.findings[0].values["waited_s"]) == ("fail", 300.0)
    (found,) = lacking("router@gpu1", b.answer(503), listed(row))
    assert (found.values["worker"], found.values["urls"]) == ("prefill", CASE["services"]["prefill"])


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ('{"workers": []}', ["gate.health-said"]),
        ("not json", ["gate.health-said"]),
        ("[" * 50_000, ["gate.health-said"]),
        ('{"workers": [{"worker_type": "decode", "is_healthy": true}]}', ["gate.router-lacks"]),
        ('{"workers": [{"worker_type": "regular", "is_healthy": false}]}', ["gate.router-lacks"]),
        ('{"workers": [{"worker_type": "regular", "is_healthy": "no"}, 7]}', ["gate.health-said"]),
    ],
)
def test_what_the_router_does_not_list_is_not_made_up(body: str, codes: list[str]) -> None:
    said = b.answer(503, "router has no healthy prefill", url=READINESS)
    assert [f.code for f in lacking("router@gpu1", said, b.answer(200, body))] == codes
    assert lacking("router@gpu1", b.answer(503), b.answer(200, "no json")) == ()


@pytest.mark.parametrize(
    ("path", "metrics", "command", "warned"),
    [
        ("/health", "smg_worker_health 1\n", "python", True),
        ("/liveness", "", "/opt/venv/bin/python -m sglang_router.launch_router", True),
        ("/readiness", "smg_worker_health 1\n", "python", False),
        ("/health", "sglang:num_running_reqs 1\n", "python", False),  # an engine that needs another service
    ],
)
def test_a_health_check_that_says_nothing_of_workers_is_warned_of(
    path: str, metrics: str, command: str, warned: bool
) -> None:
    fleet = b.fleet()
    router = fleet.services["router"]
    checked = router.health.model_copy(update={"url": f"http://127.0.0.1:30002{path}"})
    services = {**fleet.services, "router": router.model_copy(update={"health": checked})}
    answers = (b.answer(200, metrics, id="metrics"),) if metrics else ()
    unit = b.unit("router@gpu1", http=answers, exec_start=tuple(command.split()))
    look = Look(fleet.model_copy(update={"services": services}), "router@gpu1", unit)
    assert [f.code for f in check(look)] == (["plan.router-health-says-nothing"] if warned else [])
