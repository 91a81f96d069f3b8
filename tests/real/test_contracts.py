"""Engines that have to agree: a version that brings another setting fails its gate, and a mismatch is told."""

from __future__ import annotations

import pytest

from policies import events as e
from policies.fleet import Contract, Knob
from policies.intents import Deploy, SetKnob
from sandbox.fleet.releases import GOOD
from tests.real.stage import Stage, plan_of, quick
from workers.drift import fleet_drift
from workers.wiring import load_fleet

pytestmark = pytest.mark.real
ODD = "0.5.32"
BUILD = Contract(name="build", reported={"prefill": "git_commit", "decode": "git_commit"})
DTYPE = Contract(name="kv-dtype", knob="KV_DTYPE")
KNOB = Knob(
    name="KV_DTYPE",
    env="PREFILL_KV_DTYPE",
    envs={"prefill": "PREFILL_KV_DTYPE", "decode": "DECODE_KV_DTYPE"},
    on=("prefill", "decode"),
    type="enum",
    values=("auto", "fp8"),
    restarts=("co-restart",),
)


@pytest.fixture
def pair(stage: Stage) -> Stage:
    """prefill and decode agree on the build that they report, and on a data type that each calls otherwise."""
    fleet = quick(load_fleet(stage.fleet.fleet_yaml))
    rules = tuple(rule.model_copy(update={"evidence": None}) for rule in fleet.rules)
    rules = tuple(rule for rule in rules if rule.ask is not None or rule.approvals is not None)
    contracts = {one.name: one for one in (BUILD, DTYPE)}
    knobs = {**fleet.knobs, KNOB.name: KNOB}
    stage.rewire(fleet.model_copy(update={"contracts": contracts, "knobs": knobs, "rules": rules}))
    return stage


def test_a_version_that_brings_another_setting_fails_its_gate_and_goes_back(pair: Stage) -> None:
    pair.fleet.releases.add(ODD, {"version": ODD, "commit": "0123456789ab"}, at=1_700_000_011.0)
    done = pair.execute(pair.approved("decode-only", Deploy(service="decode", ref=ODD)))
    failed = pair.last(done, e.GateFailed)
    (found,) = failed.verdict.findings[:1]
    assert (done.state, failed.gate, found.code) == ("rolled_back", "contract", "gate.contract.broken")
    assert found.values["reported"] == "0123456789ab"
    assert pair.starts() == (0, 2, 0)
    good = pair.execute(pair.approved("decode-only", Deploy(service="decode", ref=GOOD)))
    gates = [event.gate for event in pair.events(good) if isinstance(event, e.GatePassed)]
    assert (good.state, gates) == (
        "succeeded",
        ["incarnation", "port", "health", "version", "contract", "canary"],
    )


def test_one_side_is_refused_both_are_one_change_and_a_mismatch_is_marked(pair: Stage) -> None:
    one = pair.ask(SetKnob(knob=KNOB.name, value="fp8", scope="decode", because="memory"))
    assert (one.state, "contract.one-side" in pair.codes(one)) == ("refused", True)
    assert pair.starts() == (0, 0, 0)
    pair.write("decode", "40-by-hand.conf", "[Service]\nEnvironment=DECODE_KV_DTYPE=fp8\n")
    (look,) = [x for x in pair.w.looks.list_knobs() if x.knob.name == KNOB.name]
    assert [x.code for x in look.contracts] == ["contract.differs-set"]
    drifted = [f.code for x in fleet_drift(pair.w).instances for f in x.findings if f.code.startswith("contract.")]
    assert drifted == ["contract.differs-set"]
    asked = pair.ask(SetKnob(knob=KNOB.name, value="fp8", because="memory"))
    assert "contract.differs-set" in {f.code for f in plan_of(asked, "co-restart").warnings}
    pair.confirm(asked, "co-restart")
    done = pair.execute(asked)
    assert done.state == "succeeded", pair.codes(done)
    assert (pair.environ("prefill")["PREFILL_KV_DTYPE"], pair.environ("decode")["DECODE_KV_DTYPE"]) == ("fp8", "fp8")
    (look,) = [x for x in pair.w.looks.list_knobs() if x.knob.name == KNOB.name]
    assert look.contracts == ()
