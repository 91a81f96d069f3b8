"""Who may start a change, and what must still be as it was when they looked: clicks, roles, expiry, facts."""

from __future__ import annotations

from collections import Counter

import pytest

from policies import events as e
from policies.intents import Act, RevertKnob, SetKnob
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.units import unit_name
from tests.real.stage import ANA, BEN, CAT, Stage, at_once, lookalike, plan_of
from workers.execute import execute
from workers.prepare import prepare

pytestmark = pytest.mark.real


def test_execute_delivered_twice_at_once_is_one_execution(stage: Stage) -> None:
    change = stage.approved("decode-only")
    other = lookalike(stage.w, "w2")
    at_once(lambda: execute(stage.w, change.id), lambda: execute(other, change.id))
    execute(stage.w, change.id)
    assert stage.w.client.change(change.id).state == "succeeded"
    assert stage.starts() == (0, 1, 0)
    kinds = Counter(stage.kinds(change))
    assert (kinds["started"], kinds["step_started"], kinds["succeeded"]) == (1, 2, 1)


def test_of_two_approvers_at_once_one_wins_and_the_other_is_answered(stage: Stage) -> None:
    change = stage.ask()
    answers = at_once(
        lambda: stage.confirm(change, "decode-only", BEN).finding.code,
        lambda: stage.confirm(change, "co-restart", CAT).finding.code,
    )
    assert sorted(map(str, answers)) == ["click.ok", "click.wrong-state"]
    assert stage.kinds(change).count("approval_given") == 1


def test_clicks_by_the_requester_on_an_old_plan_and_too_late_are_refused(stage: Stage) -> None:
    change = stage.ask()
    assert stage.confirm(change, actor=ANA).finding.code == "click.self-approval"
    old = Act(kind="confirm", change=change.id, order="decode-only", digest="0" * 64)
    assert stage.w.client.act(old, BEN).finding.code == "click.old-plan"
    assert change.planned is not None
    expires_at = change.planned.expires_at
    stage.w.client._clock = lambda: expires_at
    assert stage.confirm(change).finding.code == "click.expired"
    assert stage.execute(change).state == "planned"
    assert stage.starts() == (0, 0, 0)


def test_a_change_that_expired_between_click_and_start_is_refused(stage: Stage) -> None:
    change = stage.approved()
    assert change.planned is not None
    expires_at = change.planned.expires_at
    stage.w.__dict__["clock"] = lambda: expires_at + 1
    assert stage.execute(change).state == "refused"
    assert stage.codes(change) >= {"approval.expired"}
    assert stage.starts() == (0, 0, 0)


def test_an_approver_who_lost_the_role_between_click_and_start_carries_nothing(stage: Stage) -> None:
    change = stage.approved()
    role = stage.document.roles["approvers"].model_copy(update={"users": ("U09ELSE",)})
    stage.rewire(stage.document.model_copy(update={"roles": {**stage.document.roles, "approvers": role}}))
    assert stage.execute(change).state == "refused"
    assert stage.codes(change) >= {"approval.role-lost"}
    assert stage.starts() == (0, 0, 0)


def test_a_rule_without_approvals_executes_without_a_click(stage: Stage) -> None:
    rules = tuple(rule.model_copy(update={"approvals": 0, "by": None}) for rule in stage.document.rules)
    stage.rewire(stage.document.model_copy(update={"rules": rules}))
    change = stage.ask(RevertKnob(knob=KNOB, because="x", order="decode-only"))
    assert change.state == "approved"
    assert stage.execute(change).state == "succeeded"
    assert stage.starts() == (0, 1, 0)


