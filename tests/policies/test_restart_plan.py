"""Restarts that change nothing: which instances, in which order, behind which gates, and nothing to undo."""

from __future__ import annotations

import pytest

from policies.case import Case
from policies.decision import decide
from policies.finding import Finding
from policies.intents import Actor, Restart
from policies.plan import Plan
from policies.planning.restart import RestartGoal, plan_restart, restart_goal
from tests.policies import builders as b

TWO = b.fleet(hosts=["gpu1", "gpu2"])


def aim(scope: str, order: str | None = None) -> RestartGoal:
    found = restart_goal(Restart(scope=scope, order=order), TWO)
    assert isinstance(found, RestartGoal), found
    return found


def refusal(scope: str, order: str | None = None) -> str:
    found = restart_goal(Restart(scope=scope, order=order), TWO)
    assert isinstance(found, Finding), found
    return found.code


def plan_of(scope: str, order: str | None = None) -> Plan:
    (plan,) = plan_restart(TWO, aim(scope, order), b.facts(TWO), ()).plans
    return plan


def test_a_service_is_all_its_instances() -> None:
    assert aim("decode").instances == TWO.instances("decode")


def test_one_instance_is_itself() -> None:
    assert aim("decode@gpu1").instances == ("decode@gpu1",)


def test_a_host_is_everything_on_it_and_what_is_needed_comes_first() -> None:
    services = [instance.split("@")[0] for instance in aim("gpu1").instances]
    assert services == [s for s in ("prefill", "decode", "router") if s in services]
    assert len(services) > 1


def test_an_order_restarts_all_of_it() -> None:
    found = aim("decode", "co-restart")
    assert found.order == "co-restart"
    assert [i.split("@")[0] for i in found.instances] == sorted(
        (i.split("@")[0] for i in found.instances), key=("prefill", "decode", "router").index
    )


@pytest.mark.parametrize(
    ("scope", "order", "code"),
    [
        ("decoder", None, "plan.no-such-scope"),
        ("decode@gpu9", None, "plan.no-such-scope"),
        ("decode", "all", "plan.no-such-restart-order"),
        ("prefill", "decode-only", "plan.scope-not-in-order"),
    ],
)
def test_a_scope_is_never_guessed(scope: str, order: str | None, code: str) -> None:
    assert refusal(scope, order) == code


def test_a_restart_writes_nothing_changes_nothing_and_has_nothing_to_undo() -> None:
    plan = plan_of("decode")
    assert {step.kind for step in plan.steps} == {"restart"}
    assert (plan.knob, plan.targets, plan.undo) == (None, (), ())
    assert not any(step.kind == "restart" and step.changed for step in plan.steps)


def test_its_gates_are_those_of_a_life_and_the_canary_behind_the_last_one() -> None:
    gates = [step.gates for step in plan_of("gpu1", "co-restart").steps]
    assert all(some[:3] == ("incarnation", "port", "health") for some in gates)
    assert [some[3:] for some in gates[:-1]] == [()] * (len(gates) - 1)


def test_the_digest_is_of_the_lives_that_it_ends() -> None:
    plan = plan_of("decode")
    facts = b.facts(TWO)
    other = {**facts, "decode@gpu1": facts["decode@gpu1"].model_copy(update={"incarnation": b.life(77)})}
    (again,) = plan_restart(TWO, aim("decode"), b.facts(TWO), ()).plans
    (moved,) = plan_restart(TWO, aim("decode"), other, ()).plans
    assert plan.digest == again.digest != moved.digest


def case(**rule: object) -> Case:
    fleet = b.fleet(rules=({**b.RULE, "match": rule},))
    return Case("restart", Actor(id="U0ANA", roles=("engineers",)), fleet, None, ("decode",), None, (), b.NOW)


@pytest.mark.parametrize(
    "match", [{"kind": "deploy"}, {"kind": "restart"}, {"intent": "restart"}, {"service": "decode"}, {}]
)
def test_rules_about_deploys_cover_restarts(match: dict[str, object]) -> None:
    assert decide(case(**match)).outcome == "needs"


@pytest.mark.parametrize(
    "match", [{"kind": "knob"}, {"intent": "set"}, {"service": "prefill"}, {"knob": "TARGET_CTAS"}]
)
def test_rules_about_other_things_do_not_and_the_answer_is_no(match: dict[str, object]) -> None:
    assert decide(case(**match)).outcome == "refused"
