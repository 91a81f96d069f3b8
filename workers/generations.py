"""One generation through a service, or on one instance of it, with a text that only this request can have."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence

from policies.addresses import ADDRESS, url_at
from policies.errors import OpsError
from policies.finding import Verdict
from policies.fleet import Canary, Fleet, Service
from policies.gates import canary
from policies.plan import AdmitStep, RestartStep
from policies.planning.steps import reaches
from workers.executors.answers import HttpAsk
from workers.gate_answers import Answer, not_asked
from workers.hosts import Hosts
from workers.trouble import about_host

RETRY_PAUSE_S = 0.2


class Generations:
    """Of one fleet. `check` is called between tries and raises when the work must stop (lease)."""

    def __init__(self, fleet: Fleet, hosts: Hosts, check: Callable[[], None]) -> None:
        self._fleet = fleet
        self._hosts = hosts
        self._check = check

    def behind(self, step: RestartStep | AdmitStep, touched: Sequence[str]) -> Iterator[Answer]:
        """Where the step has this gate: an answer for every canary that reaches what was touched.

        touched: instances (service@host) so far.
        """
        if "canary" not in step.gates:
            return
        for service, instance in self.reaching(touched):
            if service.canary is not None:
                yield Answer("canary", self.ask(service, service.canary, instance))

    def reaching(self, touched: Sequence[str]) -> Iterator[tuple[Service, str]]:
        """The services whose canary reaches what was touched, with the instance whose host asks.

        A canary that names `{address}` goes to one instance: it is asked of each that was touched, from its own host.
        """
        services = tuple(dict.fromkeys(name.partition("@")[0] for name in touched))
        for service in self._fleet.services.values():
            if service.canary is None or not reaches(self._fleet, service.name, services):
                continue
            own = [name for name in dict.fromkeys(touched) if name.partition("@")[0] == service.name]
            if ADDRESS in service.canary.url and own:
                yield from ((service, name) for name in own)
            else:
                yield service, self._fleet.instances(service.name)[0]

    def ask(self, service: Service, probe: Canary, instance: str | None = None) -> Verdict:
        """One generation with a fresh nonce, tried again until it passes or the canary's time is over.

        Again, because a router needs some health checks of its own before it takes a restarted worker back.
        """
        instance = instance or self._fleet.instances(service.name)[0]
        host = instance.partition("@")[2]
        own = ADDRESS in probe.url
        url = url_at(probe.url, self._fleet.hosts[host].address)
        deadline = time.monotonic() + probe.timeout_s
        while True:
            self._check()
            nonce = secrets.token_hex(6)
            left_s = max(1.0, deadline - time.monotonic())
            body = canary.filled(probe.body, nonce)
            ask = HttpAsk(id="canary", url=url, method="POST", body=body, timeout_s=left_s, max_bytes=65536)
            try:
                seen = self._hosts.observe([], [], {host: [ask]})
            except OpsError as error:
                if not about_host(error):
                    raise
                verdict = Verdict(answer="error", findings=(not_asked(host, error),))
            else:
                expected = probe.expect_text.replace(canary.PLACEHOLDER, nonce)
                found = seen.probes.get("canary")
                behind = canary.replicas_behind(self._fleet, service.name, own=not own)
                verdict = canary.judge(service.name, found, expected, instance=instance if own else None, behind=behind)
            if verdict.answer == "pass" or time.monotonic() >= deadline:
                return verdict
            time.sleep(RETRY_PAUSE_S)
