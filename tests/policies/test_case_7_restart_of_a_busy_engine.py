"""Cases 6 and 7 in a plan: an engine that works is not restarted because its health fails, and a 200 proves nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.messages import sentence
from policies.finding import Finding
from policies.planning.deploy import plan_deploy
from policies.planning.knob import Planning, plan_knob
from policies.planning.restart import RestartGoal, plan_restart
from policies.states.judge import Look, judge_state
from policies.states.state import State
from tests.policies import builders as b
from tests.policies import deploy_cases
from tests.policies.scrapes import PD_EMPTY, engine_text, scrape

FLEET = b.fleet()
PREFILL = "prefill@gpu1"
ROLE = {"role": "prefill", "running": 1, "tokens": None, "http": None}
BEFORE = {**ROLE, "queued": 37, "realtime_tokens_total": 41287680, "pd": {"num_prefill_inflight_queue_reqs": 1}}
NOW = {**BEFORE, "queued": 39, "realtime_tokens_total": 41549824}
STUCK = {**NOW, "realtime_tokens_total": 41287680}


def state(now: dict[str, object], before: dict[str, object] | None = BEFORE) -> State:
    """What two scrapes 30 s apart say."""
    looks = [Look(scrape(engine_text(**texts), at)) if texts else None for texts, at in ((before, -30), (now, 0))]  # type: ignore[arg-type]  # families by name
    assert looks[1] is not None
    return judge_state(looks[0], looks[1])


def planned(
    found: State | None, *, health: int | None = 503, took_s: float = 20.0, anyway: str | None = None
) -> Planning:
    """`restart prefill` with that health check and those metrics."""
    answers = (b.answer(health, id="health", took_s=took_s),)
    facts = b.facts(FLEET, prefill=b.unit(PREFILL, http=answers))
    states = {PREFILL: found} if found is not None else {}
    return plan_restart(FLEET, RestartGoal("prefill", (PREFILL,)), facts, (), states=states, anyway=anyway)


def found(planning: Planning, code: str) -> Finding:
    findings = (*planning.findings, *(f for plan in planning.plans for f in plan.warnings))
    return next(f for f in findings if f.code == code)


@pytest.mark.parametrize("health", [503, 500, None])
def test_an_engine_that_makes_progress_is_not_restarted_because_its_health_fails(health: int | None) -> None:
    planning = planned(state(NOW), health=health)
    assert planning.plans == ()
    refusal = found(planning, "plan.busy-not-dead")
    assert refusal.effect == "refuse"
    assert {k: refusal.values[k] for k in ("counter", "by", "over_s", "queued_before", "queued", "took_s")} == {
        "counter": "realtime_tokens_total",
        "by": 262144,
        "over_s": 30,
        "queued_before": 37,
        "queued": 39,
        "took_s": 20.0,
    }
    said = sentence(refusal)
    assert said.startswith(f"{PREFILL} is not dead: its health check fails ({health or 'no answer'} after 20 s)")
    assert "realtime_tokens_total +262144 in 30 s (8738/s), running 1 to 1, queue 37 to 39" in said
    assert "anyway because" in said


def test_an_engine_that_has_nothing_left_to_do_may_be_restarted() -> None:
    done = {**NOW, "running": 0, "queued": 0, "pd": PD_EMPTY["prefill"], "http": 0}
    planning = planned(state(done))
    assert len(planning.plans) == 1


def test_a_person_may_say_anyway_and_is_on_record() -> None:
    planning = planned(state(NOW), anyway="U0ANA")
    assert len(planning.plans) == 1
    warning = found(planning, "plan.busy-restarted-anyway")
    assert (warning.effect, warning.values["actor"]) == ("warn", "U0ANA")
    assert "<@U0ANA> asked to restart it anyway" in sentence(warning)


def test_a_busy_engine_whose_health_is_well_may_be_restarted() -> None:
    planning = planned(state(NOW), health=200)
    assert len(planning.plans) == 1
    assert not [f for f in planning.plans[0].warnings if f.code.startswith("plan.busy")]


@pytest.mark.parametrize(
    ("before", "why"), [(None, "one sample"), ({**BEFORE, "realtime_tokens_total": None}, "no counters")]
)
def test_what_is_not_known_is_said_and_refuses_nothing(before: dict[str, object] | None, why: str) -> None:
    now = NOW if before is None else before
    planning = planned(state(now, before))
    assert len(planning.plans) == 1
    warning = found(planning, "plan.health-fails-unknown-work")
    assert f"whether it works or hangs is not known ({why})" in sentence(warning)


def test_a_200_is_no_proof_of_health_where_no_counter_moves() -> None:
    warning = found(planned(state(STUCK), health=200), "plan.hung-behind-health")
    assert "hangs behind a health check that says 200, which is no proof of health" in sentence(warning)
    assert len(planned(state(STUCK), health=200).plans) == 1


def test_an_engine_that_hangs_with_a_failing_check_may_be_restarted() -> None:
    planning = planned(state(STUCK))
    assert len(planning.plans) == 1
    assert "no counter of progress moved" in sentence(found(planning, "plan.hung"))


def test_without_metrics_nothing_is_claimed() -> None:
    planning = planned(None)
    assert len(planning.plans) == 1
    assert not [f for f in planning.plans[0].warnings if "hung" in f.code or "busy" in f.code or "work" in f.code]


DECODE = "decode@gpu1"
DEPLOY = {"ref": "v2", "order": "decode-only"}


def knob_warnings(found: State, health: int) -> list[Finding]:
    """Of a knob change that restarts prefill and decode, with that state of decode."""
    facts = b.facts(FLEET, decode=b.unit(DECODE, http=(b.answer(health, id="health", took_s=20.0),)))
    plans = plan_knob(FLEET, b.goal_of(FLEET), facts, (), states={DECODE: found}).plans
    assert [plan.order for plan in plans] == ["co-restart", "decode-only"]
    return [next(f for f in plan.warnings if f.values.get("instance") == DECODE) for plan in plans]


def deploy_warnings(found: State, health: int) -> list[Finding]:
    """Of a deploy of decode."""
    fleet, goal, _ = deploy_cases.planned(DEPLOY)
    assert goal is not None
    facts = deploy_cases.facts_of(DEPLOY, fleet)
    unit = facts[DECODE]
    facts[DECODE] = unit.model_copy(update={"http": (b.answer(health, id="health", took_s=20.0),)})
    seen = {DECODE: deploy_cases.seen_of(DEPLOY, DECODE, ["v2"])}
    (plan,) = plan_deploy(fleet, goal, facts, seen, [], (), {}, states={DECODE: found}).plans
    return [f for f in plan.warnings if f.code.startswith(("plan.busy", "plan.hung"))]


@pytest.mark.parametrize("warnings", [knob_warnings, deploy_warnings])
@pytest.mark.parametrize(
    ("now", "health", "code", "said"),
    [
        (NOW, 503, "plan.busy-restarted", "+262144 in 30 s (8738/s), running 1 to 1, queue 37 to 39"),
        (STUCK, 503, "plan.hung", "no counter of progress moved, running 1 to 1, queue 37 to 39"),
        (STUCK, 200, "plan.hung-behind-health", "a health check that says 200, which is no proof of health"),
    ],
)  # fmt: skip
def test_a_change_that_restarts_a_busy_or_hung_engine_says_so_with_its_readings(
    warnings: Callable[[State, int], list[Finding]], now: dict[str, object], health: int, code: str, said: str
) -> None:
    told = warnings(state(now), health)
    assert {(f.code, f.effect) for f in told} == {(code, "warn")}
    assert all(said in sentence(f) for f in told)
