"""The demo fleet from the outside: restarts over SSH, what engines report, the hand-over, load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.fleet_file import read_fleet
from sandbox.fleet.document import KNOB_ENV, People
from sandbox.fleet.fleet import DemoFleet, Engines
from sandbox.fleet.load import Load
from sandbox.fleet.units import unit_name
from sandbox.kernel import listeners
from tests.sandbox.fleet_client import booted, command, connected, http, reading, until

pytestmark = pytest.mark.real

SLOTS = 24


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoFleet]:
    def make() -> DemoFleet:
        return DemoFleet(
            tmp_path_factory.mktemp("fleet"),
            boot_s={"prefill": 0.3, "decode": 0.3, "router": 0.0},
            people=People(engineers=("UANA", "UBEN"), approvers=("UBEN",)),
            timing={"bake": "1s"},
            engines=Engines(max_running=SLOTS, notify=True, env={"decode": {KNOB_ENV: "512"}}),
        )

    with booted(make) as found:
        yield found


def port_owner(port: int) -> int:
    """Process that listens on the port, from /proc."""
    (owner,) = listeners(port)
    return owner


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


def complete(fleet: DemoFleet, prompt: str, max_tokens: int = 4) -> tuple[int, str]:
    body: dict[str, object] = {"model": "m", "prompt": prompt, "max_tokens": max_tokens}
    status, answer = http(fleet.url("router", "/v1/completions"), body)
    return status, answer["choices"][0]["text"] if status == 200 else answer["error"]["message"]


def restart(fleet: DemoFleet, role: str) -> None:
    fleet.host(role).manager.systemctl("restart", unit_name(role))
    fleet.wait_healthy()


def test_the_fleet_file_is_accepted_and_names_host_key_port_and_knob(fleet: DemoFleet) -> None:
    read = read_fleet(fleet.fleet_yaml.read_text(encoding="utf-8"), "fleet.yaml")
    assert read.errors == ()
    assert read.fleet is not None
    host = read.fleet.hosts["gpu1"]
    ssh = fleet.hosts["gpu1"].ssh
    assert (host.address, host.port, host.host_key, host.manager) == ("127.0.0.1", ssh.port, ssh.host_key, "user")
    knob = read.fleet.knobs["TARGET_CTAS"]
    assert (knob.env, knob.on, knob.restarts) == (KNOB_ENV, ("decode",), ("co-restart", "decode-only"))
    assert read.fleet.restarts["co-restart"] == ("prefill", "decode", "router")
    assert read.fleet.roles["approvers"].users == ("UBEN",)
    assert read.fleet.timing.bake_s == 1.0


def test_a_restart_over_ssh_gives_a_new_incarnation_that_owns_the_port(fleet: DemoFleet) -> None:
    before = fleet.show("prefill", "MainPID", "InvocationID", "ControlGroup")
    assert port_owner(fleet.ports["prefill"]) == int(before["MainPID"])
    with connected(fleet.hosts["gpu1"].ssh, fleet.ssh_key) as client:
        unit = unit_name("prefill")
        assert command(client, f"systemctl --user restart {unit}")[0] == 0
        fleet.wait_healthy()
        show = f"systemctl --user show {unit} -p MainPID -p InvocationID"
        after = dict(line.split("=", 1) for line in command(client, show)[1].decode().splitlines())
        cgroup = command(client, f"cat /proc/{after['MainPID']}/cgroup")[1].decode().splitlines()
    assert after["MainPID"] != before["MainPID"]
    assert after["InvocationID"] != before["InvocationID"]
    assert port_owner(fleet.ports["prefill"]) == int(after["MainPID"])
    assert f"0::{before['ControlGroup']}" in cgroup  # as on a machine that belongs to this systemd alone
    mine = [event for event in fleet.events("prefill") if event["pid"] == int(after["MainPID"])]
    assert [event["event"] for event in mine][:4] == ["started", "port_bound", "healthy", "health_answered"]
    old = [event["event"] for event in fleet.events("prefill") if event["pid"] == int(before["MainPID"])]
    assert old[-2:] == ["sigterm", "exit"]


def test_the_main_process_and_the_plain_child_show_their_environment_and_the_renamed_one_reads_as_nul(
    fleet: DemoFleet,
) -> None:
    main = int(fleet.show("decode", "MainPID")["MainPID"])
    variable = f"{KNOB_ENV}=512".encode()
    assert variable in Path(f"/proc/{main}/environ").read_bytes().split(b"\0")
    by_title = {Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0"): pid for pid in children(main)}
    renamed = by_title.pop(b"sglang::scheduler_DECODE0")
    (plain,) = by_title.values()
    wiped = Path(f"/proc/{renamed}/environ").read_bytes()
    assert len(wiped) > len(variable)
    assert set(wiped) == {0}
    assert variable in Path(f"/proc/{plain}/environ").read_bytes().split(b"\0")


@pytest.mark.parametrize(
    ("written", "value", "source"),
    [("512", 512, "env"), ('"512  # tuned"', 256, "invalid"), (None, 256, "default")],
)
def test_the_engine_reports_the_knob_as_it_read_it(
    fleet: DemoFleet, written: str | None, value: int, source: str
) -> None:
    unit = unit_name("decode")
    manager = fleet.host("decode").manager
    folder = manager.units / f"{unit}.d"
    folder.mkdir()
    environment = f"UnsetEnvironment={KNOB_ENV}" if written is None else f"EnvironmentFile={folder}/env"
    (folder / "env").write_text(f"{KNOB_ENV}={written}\n", encoding="utf-8")
    (folder / "knob.conf").write_text(f"[Service]\n{environment}\n", encoding="utf-8")
    try:
        manager.systemctl("daemon-reload")
        restart(fleet, "decode")
        state = http(fleet.url("decode", "/server_info"))[1]["internal_states"][0]
        assert state["env_vars"] == {KNOB_ENV: value}
        assert state["env_sources"] == {KNOB_ENV: source}
        warning = f"Invalid value for {KNOB_ENV}: invalid literal for int() with base 10: '512  # tuned', using default"
        assert (warning in fleet.log("decode").read_text(encoding="utf-8")) == (source == "invalid")
    finally:
        for path in (folder / "env", folder / "knob.conf"):
            path.unlink()
        folder.rmdir()
        fleet.log("decode").write_text("", encoding="utf-8")
        manager.systemctl("daemon-reload")
        restart(fleet, "decode")


def test_a_nonce_comes_back_only_through_prefill_and_its_handle_works_once(fleet: DemoFleet) -> None:
    assert complete(fleet, "please echo n0nce-7") == (200, " n0nce-7")
    assert complete(fleet, "2+2=") == (200, "4")
    assert complete(fleet, "hello", 3) == (200, " lorem ipsum dolor")
    chat: dict[str, object] = {"messages": [{"role": "user", "content": "echo abc"}], "max_tokens": 4}
    assert http(fleet.url("router", "/v1/chat/completions"), chat)[1]["choices"][0]["message"]["content"] == "abc"
    _, handle = http(fleet.url("prefill", "/prefill"), {"prompt": "echo once"})
    work = {"address": fleet.url("prefill"), "max_tokens": 4, "kv": handle["kv"], "identity": handle["identity"]}
    assert http(fleet.url("decode", "/generate"), work)[1]["text"] == " once"
    status, again = http(fleet.url("decode", "/generate"), work)
    assert status == 500
    assert "no such kv" in again["error"]["message"]
    assert "echo" not in str(handle)  # the prompt travels in the KV only


def test_decode_refuses_kv_of_another_prefill_than_the_one_it_knows(fleet: DemoFleet) -> None:
    complete(fleet, "echo warm")
    failed = reading(fleet.url("decode", "/metrics"), "sglang:num_transfer_failed_reqs_total")
    _, handle = http(fleet.url("prefill", "/prefill"), {"prompt": "echo x"})
    work = {"address": fleet.url("prefill"), "kv": handle["kv"], "identity": "0" * 32, "max_tokens": 4}
    status, answer = http(fleet.url("decode", "/generate"), work)
    assert (status, "was restarted" in answer["error"]["message"]) == (500, True)
    assert reading(fleet.url("decode", "/metrics"), "sglang:num_transfer_failed_reqs_total") == failed + 1


def test_the_router_is_not_ready_without_prefill_although_its_health_is_200(fleet: DemoFleet) -> None:
    manager = fleet.host("prefill").manager
    manager.systemctl("stop", unit_name("prefill"))
    try:
        until(lambda: http(fleet.url("router", "/readiness"))[0] == 503, "the router noticed")
        assert http(fleet.url("router", "/readiness"))[1]["error"]["message"] == "router has no healthy prefill"
        assert http(fleet.url("router", "/health"))[0] == 200
        assert complete(fleet, "echo x") == (503, "no available prefill worker")
        workers = http(fleet.url("router", "/workers"))[1]["workers"]
        assert {worker["worker_type"]: worker["is_healthy"] for worker in workers} == {"prefill": False, "decode": True}
    finally:
        manager.systemctl("start", unit_name("prefill"))
        fleet.wait_healthy()
    until(lambda: complete(fleet, "echo back")[0] == 200, "decode forgot the old prefill")


def test_forty_requests_fill_the_slots_and_the_queue_and_leave_no_trace(fleet: DemoFleet) -> None:
    decode, router = fleet.url("decode", "/metrics"), fleet.url("router", "/metrics")
    before = reading(decode, "sglang:generation_tokens_total")
    load = Load(fleet.url("router"), concurrency=40, max_tokens=100)
    load.start()
    try:
        until(lambda: reading(decode, "sglang:num_queue_reqs") == 40 - SLOTS, "the queue filled up")
        assert reading(decode, "sglang:num_running_reqs") == SLOTS
        assert reading(decode, "sglang:http_requests_active") == 40
        assert reading(router, "smg_http_inflight_request_age_count") == 40
        assert http(fleet.url("decode", "/health"))[0] == 200  # busy is not dead
        loads = http(fleet.url("decode", "/v1/loads"))[1]["loads"][0]
        assert (loads["max_running_requests"], loads["num_running_reqs"]) == (SLOTS, SLOTS)
        until(lambda: reading(decode, "sglang:queue_time_seconds_count") > 0, "a request came through")
    finally:
        summary = load.stop()
    assert (summary["failed"], summary["unfinished"]) == (0, 0)
    assert isinstance(summary["completed"], int)
    assert summary["completed"] >= 40
    assert reading(decode, "sglang:generation_tokens_total") - before == summary["output_tokens"]
    for url, names in (
        (decode, ("num_running_reqs", "num_queue_reqs", "num_decode_transfer_queue_reqs", "http_requests_active")),
        (fleet.url("prefill", "/metrics"), ("num_prefill_inflight_queue_reqs", "http_requests_active")),
    ):
        for name in names:
            until(lambda url=url, name=name: reading(url, f"sglang:{name}") == 0, f"{name} is 0")  # type: ignore[misc]
    assert reading(router, "smg_http_inflight_request_age_count") == 0


def test_a_restart_under_load_drains_and_the_load_goes_on(fleet: DemoFleet) -> None:
    load = Load(fleet.url("router"), concurrency=8, max_tokens=60)
    load.start()
    until(lambda: reading(fleet.url("decode", "/metrics"), "sglang:num_running_reqs") == 8, "the load runs")
    main = int(fleet.show("decode", "MainPID")["MainPID"])
    restart(fleet, "decode")
    done = reading(fleet.url("decode", "/metrics"), "sglang:num_requests_total")
    until(lambda: reading(fleet.url("decode", "/metrics"), "sglang:num_requests_total") > done, "the load went on")
    load.stop()
    old = [event for event in fleet.events("decode") if event["pid"] == main]
    (told,) = (event for event in old if event["event"] == "sigterm")
    after = [event["event"] for event in old[old.index(told) + 1 :]]
    in_flight = told["in_flight"]  # eight, less those whose client was just between two requests
    assert isinstance(in_flight, int)
    assert 1 <= in_flight <= 8
    assert after == ["request_done"] * in_flight + ["exit"]
    assert old[-1]["code"] == 0
