"""`{address}`: one url in the fleet file, another one for each host."""

from __future__ import annotations

import pytest

from policies.addresses import may_meet
from policies.fleet import Fleet
from policies.fleet_file import read_fleet

TEXT = """
version: 1
name: dsv4
hosts:
  gpu1: {address: 127.0.0.2, user: clawback}
  gpu2: {address: "2001:db8::2", user: clawback}
services:
  decode:
    on: [gpu1, gpu2]
    unit: decode.service
    health: {url: "http://{address}:30001/health"}
    metrics: {url: "http://{address}:30001/metrics?format=text"}
    server_info: {url: "http://{address}:30001/server_info"}
    model_info: {url: "https://{address}/get_model_info"}
    loads: {url: "http://127.0.0.1:9400/metrics"}
    canary: {url: "http://{address}:30001/generate", json: {text: "{nonce}"}, expect: {text: "{nonce}"}}
    deploy:
      variable: {env: VERSION, ref: "v.+"}
      version: {http: "http://{address}:30001/version"}
      restarts: [all]
restarts:
  all: [decode]
"""


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    reading = read_fleet(TEXT, "fleet.yaml")
    assert reading.fleet is not None, reading.errors
    return reading.fleet


@pytest.mark.parametrize(("host", "address"), [("gpu1", "127.0.0.2"), ("gpu2", "[2001:db8::2]")])
def test_every_url_of_a_service_names_the_host_of_the_instance(fleet: Fleet, host: str, address: str) -> None:
    decode = fleet.at(f"decode@{host}")
    assert decode.health.url == f"http://{address}:30001/health"
    assert decode.health.port == 30001
    checks = (decode.metrics, decode.server_info, decode.model_info, decode.loads, decode.canary)
    assert [check.url for check in checks if check is not None] == [
        f"http://{address}:30001/metrics?format=text",
        f"http://{address}:30001/server_info",
        f"https://{address}/get_model_info",
        "http://127.0.0.1:9400/metrics",
        f"http://{address}:30001/generate",
    ]
    assert decode.canary is not None
    assert decode.canary.body == {"text": "{nonce}"}
    assert decode.deploy is not None
    assert decode.deploy.version.http == f"http://{address}:30001/version"


def test_a_service_without_it_stays_as_it_is() -> None:
    reading = read_fleet(TEXT.replace("{address}", "127.0.0.1"), "fleet.yaml")
    assert reading.fleet is not None
    assert reading.fleet.at("decode@gpu2") is reading.fleet.services["decode"]


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("127.0.0.2", "127.0.0.2", True),
        ("127.0.0.2", "127.0.0.3", False),
        ("localhost", "127.0.0.1", True),
        ("localhost", "127.0.0.2", False),
        ("127.0.0.1", "192.0.2.11", True),  # who listens on every address has both
        ("192.0.2.11", "192.0.2.12", False),
        ("[::1]", "127.0.0.1", True),
        ("[2001:db8::1]", "[2001:db8::2]", False),
        ("gpu1.example.com", "192.0.2.11", True),  # what a name stands for is not known
    ],
)
def test_two_addresses_of_a_kind_are_two_listeners(one: str, other: str, meet: bool) -> None:
    first, second = (f"http://{address}:30001/health" for address in (one, other))
    assert may_meet(first, second) is meet
    assert may_meet(second, first) is meet
