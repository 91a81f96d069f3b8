"""The digest is what an approver agrees to: it moves with every fact of the plan, and with nothing beside it."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from policies.decision import decide
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.plan import CanaryWatch, Estimate, Plan, Rolling
from policies.planning.knob import plan_knob
from tests.policies import builders as b
from tests.policies.systemd_tree import file_text, no_file
from tests.policies.test_decision import case_of

# `deploy`, `rolling` and `agreements` of a plan that has them are in it
BESIDE = {"estimate", "warnings", "load", "versions", "contents", "deploy", "rolling", "agreements"}
ENV_FILE = "/etc/sgl/common.env"
FRAGMENT = f"[Service]\nEnvironmentFile=-{ENV_FILE}\n"
NOTE = Finding(code="rule.may-ask", effect="allow", values={"role": "engineers", "line": 40, "none": None})


def seen(**changes: Any) -> dict[str, UnitFacts]:
    """Facts of the plain fleet, with an environment file and another drop-in on decode."""
    given: dict[str, Any] = {
        "fragment": FRAGMENT, "env_files": {ENV_FILE: "OTHER=1\n"}, "dropins": {"10-a.conf": "[Service]\nNice=1\n"},
        "running": "128",
    }  # fmt: skip
    return b.facts(b.fleet(), decode=b.unit(**{**given, **changes}))


def plan_of(facts: dict[str, UnitFacts] | None = None, **more: Any) -> Plan:
    """The co-restart."""
    fleet = more.pop("fleet", b.fleet())
    value = more.pop("value", "512")
    policy = more.pop("policy", (NOTE,))
    return plan_knob(fleet, b.goal_of(fleet, value), seen() if facts is None else facts, policy, **more).plans[0]


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a document that holds no document."""
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from leaves(below, (*path, key))
    elif isinstance(value, list) and value:
        for number, below in enumerate(value):
            yield from leaves(below, (*path, number))
    else:
        yield path


def edited(document: Any, path: tuple[str | int, ...]) -> Any:
    """The document with one leaf changed to another value of its kind."""
    changed = copy.deepcopy(document)
    at = changed
    for key in path[:-1]:
        at = at[key]
    old = at[path[-1]]
    if isinstance(old, bool):
        new: Any = not old
    elif isinstance(old, (int, float)):
        new = old + 1
    elif isinstance(old, str):
        new = old + "x"
    elif old is None:
        new = 7 if path[-1] == "mode" else "x"
    else:
        new = [] if old else None
    at[path[-1]] = new
    return changed


PLAN = plan_of()
DUMPED = PLAN.model_dump(mode="json")
# what a plan may not say otherwise: words of closed lists
FIXED = {"kind", "gates", "effect"}
PLACES = [p for p in leaves(DUMPED) if p[0] not in BESIDE and not FIXED & set(p) and edited(DUMPED, p) != DUMPED]


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(str(part) for part in path))
def test_any_one_field_that_is_edited_makes_it_another_plan(path: tuple[str | int, ...]) -> None:
    assert Plan.model_validate(edited(DUMPED, path)).digest != PLAN.digest


def test_how_replicas_are_taken_in_turn_is_in_the_digest() -> None:
    rolling = Rolling(service="decode", replicas=3, max_unavailable=1, keep=2)
    rolls = PLAN.model_copy(update={"rolling": (rolling,)})
    others = [rolls.model_copy(update={"rolling": (rolling.model_copy(update=more),)}) for more in (
        {"max_unavailable": 2}, {"keep": 1}, {"replicas": 4}, {"service": "prefill"},
        {"canary": CanaryWatch(instance="decode@gpu1", why="the first", watch_s=30.0)},
    )]  # fmt: skip
    assert len({plan.digest for plan in (PLAN, rolls, *others)}) == 2 + len(others)


def test_a_plan_of_one_wave_has_the_digest_that_it_had_before_there_were_waves() -> None:
    kept = {k: v for k, v in PLAN.model_dump(mode="json").items() if k not in BESIDE}
    for step in (*kept["steps"], *kept["undo"]):
        del step["wave"]
    spelled = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(spelled.encode()).hexdigest() == PLAN.digest


def test_every_field_of_a_plan_is_in_the_digest_or_named_as_beside_it() -> None:
    covered = {path[0] for path in PLACES}
    assert covered | BESIDE == set(Plan.model_fields)
    assert {path[-1] for path in PLACES if path[0] == "files"} == {"host", "path", "sha256", "mode"}
    assert {path[-1] for path in PLACES if path[0] == "incarnations"} >= {"main_pid", "started", "invocation_id"}