def test_a_file_edited_between_plan_and_start_is_named_and_the_change_is_planned_again(stage: Stage) -> None:
    variables = stage.host.manager.home / "engine.env"
    variables.write_text("OTHER=1\n")
    dropin = stage.write("decode", "10-files.conf", f"[Service]\nEnvironmentFile={variables}\n")
    for edited in (stage.units / unit_name("decode"), dropin, variables):
        change = stage.approved("decode-only")
        edited.write_text(edited.read_text() + "# seen to\n")

        asked = stage.execute(change)

        assert asked.state == "asked"
        replan = stage.last(change, e.Replan)
        assert [(f.code, f.values["path"]) for f in replan.findings] == [("replan.file", str(edited))]
        assert stage.starts() == (0, 0, 0)
        prepare(stage.w, change.id)
        assert stage.confirm(change).finding.code == "click.old-plan"
        again = stage.w.client.change(change.id)
        assert plan_of(again).digest != plan_of(change).digest
        assert stage.confirm(again).finding.code == "click.ok"
        assert stage.say(again, "abort", ANA).code == "click.ok"  # the next one would wait for it
        assert stage.execute(again).state == "aborted"


def test_a_unit_restarted_by_hand_between_plan_and_start_is_planned_again(stage: Stage) -> None:
    change = stage.approved("decode-only")
    stage.restart_by_hand("decode")
    assert stage.execute(change).state == "asked"
    assert stage.codes(change) >= {"replan.incarnation"}
    assert stage.starts() == (0, 1, 0)


def test_an_abort_before_the_start_ends_the_change_with_nothing_done(stage: Stage) -> None:
    change = stage.approved("co-restart")
    stage.restart_by_hand("decode")  # a new plan is due, but nobody wants it any more
    assert stage.say(change, "abort", ANA).code == "click.ok"
    assert stage.execute(change).state == "aborted"
    assert stage.codes(change) >= {"aborted.before-start"}
    assert stage.starts() == (0, 1, 0)


def test_a_place_that_loses_is_refused_with_the_effective_value_and_its_line(stage: Stage) -> None:
    home = stage.host.manager.home
    rules = tuple(rule.model_copy(update={"evidence": None}) for rule in stage.document.rules)
    stage.rewire(stage.document.model_copy(update={"rules": rules}))
    reads = f"EnvironmentFile={home}/engine.env"
    cases: tuple[tuple[str, str, str | None], ...] = (
        (reads, f"{KNOB_ENV}=64\n", "64"),
        (reads, f"{KNOB_ENV}=64 # was 32\n", "64 # was 32"),
        (f"UnsetEnvironment={KNOB_ENV}", "", None),
    )
    for setting, variables, effective in cases:
        (home / "engine.env").write_text(variables)
        path = stage.write("decode", "10-more.conf", f"[Service]\n{setting}\n")

        change = stage.ask(SetKnob(knob=KNOB, value="128"))

        assert change.state == "refused"
        (finding,) = [f for f in stage.last(change, e.Refused).findings if f.code == "plan.place-loses"]
        assert finding.values["effective"] == effective
        assert finding.values["decided_by"] == (f"{home}/engine.env:1" if variables else f"{path}:2")
    assert stage.starts() == (0, 0, 0)


def test_a_foreign_file_of_our_name_is_refused_and_left_as_it_is(stage: Stage) -> None:
    theirs = "[Service]\nNice=5\n"
    path = stage.write("decode", "zz-clawback.conf", theirs)
    change = stage.ask()
    assert change.state == "refused"
    assert "plan.dropin-foreign" in stage.codes(change)
    assert path.read_text() == theirs
    assert stage.starts() == (0, 0, 0)


def test_a_host_that_cannot_be_reached_or_shows_another_key_is_refused_and_nothing_is_done(stage: Stage) -> None:
    ssh = stage.host.ssh
    change = stage.approved()
    other = stage.ask()
    ssh.refuse()
    ssh.drop_connections()
    try:
        assert stage.execute(change).state == "refused"
        assert stage.codes(change) >= {"host.unreachable"}
        assert stage.ask().state == "refused"
    finally:
        ssh.refuse(False)
    kept = ssh._key
    ssh.change_host_key()
    try:
        assert stage.confirm(other).finding.code == "click.ok"
        assert stage.execute(other).state == "refused"
        assert stage.codes(other) >= {"host.key-refused"}
    finally:
        ssh._key = kept
    assert stage.starts() == (0, 0, 0)
