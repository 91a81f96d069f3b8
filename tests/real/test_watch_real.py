"""The watch on real systemd: our own change leaves nothing to tell, what was done by hand is told."""

from __future__ import annotations

import pytest

from policies import events as e
from sandbox.fleet.units import unit_name
from tests.real.stage import Stage
from workers.watch import Watch

pytestmark = pytest.mark.real


def test_a_change_of_ours_is_no_finding_and_what_was_done_by_hand_is_one(stage: Stage) -> None:
    watch = Watch(stage.w.redis, stage.w.ledger, stage.w.fleet, lambda: stage.w.hosts)
    assert watch.round() == []
    assert stage.execute(stage.approved()).state == "succeeded"
    assert watch.round() == []
    pid = stage.pid("decode")
    path = stage.write("decode", "50-hand.conf", "[Service]\nEnvironment=NCCL_DEBUG=INFO\n")
    stage.systemctl("restart", unit_name("decode"))
    stage.fleet.wait_healthy()
    assert watch.round() == ["out-1"]
    (entry,) = stage.w.ledger.entries("out-1")
    assert isinstance(entry.event, e.OutsideSeen)
    told = [(one.what, one.name, one.was, one.now) for one in entry.event.found]
    assert [one[:2] for one in told] == [("appeared", str(path)), ("restarted", "")]
    assert told[1][2:] == (f"pid {pid}", f"pid {stage.pid('decode')}")
    assert watch.round() == []
