"""Gates that do not pass: what is undone by itself, what waits for a person, and how each of their words ends it."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from policies import events as e
from policies.fleet import Canary
from sandbox.fleet.document import KNOB_ENV
from sandbox.fleet.units import unit_name
from tests.real.stage import ANA, BEN, Stage, quick, until

pytestmark = pytest.mark.real

NEEDS_KNOB = f'test -n "${KNOB_ENV}" || exit 3'


class _Orphan(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def orphan(port: int) -> Iterator[None]:
    """Somebody outside of every unit who listens on the port and says 200."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), _Orphan) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def canary_gate(stage: Stage) -> Canary:
    """A canary that the whole path takes and decode rejects, while every health check says 200."""
    probe = stage.document.services["router"].canary
    assert probe is not None
    body = {"model": "m", "prompt": "echo {nonce}", "max_tokens": 200_000}
    return probe.model_copy(update={"body": body, "timeout_s": 2.0})


@pytest.mark.parametrize("more", ["Restart=no", "RestartSec=0.1\nStartLimitIntervalSec=0"], ids=["exits", "crash-loop"])
def test_a_decode_that_does_not_come_up_is_undone_by_itself_byte_for_byte(stage: Stage, more: str) -> None:
    stage.guard("decode", NEEDS_KNOB, more)
    theirs = "# written by clawback: edits made here by hand are seen as drift and stop the next change\n[Service]\n"
    path = stage.write("decode", "zz-clawback.conf", theirs + 'Environment="OTHER=1"\n')
    before, router = path.read_bytes(), stage.pid("router")

    done = stage.execute(stage.approved("decode-only"))

    assert done.state == "rolled_back"
    failed = stage.last(done, e.GateFailed)
    assert (failed.part, failed.instance, failed.gate) == ("do", "decode@gpu1", "incarnation")
    code = "gate.incarnation.failed" if more == "Restart=no" else "gate.incarnation.crash-loop"
    assert failed.verdict.findings[0].code == code
    assert path.read_bytes() == before
    assert stage.environ()[KNOB_ENV] == "512"
    assert stage.pid("router") == router
    # the guard ends it before the engine begins; a crash loop may meet the old value before our restart does
    assert stage.starts() in {(0, 1, 0), (0, 1 if more == "Restart=no" else 2, 0)}


def test_a_decode_that_never_binds_its_port_is_undone_when_its_boot_time_is_over(stage: Stage) -> None:
    stage.rewire(quick(stage.document, boot_s=4.0))
    stage.guard("decode", f'test -n "${KNOB_ENV}" || exec sleep 300')
    done = stage.execute(stage.approved("decode-only"))
    assert done.state == "rolled_back"
    assert "gate.port.free" in stage.codes(done)
    assert not stage.dropin().exists()
    assert stage.environ()[KNOB_ENV] == "512"


def test_a_generation_that_is_dead_while_health_says_200_undoes_a_decode_only_change(
    stage: Stage, tmp_path: Path
) -> None:
    probe = stage.document.services["router"].canary
    assert probe is not None
    stage.rewire(quick(stage.document, canary=probe.model_copy(update={"timeout_s": 3.0})))
    for name in ("health", "server_info"):
        (tmp_path / name).write_text("{}")
    files = f"/usr/bin/python3 -m http.server --bind 127.0.0.1 --directory {tmp_path} {stage.fleet.ports['decode']}"
    stage.guard("decode", f'test -n "${KNOB_ENV}" || exec {files}')

    done = stage.execute(stage.approved("decode-only"))

    assert done.state == "rolled_back"
    failed = stage.last(done, e.GateFailed)
    assert (failed.part, failed.instance, failed.gate) == ("do", "decode@gpu1", "canary")
    assert "gate.health.ok" in stage.codes(done)
    assert stage.environ()[KNOB_ENV] == "512"
    assert not stage.dropin().exists()


