"""Somebody else in the unit's place: on its port, at its device, around its process. Told before, named after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bot.messages import strict
from policies import events as e
from policies.finding import Finding
from policies.intents import SetKnob
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.fleet import ROLES
from sandbox.fleet.misbehaviour import OLD_VERSION, device
from tests.real.stage import BEN, Stage, plan_of, quick, until

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def _behave(stage: Stage) -> Iterator[None]:
    yield
    for role in ROLES:
        stage.fleet.behave(role)


def warning(stage: Stage, change: Any, code: str, order: str = "decode-only") -> Finding:
    """The one warning of a code."""
    assert all(strict(w) for w in plan_of(change, order).warnings)
    (found,) = [w for w in plan_of(change, order).warnings if w.code == code]
    return found


def failure(stage: Stage, change: Any) -> tuple[e.GateFailed, dict[str, Finding]]:
    """The last gate that failed, and its findings by code."""
    failed = stage.last(change, e.GateFailed)
    assert all(strict(finding) for finding in failed.verdict.findings)
    return failed, {f.code: f for f in failed.verdict.findings}


def test_an_orphan_that_takes_the_port_is_named_not_believed_and_not_ended(stage: Stage) -> None:
    stage.rewire(quick(stage.document, boot_s=6.0))
    change = stage.approved("co-restart")
    decode, router = stage.pid("decode"), stage.pid("router")
    stage.fleet.misbehave("prefill", "orphan")
    (orphan,) = stage.fleet._troubles["prefill"].processes

    held = stage.execute(change)

    assert held.state == "held"
    failed, found = failure(stage, held)
    assert (failed.instance, failed.gate, failed.verdict.answer) == ("prefill@gpu1", "port", "fail")
    assert failed.verdict.findings[0].code == "gate.port.foreign"
    holder = found["gate.port.holder"].values
    assert (holder["pid"], holder["name"]) == (orphan.pid, "python3")
    assert str(holder["cgroup"]).endswith("/sessions")
    assert isinstance(holder["since"], float)
    version = found["gate.version-differs"].values
    assert (version["version"], version["planned"]) == (OLD_VERSION, "0.5.23")
    assert "cannot bind port" in str(found["gate.log-tail"].values["text"])
    assert stage.fleet.status("prefill") == "200"  # which nobody counted:
    assert [g for g in stage.events(held) if isinstance(g, e.GatePassed)] == []
    assert orphan.poll() is None
    assert (stage.pid("decode"), stage.pid("router")) == (decode, router)
    assert stage.starts()[1:] == (0, 0)


def test_a_port_that_is_not_the_units_is_warned_of_and_its_owner_proves_no_value(stage: Stage) -> None:
    stage.rewire(quick(stage.document, boot_s=4.0))
    stage.fleet.misbehave("decode", "orphan-now")
    (orphan,) = stage.fleet._troubles["decode"].processes
    until(lambda: int(stage.fleet.show("decode", "NRestarts")["NRestarts"]) >= 3, "decode does not meet the orphan")
    change = stage.ask()  # revert: the orphan's environment lacks the knob, as is wanted
    values = warning(stage, change, "plan.port-foreign").values
    assert (values["pid"], values["port"]) == (orphan.pid, stage.fleet.ports["decode"])
    assert plan_of(change).versions == ()
    (proof,) = stage.w.looks.verify(KNOB).proofs
    assert orphan.pid not in {p.pid for p in proof.processes}

    assert stage.confirm(change).finding.code == "click.ok"
    held = stage.execute(change)

    assert held.state == "held"
    assert failure(stage, held)[0].gate == "port"
    assert "proved" not in stage.kinds(held)
    assert "gate.environment.live" not in stage.codes(held)
    assert orphan.poll() is None


def test_a_device_that_somebody_else_holds_stops_the_change_before_anything_is_touched(stage: Stage) -> None:
    services = dict(stage.document.services)
    services["decode"] = services["decode"].model_copy(update={"devices": (str(device(stage.fleet)),)})
    stage.rewire(stage.document.model_copy(update={"services": services}))
    free = stage.approved("decode-only")
    stage.fleet.misbehave("decode", "device")
    (orphan,) = stage.fleet._troubles["decode"].processes

    def is_held() -> bool:
        return bool(stage.w.hosts.observe(["decode@gpu1"], []).units["decode@gpu1"].device_holders)

    until(is_held, "the device is not held")
    values = warning(stage, stage.ask(), "plan.device-held").values
    assert (values["pid"], values["name"], values["device"]) == (orphan.pid, "python3", str(device(stage.fleet)))

    held = stage.execute(free)  # nobody held it when this one was planned

    assert held.state == "held"
    assert isinstance(held.last, e.Held)
    assert [(f.code, f.values["pid"]) for f in held.last.findings] == [("hold.device-held", orphan.pid)]
    assert stage.starts() == (0, 0, 0)
    assert not stage.dropin().exists()
    assert orphan.poll() is None
    orphan.kill()  # as a person would
    orphan.wait()
    assert stage.say(held, "retry", BEN).code == "click.ok"
    assert stage.execute(held).state == "succeeded"


def test_a_unit_that_only_starts_the_engine_is_proven_by_what_it_started(stage: Stage) -> None:
    stage.fleet.misbehave("decode", "wrapper")
    stage.restart_by_hand("decode")
    before = stage.starts()[1]
    change = stage.approved("decode-only")
    assert warning(stage, change, "plan.wraps-starter").values["program"] == "sh"

    done = stage.execute(change)

    assert done.state == "succeeded"
    assert stage.starts()[1] == before + 1
    proof = stage.last(done, e.Proved).proofs["decode@gpu1"]
    assert proof.verdict == "live"
    (said,) = [f for f in proof.findings if f.code == "proof.starter"]
    assert said.values["counted"] == 3  # the engine and its two children, and not the shell


def test_a_container_proves_nothing_even_where_its_clients_environment_agrees(stage: Stage) -> None:
    stage.give_evidence("600")
    rules = tuple(rule.model_copy(update={"evidence": None}) for rule in stage.document.rules)
    stage.rewire(stage.document.model_copy(update={"rules": rules}))
    stage.fleet.misbehave("decode", "container")
    stage.restart_by_hand("decode")
    change = stage.approved("decode-only", SetKnob(knob=KNOB, value="600"))
    assert warning(stage, change, "plan.wraps-container").values["program"] == "docker"

    held = stage.execute(change)

    assert held.state == "held"
    failed, found = failure(stage, held)
    assert (failed.gate, failed.verdict.answer) == ("environment", "inconclusive")
    assert found["proof.container"].values["program"] == "docker"
    assert stage.environ()[KNOB_ENV] == "600"  # the client has it, and that is no proof
    (proof,) = stage.w.looks.verify(KNOB).proofs
    assert proof.verdict == "unproven"
