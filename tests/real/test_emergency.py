"""Somebody on call overrides a freeze and a missing approver: a second person ratifies it, or it is taken back."""

from __future__ import annotations

import json
import urllib.request

import pytest

from policies import events as e
from policies.emergency import OURS, ratification
from policies.fleet import Emergency, Freeze
from policies.intents import Act, Deploy, SetKnob
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.releases import GOOD
from tests.real.stage import ANA, BEN, Stage, plan_of, quick
from workers.prepare import prepare
from workers.wiring import load_fleet

pytestmark = pytest.mark.real
ALWAYS = Freeze(name="always", cron="0 0 * * *", for_s=90_000.0)


def night(stage: Stage, within_s: float) -> Stage:
    """A freeze holds, and engineers may override it."""
    emergency = Emergency(by="engineers", ratify_by="approvers", within_s=within_s, evidence="skipped")
    fleet = quick(load_fleet(stage.fleet.fleet_yaml))
    stage.rewire(fleet.model_copy(update={"freezes": (ALWAYS,), "emergency": emergency}))
    return stage


def version(stage: Stage) -> str:
    with urllib.request.urlopen(stage.fleet.url("decode", "/server_info"), timeout=20) as answer:
        return str(json.load(answer)["version"])


def test_an_override_that_a_second_person_ratifies_stays(stage: Stage) -> None:
    night(stage, 3600.0)
    plain = SetKnob(knob=KNOB, value="256", order="decode-only", because="5xx")
    refused = stage.ask(plain)
    assert (refused.state, stage.codes(refused) >= {"freeze.in-force", "emergency.could"}) == ("refused", True)
    asked = stage.ask(plain.model_copy(update={"emergency": True}))
    assert (asked.state, asked.planned and asked.planned.emergency is not None) == ("planned", True)
    assert stage.say(asked, "confirm", ANA).code == "click.emergency-unseen"
    assert stage.confirm(asked, actor=ANA).finding.code == "click.ok"
    done = stage.execute(asked)
    assert (done.state, stage.environ()[KNOB_ENV]) == ("succeeded", "256")
    assert done.override is not None
    assert (done.override.freezes, done.override.approvals, done.override.because) == (("always",), 1, "5xx")
    assert stage.say(done, "ratify", ANA).code == "click.self-ratified"
    assert stage.say(done, "ratify", BEN).code == "click.ok"
    assert ratification(stage.w.client.change(done.id)).by == BEN
    stage.w.emergencies.turn()
    assert stage.kinds(done)[-2:] == ["click_refused", "ratified"]
    assert [entry.subject for entry in stage.ledger.index("changes")] == [refused.id, done.id]


def test_an_override_that_nobody_ratifies_is_taken_back_by_a_change_of_its_own(stage: Stage) -> None:
    night(stage, 0.0)
    before = version(stage)
    asked = stage.ask(Deploy(service="decode", ref=GOOD, order="decode-only", because="5xx", emergency=True))
    digest = plan_of(asked).digest
    seen = Act(kind="confirm", change=asked.id, order="decode-only", digest=digest)
    assert stage.w.client.act(seen, ANA).finding.code == "click.ok"
    stage.w.emergencies.turn()  # it is at work, or will be at once: nothing is taken away from under it
    done = stage.execute(asked)
    assert (done.state, version(stage)) == ("succeeded", GOOD)
    stage.w.emergencies.turn()
    stage.w.emergencies.turn()
    lapsed = stage.w.client.change(done.id).lapsed
    assert lapsed is not None
    assert lapsed.undo is not None
    prepare(stage.w, lapsed.undo)
    back = stage.execute(stage.w.client.change(lapsed.undo))
    assert (back.state, version(stage), stage.fleet.releases.names) == ("succeeded", before, before)
    assert back.asked is not None
    assert (back.asked.actor, back.asked.undoes) == (OURS, done.id)
    passed = [event.gate for event in stage.events(back) if isinstance(event, e.GatePassed)]
    assert passed == ["incarnation", "port", "health", "version", "canary"]
    assert stage.last(back, e.Proved).proofs["decode@gpu1"].verdict == "live"
    stage.w.emergencies.turn()
    assert [entry.subject for entry in stage.ledger.index("changes")] == [done.id, back.id]