def test_a_router_whose_canary_fails_is_held_and_an_approver_may_keep_it(stage: Stage) -> None:
    stage.rewire(quick(stage.document, canary=canary_gate(stage)))
    held = stage.execute(stage.approved("co-restart"))
    assert held.state == "held"
    failed = stage.last(held, e.GateFailed)
    assert (failed.instance, failed.gate) == ("router@gpu1", "canary")
    assert "undo_started" not in stage.kinds(held)
    assert KNOB_ENV not in stage.environ()

    assert stage.say(held, "keep", ANA).code == "click.self-approval"
    assert stage.say(held, "keep", BEN).code == "click.ok"
    assert stage.w.client.change(held.id).state == "failed"
    assert stage.execute(held).state == "failed"
    assert stage.starts() == (1, 1, 1)


def broken_prefill(stage: Stage) -> tuple[str, int, int]:
    """A prefill that exits until a file is there; the change that met it, held."""
    stage.guard("prefill", f"test -e {stage.host.manager.home}/repaired || exit 4")
    decode, router = stage.pid("decode"), stage.pid("router")
    held = stage.execute(stage.approved("co-restart"))
    assert held.state == "held"
    failed = stage.last(held, e.GateFailed)
    assert (failed.instance, failed.gate) == ("prefill@gpu1", "incarnation")
    assert (stage.pid("decode"), stage.pid("router")) == (decode, router)
    assert not stage.dropin().exists()
    return held.id, decode, router


def repair(stage: Stage) -> None:
    (stage.host.manager.home / "repaired").touch()


@pytest.fixture(autouse=True)
def _no_repair(stage: Stage) -> None:
    (stage.host.manager.home / "repaired").unlink(missing_ok=True)


def test_a_prefill_that_fails_its_gate_holds_and_goes_on_when_it_was_repaired(stage: Stage) -> None:
    change_id, decode, _ = broken_prefill(stage)
    held = stage.w.client.change(change_id)

    assert stage.say(held, "retry", ANA).code == "click.ok"
    assert stage.execute(held).state == "held"  # nothing was repaired
    assert stage.pid("decode") == decode

    repair(stage)
    stage.systemctl("start", unit_name("prefill"))
    assert stage.say(held, "retry", ANA).code == "click.ok"
    done = stage.execute(held)

    assert done.state == "succeeded"
    assert stage.starts() == (1, 1, 1)
    assert KNOB_ENV not in stage.environ()
    health = [g for g in stage.events(done) if isinstance(g, e.GatePassed) and g.gate == "health"]
    assert health[0].instance == "prefill@gpu1"
    assert health[0].waited_s is None  # a repair by hand is no measured boot


def test_an_undo_of_a_held_prefill_restarts_only_prefill_and_rolls_back(stage: Stage) -> None:
    change_id, decode, router = broken_prefill(stage)
    held = stage.w.client.change(change_id)
    assert stage.say(held, "undo", ANA).code == "click.ok"
    assert stage.execute(held).state == "held"  # it still exits
    repair(stage)
    stage.systemctl("start", unit_name("prefill"))
    assert stage.say(held, "undo", ANA).code == "click.ok"
    assert stage.execute(held).state == "rolled_back"
    assert (stage.pid("decode"), stage.pid("router")) == (decode, router)
    assert stage.starts() == (1, 0, 0)
    assert not stage.dropin().exists()


def test_an_orphan_on_the_port_holds_the_change_and_is_neither_killed_nor_fought(stage: Stage) -> None:
    stage.write("decode", "50-quick.conf", "[Service]\nRestartSec=0.1\nStartLimitIntervalSec=0\n")
    change = stage.approved("decode-only")
    stage.once("step_started", 1, lambda: stage.systemctl("stop", unit_name("decode")), before=False)
    port = stage.fleet.ports["decode"]
    hit = threading.Event()
    with_orphan = orphan(port)

    def take() -> None:
        with_orphan.__enter__()
        hit.set()

    stage.once("step_started", 1, take)
    try:
        held = stage.execute(change)
        assert hit.is_set()
        assert held.state == "held"
        failed = stage.last(held, e.GateFailed)
        assert (failed.gate, failed.verdict.findings[0].code) == ("port", "gate.port.foreign")
        assert "undo_started" not in stage.kinds(held)
        assert stage.dropin().exists()
    finally:
        if hit.is_set():
            with_orphan.__exit__(None, None, None)
    stage.fleet.wait_healthy()  # systemd goes on trying
    assert stage.say(held, "retry", BEN).code == "click.ok"
    assert stage.execute(held).state == "succeeded"
    assert KNOB_ENV not in stage.environ()


