"""What is planned of three real replicas: a floor that would break, and a fleet that is half changed already."""

from __future__ import annotations

import pytest

from policies import events as e
from policies.intents import Restart, UnsetKnob
from sandbox.fleet.document import KNOB
from tests.real.stage import plan_of
from tests.real.test_waves import DECODES, UNIT, Replicas, fleet, pool, replicas

pytestmark = pytest.mark.real
__all__ = ["fleet", "pool", "replicas"]  # used by pytest


def test_a_restart_of_one_replica_is_refused_while_the_others_are_away_and_nothing_is_touched(
    replicas: Replicas,
) -> None:
    for other in DECODES[1:]:
        replicas.systemctl_on(other, "stop", UNIT)
    change = replicas.ask(Restart(scope="decode@gpu1"))
    assert change.state == "refused"
    found = next(f for f in replicas.last(change, e.Refused).findings if f.effect == "refuse")
    assert (found.code, found.values["keep"], found.values["serving"]) == ("plan.floor-broken", 1, 1)
    assert found.values["away"] == "decode@gpu2, decode@gpu3"
    assert replicas.ask(Restart(scope="decode@gpu2")).state == "planned"
    assert replicas.counted() == (0, 0, 0)
    for other in DECODES[1:]:
        replicas.systemctl_on(other, "start", UNIT)


def test_a_change_of_one_replica_leaves_a_mixed_fleet_and_the_next_one_touches_only_those_that_differ(
    replicas: Replicas,
) -> None:
    one = replicas.execute(replicas.approved(intent=UnsetKnob(knob=KNOB, scope="decode@gpu2")))
    assert one.state == "succeeded", replicas.codes(one)
    assert (replicas.counted(), replicas.knobs()) == ((0, 1, 0), ("512", None, "512"))
    assert "plan.mixed-after" in [f.code for f in plan_of(one).warnings]
    rest = replicas.approved(intent=UnsetKnob(knob=KNOB))
    plan = plan_of(rest)
    assert [f.code for f in plan.warnings][:2] == ["plan.mixed", "plan.left-alone"]
    assert (plan.services, len(plan.targets)) == (("decode@gpu1", "decode@gpu3"), 3)
    rest = replicas.execute(rest)
    assert rest.state == "succeeded", replicas.codes(rest)
    assert (replicas.counted(), replicas.knobs()) == ((1, 1, 1), (None, None, None))
    proofs = replicas.last(rest, e.Proved).proofs
    assert {i: one.verdict for i, one in proofs.items()} == dict.fromkeys(DECODES, "live")
