"""The old process answers the probe: its 200 is not counted, it is named and never ended, and proves no value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.messages import sentence
from policies.aftermath.version import moved, own_version
from policies.facts import Incarnation, PortOwner
from policies.gates import incarnation, port
from policies.planning.knob import versions
from policies.preflight import preflight
from tests.policies import builders as b

CASE: dict[str, Any] = json.loads((b.GOLDEN / "cases/9-old-process-answers.json").read_text(encoding="utf-8"))
BEFORE, AFTER = (Incarnation.model_validate(CASE[name]) for name in ("before", "after"))
OWNER = PortOwner.model_validate(CASE["listener"])
INFO = b.answer(200, json.dumps(CASE["server_info"]), id="server_info", url="http://127.0.0.1:30000/server_info")
FLEET = b.fleet()


@pytest.mark.parametrize("state", CASE["states"], ids=lambda state: state["about"])
def test_the_port_fails_whatever_state_the_new_process_is_in(state: dict[str, Any]) -> None:
    life = incarnation.judge(
        "prefill@gpu1",
        BEFORE,
        AFTER,
        active_state=state["active_state"],
        sub_state=state["sub_state"],
        result=state["result"],
        n_restarts=0,
        waited_s=5.0,
    )
    assert (life.answer == "pass") is (state["active_state"] == "active")
    verdict = port.judge("prefill@gpu1", OWNER, AFTER, waited_s=5.0)
    assert verdict.answer == "fail"
    assert [sentence(f) for f in verdict.findings] == CASE["said"]
    assert port.taken(OWNER)


def test_another_version_than_the_planned_one_is_a_sign_of_its_own() -> None:
    unit = b.unit("prefill@gpu1", port=OWNER, http=(INFO,))
    (found,) = moved("prefill@gpu1", unit, CASE["planned"])
    assert sentence(found) == CASE["version_said"]
    assert moved("prefill@gpu1", unit, CASE["server_info"]["version"]) == ()
    assert moved("prefill@gpu1", unit, None) == ()


def test_what_the_orphan_says_is_not_taken_for_the_units_own_version() -> None:
    orphaned = b.unit("prefill@gpu1", port=OWNER, http=(INFO,))
    own = b.unit("prefill@gpu1", port=OWNER.model_copy(update={"in_unit": True}), http=(INFO,))
    assert (own_version(orphaned), own_version(own)) == (None, "0.5.21")
    assert versions(["prefill@gpu1"], {"prefill@gpu1": own}) == (("prefill@gpu1", "0.5.21"),)


@pytest.mark.parametrize("body", ["", "[]", "null", '{"version": 5}', "[" * 50_000, '{"other": 1}'])
def test_a_version_that_is_not_said_is_not_made_up(body: str) -> None:
    answer = b.answer(200, body, id="server_info")
    assert own_version(b.unit("prefill@gpu1", http=(answer,))) is None


def test_a_version_with_lone_surrogates_can_be_recorded() -> None:
    answer = b.answer(200, '{"version": "\\ud800"}', id="server_info")
    assert own_version(b.unit("prefill@gpu1", http=(answer,))) == "\\ud800"


def test_an_owner_from_before_is_warned_of_before_anything_is_restarted() -> None:
    unit = b.unit("prefill@gpu1", port=OWNER)
    (found,) = preflight(FLEET, ["prefill@gpu1"], {"prefill@gpu1": unit}, {})
    assert (found.code, found.effect) == ("plan.port-foreign", "warn")
    assert (found.values["pid"], found.values["cgroup"], found.values["since"]) == (
        4133,
        "/system.slice/old-run.scope",
        1796025641.0,
    )
