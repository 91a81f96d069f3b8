"""The judge of replicas: what each one is, read from hosts, processes and the router; never asked of the product."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pydantic import JsonValue

from sandbox.clock import Life, lives
from sandbox.eyes import Eyes, Json
from sandbox.fleet.document import KNOB_ENV
from sandbox.judge import CANARY_S, Verdict
from sandbox.kernel import environ_of, listeners
from sandbox.stage import KNOB_VALUE, Stage, fetch

DEPLOYED = "decode"
SLACK_S = 0.05  # clocks of one machine, read by different processes


@dataclass(frozen=True, slots=True)
class Replica:
    """One instance as it is. link: the release that its host's link names; the version is its process's own word.

    registered: whether the real router lists it, and as well.
    """

    instance: str
    pid: int
    active: str
    status: int
    owner: list[int]
    link: str
    version: str
    knob: str | None
    registered: str

    def problems(self, version: str) -> list[str]:
        """What is not as it is where `version` runs as it should."""
        found = {
            f"the link names {self.link}": self.link != version,
            f"its process says {self.version}": self.version != version,
            f"systemd calls it {self.active}": self.active != "active",
            f"its health is {self.status}": self.status != 200,
            f"its port belongs to {self.owner}, not to its process {self.pid}": self.owner != [self.pid],
            f"{KNOB_ENV} is {self.knob} in its environment": self.knob != KNOB_VALUE,
            f"the router {self.registered}": self.registered != "has it as well",
        }
        return [f"{self.instance}: {said}" for said, wrong in found.items() if wrong]


@dataclass(frozen=True, slots=True)
class Away:
    """A replica out of service: from the moment it was told to stop until its next process answered. Epoch seconds."""

    instance: str
    since: float
    until: float


class ReplicaJudge:
    """Looks at one stage with replicas."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.eyes = Eyes(stage)

    @property
    def instances(self) -> tuple[str, ...]:
        """Every replica of what is deployed, in the order of the fleet file."""
        return tuple(i for i in self.stage.demo_fleet.layout.instances if i.startswith(f"{DEPLOYED}@"))

    def lives(self, instance: str) -> list[Life]:
        """Every life of an instance, by its own clock."""
        return lives(self.stage.demo_fleet.events(instance))

    def counts(self) -> dict[str, int]:
        """How many lives each replica has had."""
        return {instance: len(self.lives(instance)) for instance in self.instances}

    def workers(self) -> dict[str, bool]:
        """What the router lists: address -> whether it has it as well."""
        status, text = fetch(self.stage.demo_fleet.url("router", "/workers"))
        listed = json.loads(text)["workers"] if status == 200 else []
        return {str(worker["url"]): bool(worker["is_healthy"]) for worker in listed}

    def seen(self, instance: str) -> Replica:
        """One replica as it is now."""
        fleet = self.stage.demo_fleet
        shown = fleet.show(instance, "MainPID", "ActiveState")
        pid = int(shown.get("MainPID") or 0)
        status, _ = fetch(fleet.url(instance, "/health"))
        told, body = fetch(fleet.url(instance, "/server_info"))
        known = self.workers().get(fleet.url(instance))
        role, host = fleet.layout.of(instance)
        return Replica(
            instance,
            pid,
            shown.get("ActiveState", ""),
            status,
            listeners(fleet.ports[role], fleet.layout.addresses[host]),
            fleet.host(instance).releases.names,
            str(json.loads(body).get("version")) if told == 200 else "nothing",
            environ_of(pid, KNOB_ENV) if pid else None,
            "does not list it" if known is None else "has it as well" if known else "lists it as not well",
        )

    def exact(self, wanted: Mapping[str, str]) -> Verdict:
        """Every replica is exactly on its version: link, process, health, port, knob, and known to the router."""
        self._settled()
        found = {instance: self.seen(instance) for instance in wanted}
        problems = [said for instance, replica in found.items() for said in replica.problems(wanted[instance])]
        told = ", ".join(f"{i} on {r.version} (pid {r.pid})" for i, r in found.items())
        return not problems, "; ".join(problems) or f"{told}; each with link, process, port, knob and router as one"

    def registered(self) -> Verdict:
        """The router lists every engine of the fleet as well, and nothing else."""
        self._settled()
        fleet = self.stage.demo_fleet
        wanted = {fleet.url(instance) for instance in fleet.layout.instances if not instance.startswith("router@")}
        listed = self.workers()
        lacking = sorted(wanted - {url for url, well in listed.items() if well})
        strange = sorted(listed.keys() - wanted)
        ok = f"the real router lists {len(listed)} engines as well: 2 prefill, 3 decode"
        return not lacking and not strange, f"lacking {lacking}, strange {strange}" if lacking or strange else ok

    def away(self, since: Mapping[str, int]) -> list[Away]:
        """Every time that a replica was out of service after it had had so many lives, in order."""
        found: list[Away] = []
        for instance, count in since.items():
            known = self.lives(instance)[count - 1 :]
            began: float | None = None
            for life in known:
                if began is not None and life.answered is not None:
                    found.append(Away(instance, began, life.answered))
                    began = None
                began = began if began is not None else life.told_to_stop or life.ended
            if began is not None:
                found.append(Away(instance, began, float("inf")))
        return sorted(found, key=lambda away: away.since)

    def uncut(self, since: Mapping[str, int], sent: Mapping[str, JsonValue]) -> Verdict:
        """No request failed, and by its own clock each engine was told to stop with nothing in flight."""
        fleet = self.stage.demo_fleet
        stops = [
            (instance, event["in_flight"])
            for instance, count in since.items()
            for event in fleet.events(instance)
            if event["event"] == "sigterm" and event["pid"] in {life.pid for life in self.lives(instance)[count - 1 :]}
        ]
        problems = [f"{instance} was told to stop with {n} in flight" for instance, n in stops if n]
        if sent["failed"]:
            problems.append(f"{sent['failed']} requests failed, {sent['completed']} did not: {sent['problems']}")
        told = f"{sent['completed']} requests were answered, none failed; {len(stops)} stops, each with 0 in flight"
        return bool(stops and sent["completed"]) and not problems, "; ".join(problems) or told

    def canary_first(self, away: Iterable[Away], watch_s: float) -> Verdict:
        """The first in the fleet file went first, and was watched before the second followed."""
        known = list(away)
        first, second = known[0], next((a for a in known if a.instance != known[0].instance), None)
        if first.instance != self.instances[0]:
            return False, f"{first.instance} went first, expected {self.instances[0]}"
        if second is None:
            return False, "no other followed"
        pause_s = second.since - first.until
        told = f"{first.instance} first; {second.instance} followed {pause_s:.1f} s after it was back"
        return pause_s >= watch_s - SLACK_S, f"{told}, watched for {watch_s:g} s"

    def generation(self) -> Verdict:
        """A fresh nonce comes back through the router, and by their own clocks one pair of engines worked for it."""
        fleet = self.stage.demo_fleet
        nonce = secrets.token_hex(6)
        before = {i: len(fleet.events(i)) for i in fleet.layout.instances}
        body: Json = {"model": "m", "prompt": f"echo {nonce}", "max_tokens": 4}
        status, text = fetch(fleet.url("router", "/v1/completions"), body, timeout_s=CANARY_S)
        worked = [
            i for i in fleet.layout.instances if any(e["event"] == "request_done" for e in fleet.events(i)[before[i] :])
        ]
        ok = status == 200 and nonce in text and [i.split("@")[0] for i in worked] == ["prefill", "decode"]
        return ok, f"nonce {nonce}: status {status} through {', '.join(worked) or 'nobody'}"

    def shown(self, text: str, wanted: Mapping[str, str]) -> Verdict:
        """A text says all of `wanted`: what it is about -> a regular expression."""
        missing = [name for name, pattern in wanted.items() if re.search(pattern, text) is None]
        if missing:
            return False, f"missing {', '.join(missing)} in: {' '.join(text.split())[:900]}"
        return True, f"shows {', '.join(wanted)}"

    def _settled(self) -> None:
        """The router looks at its engines once a second: what has just come back is not known to it yet."""
        fleet = self.stage.demo_fleet
        engines = len(fleet.layout.instances) - len(fleet.layout.on["router"])
        self.eyes.until(lambda: sum(self.workers().values()) >= engines, 5.0)


def kept(away: Iterable[Away]) -> Verdict:
    """No two replicas were away at one moment."""
    known = list(away)
    met = [
        f"{b.instance} went away {a.until - b.since:.2f} s before {a.instance} was back"
        for a, b in pairwise(known)
        if b.since < a.until - SLACK_S
    ]
    told = ", ".join(f"{a.instance} away {a.until - a.since:.1f} s" for a in known)
    return not met and bool(known), "; ".join(met) or f"{told or 'none was away'}; two of three served throughout"
