"""A lock decides what may be planned and what may begin, on real hosts."""

from __future__ import annotations

import pytest

from policies.intents import LockScope, UnlockScope
from tests.real.stage import ANA, BEN, HERE, Stage
from workers.prepare import prepare

pytestmark = pytest.mark.real


def test_what_a_lock_covers_is_not_planned_and_what_begins_after_it_does_not_begin(stage: Stage) -> None:
    locks = stage.w.client.locks
    locks.lock(LockScope(scope="prefill", because="profiling"), ANA, HERE)
    planned = stage.ask().planned
    assert planned is not None
    assert [plan.order for plan in planned.plans] == ["decode-only"]  # the other order would touch prefill
    approved = stage.approved()
    locks.lock(LockScope(scope="decode", because="profiling"), ANA, HERE)
    refused = stage.ask()
    assert refused.state == "refused"
    before = stage.pid("decode")
    assert stage.execute(approved).state == "asked"  # planned again, because what may be done has changed
    prepare(stage.w, approved.id)
    assert stage.w.client.change(approved.id).state == "refused"
    assert stage.pid("decode") == before
    assert locks.unlock(UnlockScope(scope="decode"), BEN).finding.effect == "allow"
    assert stage.execute(stage.approved()).state == "succeeded"
