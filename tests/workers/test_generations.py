"""Canaries: through a router they prove the path, sent to one instance they prove that one, each from its own host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bot.messages import sentence
from policies.facts import HttpAnswer
from policies.fleet import Canary, Fleet, Host, HttpCheck, Service
from policies.gates import canary
from policies.plan import AdmitStep
from workers.executors.answers import HttpAsk
from workers.generations import Generations
from workers.hosts import Hosts, Seen

HEALTH = HttpCheck(url="http://{address}:1/health")
ON = {"prefill": ("gpu1", "gpu2"), "decode": ("gpu1", "gpu2", "gpu3"), "router": ("gpu1",)}
NEEDS = {"prefill": (), "decode": ("prefill",), "router": ("prefill", "decode")}


def fleet(canaries: Mapping[str, str], on: Mapping[str, tuple[str, ...]] = ON) -> Fleet:
    services = {}
    for name, hosts in on.items():
        url = canaries.get(name)
        probe = Canary(url=url, body={"prompt": "{nonce}"}, expect_text="{nonce}", timeout_s=0.0) if url else None
        unit = f"{name}.service"
        services[name] = Service(name=name, on=hosts, unit=unit, needs=NEEDS[name], health=HEALTH, canary=probe)
    known = {name: Host(name=name, address=f"10.0.0.{name[-1]}", user="x") for name in ("gpu1", "gpu2", "gpu3")}
    nothing: dict[str, Any] = {"restarts": {}, "knobs": {}, "roles": {}, "rules": (), "sha256": "0" * 64}
    return Fleet(name="f", hosts=known, services=services, **nothing)


class Asked(Hosts):
    """Answers every canary with what it was asked, and keeps who asked whom."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def observe(
        self, instances: Sequence[str], variables: Sequence[str], probes: Any = None, log: Any = None, **_: Any
    ) -> Seen:
        ((host, asks),) = probes.items()
        ask: HttpAsk = asks[0]
        self.asked.append((host, ask.url))
        text = f'{{"choices": [{{"text": "{dict(ask.body)["prompt"]}"}}]}}'  # type: ignore[arg-type]  # ours
        answer = HttpAnswer(id="canary", url=ask.url, status=200, body=text, at=1.0, took_s=0.3)
        return Seen({}, {"canary": answer})


def asked(known: Fleet, *touched: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Who asked whom behind a restart, and what is said of it, without the nonce."""
    hosts = Asked()
    service, _, host = touched[-1].partition("@")
    step = AdmitStep(host=host, service=service, unit="x.service", at=(), gates=("canary",))
    said = []
    for answer in Generations(known, hosts, lambda: None).behind(step, touched):
        (finding,) = answer.verdict.findings
        assert (answer.gate, answer.verdict.answer, finding.code in canary.PASSED) == ("canary", "pass", True)
        told = str(sentence(finding))
        said.append(told.replace(str(finding.values["expected"]), "N"))
    return hosts.asked, said


def test_a_canary_through_a_router_names_how_many_may_have_answered_and_proves_no_instance() -> None:
    url = "http://127.0.0.1:30080/v1/completions"
    where, said = asked(fleet({"router": url}), "decode@gpu2")
    assert where == [("gpu1", url)]
    assert said[0].endswith(
        "router in 0.3 s; any of 2 prefill, 3 decode may have answered, so it proves the path and says nothing about"
        " one instance"
    )


def test_with_one_of_each_it_is_the_one_that_answered() -> None:
    single = dict.fromkeys(ON, ("gpu1",))
    _, said = asked(fleet({"router": "http://127.0.0.1:1/"}, single), "decode@gpu1")
    assert said == ["canary `N` came back through router in 0.3 s"]


def test_a_canary_of_an_instance_is_sent_to_each_that_was_touched_from_its_own_host() -> None:
    alone = {**ON, "prefill": ("gpu1",)}
    known = fleet({"decode": "http://{address}:30001/v1/completions"}, alone)
    where, said = asked(known, "decode@gpu1", "decode@gpu3")
    assert where == [(h, f"http://10.0.0.{h[-1]}:30001/v1/completions") for h in ("gpu1", "gpu3")]
    assert said == [f"canary `N` came back from decode@{h} itself in 0.3 s" for h in ("gpu1", "gpu3")]


def test_an_instance_that_hands_the_request_on_is_proven_and_what_stands_behind_it_is_not() -> None:
    _, (said,) = asked(fleet({"router": "http://{address}:30080/v1/completions"}), "router@gpu1")
    assert said.endswith(
        "through router@gpu1 in 0.3 s; behind it any of 2 prefill, 3 decode may have answered, so it proves router@gpu1"
        " and the path, and says nothing about one of those"
    )


@pytest.mark.parametrize(("touched", "n"), [("router@gpu1", 0), ("prefill@gpu2", 1), ("decode@gpu3", 1)])
def test_only_what_reaches_the_touched_is_asked(touched: str, n: int) -> None:
    assert len(asked(fleet({"decode": "http://{address}:1/"}), touched)[0]) == n


def test_a_canary_that_fails_says_so_whoever_may_have_answered() -> None:
    found = HttpAnswer(
        id="canary", url="http://r", status=200, body='{"choices": [{"text": "no"}]}', at=1.0, took_s=0.3
    )
    verdict = canary.judge("router", found, "N", behind="3 decode")
    assert (verdict.answer, verdict.findings[0].code) == ("fail", "gate.canary.wrong-text")
