"""A change from the question to its end, judged from the services' own clocks, /proc and the ledger."""

from __future__ import annotations

import pytest

from policies import events as e
from policies.intents import RestoreKnob, RevertKnob, SetKnob
from sandbox.fleet.document import KNOB, KNOB_ENV
from tests.real.stage import BEN, Stage, plan_of, until

pytestmark = pytest.mark.real


def test_a_revert_takes_the_variable_out_of_the_live_process_with_one_restart(stage: Stage) -> None:
    stage.restart_by_hand("decode")
    assert stage.environ()[KNOB_ENV] == "512"
    before = stage.starts()

    done = stage.execute(stage.approved("decode-only"))

    assert done.state == "succeeded"
    assert KNOB_ENV not in stage.environ()
    assert [now - then for now, then in zip(stage.starts(), before, strict=True)] == [0, 1, 0]
    last = stage.last(done, e.Succeeded)
    assert (last.was, last.now) == ({"decode@gpu1": "512"}, {"decode@gpu1": None})
    assert stage.ledger.verify() == []


def test_a_co_restart_goes_in_order_and_nothing_starts_before_the_gate_of_the_one_before(stage: Stage) -> None:
    assert stage.execute(stage.approved("decode-only")).state == "succeeded"
    stage.give_evidence("512")
    first = stage.starts()

    done = stage.execute(stage.approved("co-restart", RestoreKnob(knob=KNOB, value="512")))

    assert done.state == "succeeded"
    assert [now - then for now, then in zip(stage.starts(), first, strict=True)] == [1, 1, 1]
    prefill, decode, router = (stage.clock(role, "started")[-1] for role in ("prefill", "decode", "router"))
    assert prefill < stage.clock("prefill", "healthy")[-1] < decode
    assert decode < stage.clock("decode", "healthy")[-1] < router
    assert stage.environ()[KNOB_ENV] == "512"
    proved = stage.last(done, e.Proved)
    proof = proved.proofs["decode@gpu1"]
    assert (proof.verdict, proof.rung, proof.reported) == ("live", "reported", "512")
    gates = [(g.instance, g.gate) for g in stage.events(done) if isinstance(g, e.GatePassed)]
    life = ["incarnation", "port", "health"]
    assert gates == [
        *[("prefill@gpu1", gate) for gate in life],
        *[("decode@gpu1", gate) for gate in (*life, "environment", "reported")],
        *[("router@gpu1", gate) for gate in (*life, "canary")],
    ]


def test_a_dry_change_stops_at_its_plan_and_cannot_be_confirmed(stage: Stage) -> None:
    change = stage.ask(RevertKnob(knob=KNOB, because="x", dry=True))
    assert change.state == "planned"
    assert stage.confirm(change).finding.code == "click.dry"
    assert stage.execute(change).state == "planned"
    assert stage.starts() == (0, 0, 0)


def test_nothing_to_do_is_an_outcome_and_touches_nothing(stage: Stage) -> None:
    assert stage.execute(stage.approved("decode-only")).state == "succeeded"
    starts = stage.starts()
    assert stage.ask(SetKnob(knob=KNOB, value="7")).state == "refused"  # no evidence
    stage.give_evidence("512")
    assert stage.execute(stage.approved("decode-only", RestoreKnob(knob=KNOB, value="512"))).state == "succeeded"
    for intent in (RestoreKnob(knob=KNOB, value="512"), SetKnob(knob=KNOB, value="512")):
        same = stage.ask(intent)  # a set would need three runs of evidence, if it changed anything
        assert same.state == "nothing_to_do"
        assert stage.codes(same) == {"plan.nothing-to-do"}
    assert stage.starts()[1] == starts[1] + 1


def test_a_dead_decode_can_be_repaired_and_the_plan_says_that_it_is_dead(stage: Stage) -> None:
    stage.guard("decode", f'test -z "${KNOB_ENV}" || exit 3')
    stage.systemctl("restart", "sglang-demo-decode.service")
    stage.systemctl("stop", "sglang-demo-decode.service")

    change = stage.ask()

    warned = {finding.code for finding in plan_of(change).warnings}
    assert "plan.not-active-now" in warned
    assert stage.confirm(change).finding.code == "click.ok"
    assert stage.execute(change).state == "succeeded"
    assert KNOB_ENV not in stage.environ()


def test_a_decode_in_a_crash_loop_can_be_repaired_although_its_life_is_always_another(stage: Stage) -> None:
    stage.guard("decode", f'test -z "${KNOB_ENV}" || exit 3', "RestartSec=0.2\nStartLimitIntervalSec=0")
    stage.systemctl("restart", "sglang-demo-decode.service")
    until(lambda: int(stage.fleet.show("decode", "NRestarts")["NRestarts"]) >= 3, "decode does not crash")
    change = stage.ask()
    assert {"plan.crash-looping", "plan.not-active-now"} & {finding.code for finding in plan_of(change).warnings}
    assert stage.confirm(change, actor=BEN).finding.code == "click.ok"
    assert stage.execute(change).state == "succeeded"
    assert KNOB_ENV not in stage.environ()


def test_what_was_verified_listed_and_shown_is_what_runs_and_drift_is_marked(stage: Stage) -> None:
    assert stage.execute(stage.approved("decode-only")).state == "succeeded"
    looks = stage.w.looks
    verify = looks.verify(KNOB)
    assert [(p.instance, p.wanted, p.verdict) for p in verify.proofs] == [("decode@gpu1", None, "live")]
    assert verify.health == {"decode@gpu1": 200}
    (value,) = looks.show(KNOB).values
    assert (value.managed, value.desired, value.configured, value.live_answer) == (True, None, None, "absent")
    assert not value.drift

    stage.write("decode", "zz-zz.conf", f'[Service]\nUnsetEnvironment=\nEnvironment="{KNOB_ENV}=77"\n')

    (look,) = looks.list_knobs("decode")
    assert look.values[0].configured == "77"
    assert (look.values[0].configured_by or "").endswith("zz-zz.conf:3")
    assert look.values[0].drift
    (proof,) = looks.verify(KNOB).proofs
    assert (proof.verdict, proof.wanted) == ("live", None)  # the process that runs still lacks it
    assert "proof.effective-other" in {finding.code for finding in proof.findings}