def test_a_unit_restarted_by_hand_between_two_steps_holds_and_leaves_it_untouched(stage: Stage) -> None:
    change = stage.approved("co-restart")
    stage.once("gate_passed", 0, lambda: stage.restart_by_hand("decode"))
    held = stage.execute(change)
    assert held.state == "held"
    assert isinstance(held.last, e.Held)
    assert [f.code for f in held.last.findings] == ["hold.other-incarnation"]
    assert held.last.findings[0].values["pid"] == stage.pid("decode")
    assert stage.starts() == (1, 1, 0)
    assert not stage.dropin().exists()

    assert stage.say(held, "undo").code == "click.ok"
    assert stage.execute(held).state == "rolled_back"
    assert stage.starts() == (2, 1, 0)


def test_a_unit_restarted_by_hand_while_its_gate_waits_holds_and_is_not_undone(stage: Stage) -> None:
    change = stage.approved("decode-only")
    thread = threading.Thread(target=_restart_when_started, args=(stage,))
    stage.once("step_done", 1, thread.start)
    held = stage.execute(change)
    thread.join()
    assert held.state == "held"
    failed = stage.last(held, e.GateFailed)
    assert failed.verdict.findings[0].code == "gate.incarnation.other"
    assert "undo_started" not in stage.kinds(held)
    until(lambda: stage.starts() == (0, 2, 0), "decode was not started twice")

    assert stage.say(held, "retry", ANA).code == "click.ok"  # whoever looked says that this life is as good
    assert stage.execute(held).state == "succeeded"
    assert stage.starts() == (0, 2, 0)


def _restart_when_started(stage: Stage) -> None:
    until(lambda: len(stage.clock("decode", "started")) == 1, "decode was not restarted")
    stage.systemctl("restart", unit_name("decode"))


def test_a_unit_restarted_by_hand_between_two_gates_holds(stage: Stage) -> None:
    change = stage.approved("decode-only")
    stage.once("gate_passed", 1, lambda: stage.restart_by_hand("decode"))  # the first of them: incarnation
    held = stage.execute(change)
    assert held.state == "held"
    assert "gate.incarnation.other" in stage.codes(held)
    assert "undo_started" not in stage.kinds(held)


def test_an_abort_while_prefill_waits_lets_its_gate_finish_then_undoes_what_was_touched(stage: Stage) -> None:
    change = stage.approved("co-restart")
    decode, router = stage.pid("decode"), stage.pid("router")
    stage.once("step_done", 0, lambda: stage.say(change, "abort", ANA))
    done = stage.execute(change)
    assert done.state == "aborted"
    kinds = stage.kinds(done)
    assert kinds.index("abort_asked") < kinds.index("gate_passed") < kinds.index("undo_started")
    assert (stage.pid("decode"), stage.pid("router")) == (decode, router)
    assert stage.starts() == (2, 0, 0)
    assert not stage.dropin().exists()


def test_an_abort_in_the_moment_before_a_step_begins_stops_that_step(stage: Stage) -> None:
    change = stage.approved("decode-only")
    stage.once("step_started", 1, lambda: stage.say(change, "abort", ANA), before=True)
    done = stage.execute(change)
    assert done.state == "aborted"
    assert stage.starts() == (0, 0, 0)  # the file was written and is put back, nothing was restarted
    assert not stage.dropin().exists()


def test_an_abort_in_the_moment_before_the_end_is_heeded_and_undone(stage: Stage) -> None:
    change = stage.approved("decode-only")
    stage.once("succeeded", None, lambda: stage.say(change, "abort", ANA), before=True)
    done = stage.execute(change)
    assert done.state == "aborted"
    assert "succeeded" not in stage.kinds(done)
    assert stage.environ()[KNOB_ENV] == "512"


def test_clicks_that_arrive_while_work_goes_on_are_answered_and_disturb_nothing(stage: Stage) -> None:
    change = stage.approved("decode-only")
    for kind in ("step_started", "step_done"):
        stage.once(kind, 1, lambda: stage.say(change, "keep", BEN), before=True)
    done = stage.execute(change)
    assert done.state == "succeeded"
    assert stage.kinds(done).count("click_refused") == 2
    assert stage.starts() == (0, 1, 0)
