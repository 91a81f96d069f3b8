"""What a knob intent comes down to: which value on which instances, from words and history."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from policies.events import Succeeded
from policies.finding import Finding
from policies.intents import KnobIntent
from policies.planning.goal import Goal, goal
from tests.policies import builders as b

CASES = b.golden("plans/goal.json")
INTENT: TypeAdapter[KnobIntent] = TypeAdapter(KnobIntent)


def by_instance(given: Any, instances: tuple[str, ...]) -> dict[str, str | None]:
    """One value for all instances, or the values as given."""
    return given if isinstance(given, dict) else dict.fromkeys(instances, given)


def goal_in(case: dict[str, Any]) -> Goal | Finding:
    """The goal of a case in a fleet with decode on two hosts."""
    hosts = case.get("hosts", ["gpu1", "gpu2"])
    fleet = b.fleet(hosts=hosts)
    instances = fleet.instances("decode")
    extra = {"because": "it hangs"} if case["intent"]["kind"] == "revert" else {}
    intent = INTENT.validate_python({"knob": "TARGET_CTAS", **extra, **case["intent"]})
    history = [
        Succeeded(
            knob="TARGET_CTAS",
            order="co-restart",
            was=by_instance(done["was"], instances),
            now=by_instance(done["now"], instances),
            word=done.get("word"),
            took_s=80.0,
        )
        for done in case.get("history", ())
    ]
    return goal(intent, fleet, history, by_instance(case.get("live"), instances))


@pytest.mark.parametrize("case", CASES, ids=b.ids(CASES))
def test_an_intent_gives_a_goal_or_the_one_reason_why_not(case: dict[str, Any]) -> None:
    found = goal_in(case)
    if "code" in case:
        assert isinstance(found, Finding)
        assert (found.code, found.effect) == (case["code"], "refuse")
        assert {key: found.values[key] for key in case.get("values", {})} == case.get("values", {})
        return
    assert isinstance(found, Goal)
    assert (found.word, found.value) == (case["word"], case["value"])
    assert [note.code for note in found.notes] == case.get("notes", [])
    if "instances" in case:
        assert list(found.instances) == case["instances"]
    if "orders" in case:
        assert list(found.orders) == case["orders"]


def test_a_knob_of_two_services_is_set_on_both() -> None:
    fleet = b.fleet(hosts=("gpu1", "gpu2"), knobs=(b.knob(name="LOG", env="LOG", on=("prefill", "decode")),))
    found = goal(INTENT.validate_python({"kind": "set", "knob": "LOG", "value": "1"}), fleet, (), {})
    assert isinstance(found, Goal)
    assert found.instances == ("prefill@gpu1", "decode@gpu1", "decode@gpu2")
    one = goal(INTENT.validate_python({"kind": "set", "knob": "LOG", "value": "1", "scope": "gpu1"}), fleet, (), {})
    assert isinstance(one, Goal)
    assert one.instances == ("prefill@gpu1", "decode@gpu1")
