"""The typed calls of the host helper: what is sent, and what becomes of every kind of answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pytest

from policies.errors import HostAnswerLost, HostRefused, OpsError
from policies.facts import Incarnation
from policies.fleet import Host, HttpCheck, Service
from workers.executors.answers import HttpAsk, UnitAsk, unit_ask
from workers.executors.helper import BOOT, SOURCE, HelperCall, helper_for
from workers.executors.systemd import CALL_S, SystemdHost
from workers.shells import Done, NoRoom, Session
from workers.shells.kept import Kept
from workers.shells.local import LocalShell

HOST = Host(name="gpu1", address="192.0.2.1", user="ops", manager="user")
BEFORE = {"main_pid": 10, "started": 100, "invocation_id": "a"}
NOW = {"main_pid": 11, "started": 200, "invocation_id": "b"}
ISSUED = {"unit": "e.service", "already": False, "phase": "issued", "before": BEFORE, "current": BEFORE, "at": 5.0}


class Canned:
    """A shell that gives one answer and keeps what it was asked."""

    def __init__(self, answer: object, *, exit_status: int = 0, stderr: bytes = b"", truncated: bool = False) -> None:
        stdout = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self._done = Done(exit_status, stdout, stderr, 0.1, truncated=truncated)
        self.argv: Sequence[str] = ()
        self.stdin = b""
        self.deadline_s = 0.0

    def run(
        self, host: Host, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float, max_output_bytes: int
    ) -> Done:
        self.argv, self.stdin, self.deadline_s = argv, stdin, deadline_s
        return self._done

    def open(self, host: Host, argv: Sequence[str], *, prefix: bytes = b"", deadline_s: float) -> Session:
        raise NoRoom("canned answers only")

    @property
    def kept(self) -> Kept:
        return Kept(lambda host, program, deadline_s: self.open(host, program.argv, deadline_s=deadline_s))

    def close(self) -> None:
        self.kept.close()

    @property
    def request(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdin)
        return found


def target(shell: Canned) -> SystemdHost:
    return SystemdHost(shell, HOST, helper=HelperCall.installed("/usr/lib/clawback/hosthelper"))


def good(**fields: object) -> dict[str, object]:
    return {"v": 1, "ok": True, **fields}


def test_a_restart_sends_its_token_and_reads_what_was_issued() -> None:
    shell = Canned(good(**ISSUED))
    issued = target(shell).restart("e.service", token=7, change="C-1", step="2")
    assert shell.argv == ("/usr/lib/clawback/hosthelper",)
    assert shell.request == {
        "v": 1,
        "verb": "restart",
        "scope": "user",
        "unit": "e.service",
        "token": 7,
        "change": "C-1",
        "step": "2",
    }
    assert (issued.before, issued.at, issued.already, issued.state) == (Incarnation(**BEFORE), 5.0, False, "issued")


def test_a_write_names_the_file_before_and_after() -> None:
    shell = Canned(
        good(
            unit="e.service",
            path="/p",
            already=False,
            before_sha256=None,
            after_sha256="aa",
            loaded_dropins=["/p"],
            need_daemon_reload=False,
            at=1.0,
        )
    )
    written = target(shell).write("e.service", token=7, change="C-1", step="1", text="[Service]\n", expect_sha256=None)
    assert (written.sha256_before, written.sha256_after, written.dropins) == (None, "aa", ("/p",))
    assert shell.request["text"] == "[Service]\n"
    assert shell.request["expect_sha256"] is None


def test_a_wait_gives_the_host_time_for_the_slice_and_the_last_probes() -> None:
    shell = Canned(
        good(
            unit="e.service",
            state="ready",
            incarnation=NOW,
            active_state="active",
            sub_state="running",
            result="success",
            n_restarts=0,
            exec_main_status=0,
            port=None,
            health=None,
            since={"new_incarnation_at": 1.0, "port_owned_at": 2.0, "first_200_at": 3.0, "ready_at": 4.0},
            at=4.0,
        )
    )
    waited = target(shell).wait(
        "e.service",
        before=Incarnation.model_validate(BEFORE),
        port=30001,
        health=HttpCheck(url="http://127.0.0.1:30001/health", timeout_s=20.0),
        confirmations=2,
        poll_s=0.05,
        for_s=10.0,
    )
    assert (waited.state, waited.since.ready_at) == ("ready", 4.0)
    assert shell.request["health"] == {"url": "http://127.0.0.1:30001/health", "timeout_s": 20.0}
    assert shell.deadline_s == pytest.approx(CALL_S + 10.0 + 2 * 20.05)


def test_a_fence_tells_what_was_done_under_other_tokens() -> None:
    records = [
        {
            "verb": "write",
            "change": "C-1",
            "step": "1",
            "token": 6,
            "at": 1.0,
            "phase": "done",
            "path": "/p",
            "after_sha256": "aa",
            "before_sha256": None,
        },
        {
            "verb": "restart",
            "change": "C-1",
            "step": "2",
            "token": 6,
            "at": 2.0,
            "phase": "issued",
            "before": BEFORE,
            "after": NOW,
        },
    ]
    shell = Canned(good(unit="e.service", token=7, previous_token=6, current=NOW, records=records))
    fenced = target(shell).fence("e.service", token=7)
    assert [(r.verb, r.state) for r in fenced.records] == [("write", "done"), ("restart", "issued")]
    assert fenced.records[0].sha256_after == "aa"
    assert fenced.records[1].after == fenced.incarnation


def test_a_no_of_the_helper_keeps_its_code_and_hint() -> None:
    shell = Canned({"v": 1, "ok": False, "code": "stale-token", "message": "token 6 is stale", "hint": "stop"})
    with pytest.raises(HostRefused, match="token 6 is stale") as refusal:
        target(shell).restart("e.service", token=6, change="C-1", step="2")
    assert (refusal.value.code, refusal.value.hint) == ("stale-token", "stop")


@pytest.mark.parametrize("answer", [b"", b"{", b"[]", good(), good(**ISSUED, more=1), good(**(ISSUED | {"at": "x"}))])
def test_an_answer_to_an_act_that_is_none_leaves_it_unknown_what_was_done(answer: object) -> None:
    shell = Canned(answer, exit_status=1, stderr=b"Traceback: boom\n" + b"x" * 500)
    with pytest.raises(HostAnswerLost, match="Traceback: boom") as lost:
        target(shell).restart("e.service", token=6, change="C-1", step="2")
    assert "x" * 184 in lost.value.message
    assert "x" * 185 not in lost.value.message


def test_an_answer_to_a_look_that_is_none_is_a_plain_error() -> None:
    with pytest.raises(OpsError) as error:
        target(Canned(b"", stderr=b"sudo: a password is required\n")).observe([])
    assert type(error.value) is OpsError
    assert "a password is required" in error.value.message


def test_an_answer_that_was_cut_is_never_read() -> None:
    with pytest.raises(HostAnswerLost, match="longer than allowed"):
        target(Canned(good(**ISSUED), truncated=True)).restart("e.service", token=6, change="C-1", step="2")


def test_a_host_without_python_did_nothing() -> None:
    shell = Canned(b"", exit_status=127, stderr=b"sh: 1: /usr/bin/python3: not found\n")
    with pytest.raises(HostRefused, match="nothing was done") as refusal:
        target(shell).restart("e.service", token=6, change="C-1", step="2")
    assert refusal.value.code == "no-helper"


def test_the_source_goes_first_on_stdin_with_its_length() -> None:
    helper = HelperCall.sent()
    source = SOURCE.read_bytes()
    assert helper.argv == ("/usr/bin/python3", "-I", "-c", BOOT)
    assert helper.sha256 == hashlib.sha256(source).hexdigest()
    assert helper.stdin(b"{}") == str(len(source)).encode() + b"\n" + source + b"{}"


@pytest.mark.parametrize(
    ("manager", "user", "sudo"), [("system", "ops", True), ("system", "root", False), ("user", "ops", False)]
)
def test_only_system_units_of_another_login_need_sudo(manager: str, user: str, sudo: bool) -> None:
    host = Host.model_validate({"name": "h", "address": "a", "user": user, "manager": manager})
    assert (helper_for(host).argv[:2] == ("sudo", "-n")) is sudo


def test_the_real_helper_runs_from_what_was_sent_and_names_its_own_text() -> None:
    observed = SystemdHost(LocalShell(), HOST).observe([])
    assert observed.facts.helper == HelperCall.sent().sha256
    assert (observed.facts.host, observed.facts.units, observed.http) == ("gpu1", (), ())


def test_the_real_helper_answers_probes_in_the_order_asked() -> None:
    probes = [HttpAsk(id=name, url="http://127.0.0.1:9/", timeout_s=1.0) for name in ("b", "a")]
    observed = SystemdHost(LocalShell(), HOST).observe([], probes)
    assert [answer.id for answer in observed.http] == ["b", "a"]
    assert [answer.status for answer in observed.http] == [None, None]


def test_the_real_helper_refuses_a_unit_name_that_is_none() -> None:
    with pytest.raises(HostRefused, match="not a service unit name") as refusal:
        SystemdHost(LocalShell(), HOST).observe([UnitAsk(service="e", unit="../e.service")])
    assert refusal.value.code == "bad-request"


def test_another_program_in_the_place_of_the_one_that_was_sent_is_noticed() -> None:
    shell = Canned(good(facts={"host": "gpu1", "at": 1.0, "boot_id": "b", "helper": "ff", "units": []}, http=[]))
    with pytest.raises(OpsError, match="expected"):
        SystemdHost(shell, HOST).observe([])


def test_a_byte_that_is_no_text_is_shown_and_stops_nothing() -> None:
    shell = Canned(
        good(
            facts={"host": "gpu1", "at": 1.0, "boot_id": "b", "helper": "ff", "units": []},
            http=[{"id": "health", "url": "u", "status": None, "error": "bad \udc80", "at": 1.0, "took_s": 0.1}],
        )
    )
    observed = target(shell).observe([])
    assert observed.http[0].error == "bad \\udc80"
    assert observed.model_dump_json()


def test_a_service_is_asked_for_its_unit_port_and_endpoints() -> None:
    service = Service(
        name="decode",
        on=("gpu1",),
        unit="decode.service",
        health=HttpCheck(url="http://127.0.0.1:30001/health"),
        metrics=HttpCheck(url="http://127.0.0.1:30001/metrics", timeout_s=5.0),
        server_info=HttpCheck(url="http://127.0.0.1:30001/server_info"),
    )
    ask = unit_ask(service, ("CTAS",))
    assert (ask.service, ask.unit, ask.port, ask.variables) == ("decode", "decode.service", 30001, ("CTAS",))
    assert [(probe.id, probe.timeout_s) for probe in ask.http] == [
        ("health", 25.0),
        ("metrics", 5.0),
        ("server_info", 25.0),
    ]
    assert ask.model_dump(mode="json", by_alias=True)["http"][0]["json"] is None