MOVES: dict[str, Callable[[], Plan]] = {
    "a file that was read has other bytes": lambda: plan_of(seen(env_files={ENV_FILE: "OTHER=2\n"})),
    "a file that was read has another mode": lambda: plan_of(_with_mode(0o600)),
    "a file that was read is gone": lambda: plan_of(
        {**seen(), "decode@gpu1": seen()["decode@gpu1"].model_copy(update={"env_files": (no_file(ENV_FILE),)})}
    ),
    "a drop-in has come": lambda: plan_of(seen(dropins={"10-a.conf": "[Service]\nNice=1\n", "20.conf": "[Service]\n"})),
    "the unit file has other bytes": lambda: plan_of(seen(fragment=FRAGMENT + "Nice=1\n")),
    "our drop-in was written by hand": lambda: plan_of(
        seen(dropins={"zz-clawback.conf": f'# written by clawback: edits made here by hand are seen as drift and stop '
                                          f'the next change\n[Service]\nEnvironment="{b.ENV}=64"\n'})
    ),
    "another process runs": lambda: plan_of(seen(pid=4242)),
    "a process of another service runs": lambda: plan_of({**seen(), "router@gpu1": b.unit("router@gpu1", pid=4242)}),
    "the manager passes the variable on": lambda: plan_of(seen(manager_environment={b.ENV: "64"})),
    "another value is wanted": lambda: plan_of(value="256"),
    "no value is wanted": lambda: plan_of(seen(fragment=f"{FRAGMENT}Environment={b.ENV}=1\n"), value=None),
    "the fleet file has other bytes": lambda: plan_of(fleet=b.fleet(sha256="e" * 64)),
    "the manager is the users": lambda: plan_of(fleet=b.fleet(manager="user")),
    "the canary is gone": lambda: plan_of(fleet=b.fleet(canary=False)),
    "policy says something else": lambda: plan_of(policy=(NOTE, NOTE)),
    "policy says it of another line": lambda: plan_of(
        policy=(NOTE.model_copy(update={"values": {**NOTE.values, "line": 41}}),)
    ),
    "it is another order": lambda: plan_knob(b.fleet(), b.goal_of(b.fleet()), seen(), (NOTE,)).plans[1],
}  # fmt: skip


def _with_mode(mode: int) -> dict[str, UnitFacts]:
    unit = seen()["decode@gpu1"]
    file = unit.env_files[0].model_copy(update={"mode": mode})
    return {**seen(), "decode@gpu1": unit.model_copy(update={"env_files": (file,)})}


@pytest.mark.parametrize("what", MOVES)
def test_it_is_another_plan_when(what: str) -> None:
    assert MOVES[what]().digest != PLAN.digest


STAYS: dict[str, Callable[[], Plan]] = {
    "it is made again": plan_of,
    "requests come and go": lambda: plan_of(
        load=(Finding(code="load.in-flight", effect="note", values={"running": 53.0}),)
    ),
    "a restart was recorded": lambda: PLAN.model_copy(update={"estimate": Estimate(median_s=160.0, p90_s=185.0, n=7)}),
    "the unit was looked at later": lambda: plan_of(seen(at=b.NOW + 60)),
    "a warning is given": lambda: plan_of(seen(type="notify", timeout_start_s=90.0)),
    "the unit is not active": lambda: plan_of(seen(active_state="reloading")),
    "a child process ended": lambda: plan_of(seen(processes=(b.process("128"), b.process("128", pid=7, main=False)))),
    "a file changed hands": lambda: plan_of(
        {**seen(), "decode@gpu1": seen()["decode@gpu1"].model_copy(update={"env_files": (
            file_text(ENV_FILE, "OTHER=1\n").model_copy(update={"owner": "1:1"}),)})}
    ),
    "health answers otherwise": lambda: plan_of(seen(http=(b.answer(503, id="health"),))),
}  # fmt: skip


@pytest.mark.parametrize("what", STAYS)
def test_it_is_the_same_plan_when(what: str) -> None:
    assert STAYS[what]().digest == PLAN.digest


def test_the_digest_outlives_storage() -> None:
    assert Plan.model_validate_json(PLAN.model_dump_json()).digest == PLAN.digest
    assert len(PLAN.digest) == 64


def test_a_plan_made_a_minute_later_on_the_same_case_is_the_same() -> None:
    rule = {**b.RULE, "evidence": {"metric": "output_throughput", "at_least": "observed", "max_age_s": 90 * 86400}}
    freeze = {"name": "day", "cron": "0 0 * * *", "for_s": 86000.0}
    fleet = b.fleet(rules=(rule,), freezes=(freeze,))
    for word in ("set", "revert"):
        digests = {
            plan_of(
                fleet=fleet, policy=decide(case_of(fleet, [b.record()], b.NOW + later, intent=word)).findings
            ).digest
            for later in (0.0, 0.5, 1.0, 59.0, 60.0)
        }
        assert len(digests) == 1
