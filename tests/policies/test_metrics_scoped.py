"""A query for a server is narrowed to instances, whatever else it holds, and still is the same query."""

from __future__ import annotations

import pytest

from policies.finding import Finding
from policies.fleet import Fleet, Host, HttpCheck, Service
from policies.metrics.promql import parse_query
from policies.metrics.scoped import Scoped, known_as, scope


def fleet(**addresses: str) -> Fleet:
    check = HttpCheck(url="http://127.0.0.1:30001/metrics")
    return Fleet(
        name="f",
        hosts={name: Host(name=name, address=address, user="me") for name, address in addresses.items()},
        services={"decode": Service(name="decode", on=tuple(addresses), unit="d.service", health=check, metrics=check)},
        restarts={},
        knobs={},
    )


def scoped(text: str, *names: str) -> Scoped:
    parsed = parse_query(text)
    assert not isinstance(parsed, Finding)
    return scope(parsed, dict.fromkeys(names, "decode@gpu1"))


def test_an_instance_is_known_by_its_name_and_by_the_address_that_is_scraped() -> None:
    found = known_as(fleet(gpu1="192.0.2.11", gpu2="2001:db8::1"), ["decode@gpu1", "decode@gpu2"])
    assert found == {
        "decode@gpu1": "decode@gpu1",
        "192.0.2.11:30001": "decode@gpu1",
        "gpu1:30001": "decode@gpu1",
        "decode@gpu2": "decode@gpu2",
        "[2001:db8::1]:30001": "decode@gpu2",
        "gpu2:30001": "decode@gpu2",
    }


def test_an_address_that_two_instances_share_is_none() -> None:
    found = known_as(fleet(gpu1="127.0.0.1", gpu2="127.0.0.1"), ["decode@gpu1"])
    assert set(found) == {"decode@gpu1", "gpu1:30001"}


def test_a_fleet_of_one_host_may_be_scraped_on_that_host() -> None:
    found = known_as(fleet(gpu1="192.0.2.11"), ["decode@gpu1"])
    assert set(found) == {"decode@gpu1", "192.0.2.11:30001", "gpu1:30001", "127.0.0.1:30001", "localhost:30001"}


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a", 'a{instance=~"x"}'),
        ("sum(a) by (instance)", 'sum by (instance) (a{instance=~"x"})'),
        ('a{b="{"}', 'a{b="{",instance=~"x"}'),
        ("rate(a[5m] offset 1h)", 'rate(a{instance=~"x"}[5m] offset 1h)'),
        ('{__name__=~"a.*"}', '{__name__=~"a.*",instance=~"x"}'),
        ("a - on (i) b", 'a{instance=~"x"} - on (i) b{instance=~"x"}'),
        ("max_over_time(a[5m:30s])", 'max_over_time(a{instance=~"x"}[5m:30s])'),
        ("a @ end()", 'a{instance=~"x"} @ end()'),
        ('a{job="j"} + b{instance="i"} + c', 'a{job="j"} + b{instance="i"} + c{instance=~"x"}'),
        ("time() + 1", "time() + 1"),
    ],
)
def test_every_selector_is_narrowed_unless_it_says_whom_it_means(text: str, sent: str) -> None:
    assert " ".join(scoped(text, "x").text.split()) == sent


def test_names_are_quoted_as_patterns() -> None:
    found = scoped("a", "192.0.2.11:30001", "decode@gpu1")
    assert found.text == 'a{instance=~"192\\\\.0\\\\.2\\\\.11:30001|decode@gpu1"}'
    assert found.newest("a") == f"min by (instance) (timestamp({found.text}))"
    assert found.names == ("a",)


def test_quantiles_are_found_with_the_query_of_their_buckets() -> None:
    (whole,) = scoped("(histogram_quantile(0.9, sum by (le) (b)))", "x").quantiles
    assert (whole.q, whole.buckets, whole.whole) == (0.9, 'sum by (le) (b{instance=~"x"})', True)
    (part,) = scoped("max(histogram_quantile(0.9, b))", "x").quantiles
    assert not part.whole
    (odd,) = scoped("histogram_quantile(scalar(q), b)", "x").quantiles
    assert odd.q is None
