"""The demo fleet with replicas and the real router, from the outside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from policies.errors import SettingsError
from policies.fleet_file import read_fleet
from sandbox.fleet.fleet import DemoFleet, Engines
from sandbox.fleet.layout import Layout, check_address
from sandbox.fleet.load import Load
from sandbox.fleet.releases import GOOD
from sandbox.fleet.units import unit_name
from tests.sandbox.fleet_client import booted, command, connected, http, reading, until

pytestmark = pytest.mark.real

FIRST = "0.5.23"
DECODES = ("decode@gpu1", "decode@gpu2", "decode@gpu3")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoFleet]:
    def make() -> DemoFleet:
        engines = Engines(real_router=True, drain_s=1.0)
        boot_s = {"prefill": 0.2, "decode": 0.2}
        folder = tmp_path_factory.mktemp("fleet")
        return DemoFleet(folder, hosts=Layout.replicated(), boot_s=boot_s, engines=engines)

    with booted(make) as found:
        yield found


def complete(fleet: DemoFleet, prompt: str, path: str = "/v1/completions") -> str:
    body: dict[str, object] = {"model": "m", "max_tokens": 4}
    body |= {"messages": [{"role": "user", "content": prompt}]} if "chat" in path else {"prompt": prompt}
    status, answer = http(fleet.url("router", path), body)
    assert status == 200, answer
    choice = answer["choices"][0]
    return str(choice["message"]["content"] if "chat" in path else choice["text"])


def done(fleet: DemoFleet, instance: str) -> float:
    """How many requests an engine has finished."""
    return reading(fleet.url(instance, "/metrics"), "sglang:num_requests_total")


def test_the_fleet_file_names_one_service_for_all_replicas_and_one_address_for_each_host(fleet: DemoFleet) -> None:
    read = read_fleet(fleet.fleet_yaml.read_text(encoding="utf-8"), "fleet.yaml")
    assert read.errors == ()
    assert read.fleet is not None
    assert [read.fleet.instances(role) for role in ("prefill", "decode", "router")] == [
        ("prefill@gpu1", "prefill@gpu2"),
        DECODES,
        ("router@gpu1",),
    ]
    urls = [read.fleet.at(instance).health.url for instance in DECODES]
    port = fleet.ports["decode"]
    assert urls == [f"http://127.0.0.{place}:{port}/health" for place in (2, 3, 4)]
    assert [http(url)[0] for url in urls] == [200, 200, 200]


def test_the_real_router_leads_each_request_through_both_kinds_and_over_every_replica(fleet: DemoFleet) -> None:
    workers = http(fleet.url("router", "/workers"))[1]["workers"]
    known = {(worker["worker_type"], worker["url"]) for worker in workers if worker["is_healthy"]}
    assert known == {(i.split("@")[0], fleet.url(i)) for i in fleet.layout.instances if not i.startswith("router")}
    before = {instance: done(fleet, instance) for instance in fleet.layout.instances[:-1]}
    assert [complete(fleet, f"please echo n0nce-{n}") for n in range(6)] == [f" n0nce-{n}" for n in range(6)]
    after = {instance: done(fleet, instance) - before[instance] for instance in before}
    assert after == {"prefill@gpu1": 3, "prefill@gpu2": 3, **dict.fromkeys(DECODES, 2)}
    assert complete(fleet, "echo abc", "/v1/chat/completions") == "abc"


def test_an_engine_of_a_pair_does_nothing_alone(fleet: DemoFleet) -> None:
    for instance, without in (("prefill@gpu2", "writes no tokens"), ("decode@gpu3", "reads no prompt")):
        status, answer = http(fleet.url(instance, "/v1/completions"), {"prompt": "echo x", "max_tokens": 4})
        assert (status, without in answer["error"]["message"]) == (400, True)
    lonely: dict[str, object] = {"prompt": "echo x", "max_tokens": 4, "bootstrap_room": 7}
    lonely |= {"bootstrap_host": "127.0.0.2", "bootstrap_port": fleet.ports["prefill"]}
    status, answer = http(fleet.url("decode@gpu1", "/v1/completions"), lonely)
    assert (status, "no such kv: 7" in answer["error"]["message"]) == (500, True)


def test_each_host_has_releases_of_its_own_at_one_path(fleet: DemoFleet) -> None:
    link = fleet.folder / "srv" / "decode" / "current"
    fleet.hosts["gpu2"].releases.point(GOOD)
    try:
        seen = {}
        for name, host in fleet.hosts.items():
            with connected(host.ssh, fleet.ssh_key) as client:
                seen[name] = command(client, f"readlink {link}")[1].decode().strip()
        assert seen == {"gpu1": f"releases/{FIRST}", "gpu2": f"releases/{GOOD}", "gpu3": f"releases/{FIRST}"}
        fleet.host("decode@gpu2").manager.systemctl("restart", unit_name("decode"))
        until(lambda: fleet.status("decode@gpu2") == "200", "the restarted replica is well")
        versions = [http(fleet.url(instance, "/server_info"))[1]["version"] for instance in DECODES]
        assert versions == [FIRST, GOOD, FIRST]
    finally:
        fleet.hosts["gpu2"].releases.point(FIRST)
        fleet.host("decode@gpu2").manager.systemctl("restart", unit_name("decode"))
        until(lambda: fleet.status("decode@gpu2") == "200", "the replica is back")


def test_one_replica_misbehaves_and_the_others_do_not(fleet: DemoFleet) -> None:
    fleet.misbehave("decode@gpu3", "unwell-on-good")
    with pytest.raises(SettingsError, match="decode@gpu3"):
        fleet.misbehave("decode@gpu3", "crash-loop")
    try:
        for instance in DECODES[1:]:
            fleet.host(instance).releases.point(GOOD)
            fleet.host(instance).manager.systemctl("restart", unit_name("decode"))
        until(lambda: fleet.status("decode@gpu2") == "200", "the good release is well on gpu2")
        until(lambda: fleet.status("decode@gpu3").startswith("503"), "the same release is not well on gpu3")
    finally:
        for instance in DECODES[1:]:
            fleet.host(instance).releases.point(FIRST)
        fleet.host("decode@gpu2").manager.systemctl("restart", unit_name("decode"))
        fleet.behave("decode@gpu3")
    assert [fleet.status(instance) for instance in DECODES] == ["200"] * 3


def test_the_router_drops_a_dead_replica_and_takes_it_back(fleet: DemoFleet) -> None:
    def healthy() -> int:
        return int(http(fleet.url("router", "/readiness"))[1]["healthy_workers"])

    until(lambda: healthy() == 5, "the router knows every engine as well")
    manager = fleet.host("decode@gpu2").manager
    manager.systemctl("stop", unit_name("decode"))
    try:
        until(lambda: healthy() == 4, "the router noticed")
        assert complete(fleet, "echo without-gpu2") == " without-gpu2"
    finally:
        manager.systemctl("start", unit_name("decode"))
    until(lambda: healthy() == 5, "the router took it back")


def test_a_request_that_does_not_end_is_counted_where_it_runs(fleet: DemoFleet) -> None:
    def in_flight() -> dict[str, int]:
        workers = http(fleet.url("router", "/workers"))[1]["workers"]
        return {
            kind: sum(int(w["load"]) for w in workers if w["worker_type"] == kind) for kind in ("prefill", "decode")
        }

    load = Load(fleet.url("router"), concurrency=1, max_tokens=100_000, finish_s=0.0)
    load.start()
    try:
        # the real router counts a request at both of its engines until decode has answered
        until(lambda: in_flight() == {"prefill": 1, "decode": 1}, "the request runs")
        urls = [fleet.url(instance, "/metrics") for instance in DECODES]
        until(lambda: sorted(reading(url, "sglang:num_running_reqs") for url in urls) == [0, 0, 1], "one decode has it")
    finally:
        assert load.stop()["unfinished"] == 1


def test_a_machine_with_one_loopback_address_is_told_so() -> None:
    with pytest.raises(SettingsError, match=r"no loopback address 192\.0\.2\.1") as caught:
        check_address("192.0.2.1")
    assert "only 127.0.0.1 is there" in caught.value.hint
