"""What is different between the plan that was approved and the one that would be made now."""

from __future__ import annotations

import pytest

from policies.plan import Plan
from policies.replan import differences
from tests.policies.test_plan_digest import DUMPED, MOVES, PLACES, PLAN, STAYS, edited

CODES = {
    "a file that was read has other bytes": {"replan.file"},
    "a file that was read has another mode": {"replan.file"},
    "a file that was read is gone": {"replan.file"},
    "a drop-in has come": {"replan.file"},
    "the unit file has other bytes": {"replan.file"},
    "our drop-in was written by hand": {"replan.file", "replan.value"},
    "another process runs": {"replan.incarnation"},
    "a process of another service runs": {"replan.incarnation"},
    "the manager passes the variable on": {"replan.value"},
    "another value is wanted": {"replan.value"},
    "no value is wanted": {"replan.file", "replan.value"},
    "the fleet file has other bytes": {"replan.fleet-file"},
    "the manager is the users": {"replan.steps"},
    "the canary is gone": {"replan.steps"},
    "policy says something else": {"replan.policy"},
    "policy says it of another line": {"replan.policy"},
    "it is another order": {"replan.incarnation", "replan.file"},
}


@pytest.mark.parametrize("what", MOVES)
def test_a_difference_is_told_when(what: str) -> None:
    found = differences(PLAN, MOVES[what]())
    assert {f.code for f in found} == CODES[what]
    assert all(f.effect == "refuse" for f in found)


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(str(part) for part in path))
def test_plans_with_different_digests_never_differ_in_nothing(path: tuple[str | int, ...]) -> None:
    assert differences(PLAN, Plan.model_validate(edited(DUMPED, path))) != ()


def test_the_file_that_changed_is_named() -> None:
    (finding,) = differences(PLAN, MOVES["a file that was read has other bytes"]())
    assert finding.values == {"host": "gpu1", "path": "/etc/sgl/common.env"}


def test_the_process_that_was_replaced_is_named() -> None:
    (finding,) = differences(PLAN, MOVES["another process runs"]())
    assert finding.values == {"instance": "decode@gpu1", "planned_pid": 2101, "pid": 4242}


def test_the_value_that_moved_is_named() -> None:
    (finding,) = differences(PLAN, MOVES["the manager passes the variable on"]())
    assert finding.values == {"instance": "decode@gpu1", "before": None, "now": "64"}


def test_a_policy_that_says_less_is_named_by_its_code() -> None:
    (finding,) = differences(PLAN, PLAN.model_copy(update={"policy": ()}))
    assert finding.values == {"codes": "rule.may-ask"}
    (moved,) = differences(PLAN, MOVES["policy says it of another line"]())
    assert moved.values == {"codes": "values"}


def test_an_instance_that_is_gone_is_told() -> None:
    less = PLAN.model_copy(update={"incarnations": PLAN.incarnations[:-1], "targets": ()})
    assert [(f.code, f.values["instance"]) for f in differences(PLAN, less)] == [
        ("replan.incarnation", "router@gpu1"),
        ("replan.value", "decode@gpu1"),
    ]


@pytest.mark.parametrize("what", STAYS)
def test_the_same_plan_has_one_note_that_only_names_it(what: str) -> None:
    (finding,) = differences(PLAN, STAYS[what]())
    assert (finding.code, finding.values["before"]) == ("replan.steps", finding.values["now"])
