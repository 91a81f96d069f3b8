"""Looking at many instances at once: one observe call a host, hosts in parallel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from policies.errors import OpsError
from policies.facts import HttpAnswer, UnitFacts
from policies.fleet import Fleet
from workers.executors.answers import HttpAsk, LogAsk, unit_ask
from workers.executors.systemd import SystemdHost
from workers.shells import Shell

# MaxSessions is 10 and sessions that just closed still count: hosts are many, channels a host few.
HOSTS_AT_ONCE = 20
# Units: seconds that warming takes at most: a host that is away is met by the call that needs it
WARM_S = 5.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen:
    """Unit facts by instance (service@host), and answers of extra probes by their id."""

    units: dict[str, UnitFacts]
    probes: dict[str, HttpAnswer]


class Hosts:
    """The fleet's hosts behind one shell."""

    def __init__(
        self, fleet: Fleet, shell: Shell, seen: Callable[[Mapping[str, UnitFacts]], None] | None = None
    ) -> None:
        self._fleet = fleet
        self._shell = shell
        self._seen = seen or (lambda _units: None)  # told of every look, and must return at once

    def at(self, host: str) -> SystemdHost:
        """The executor of one host."""
        return SystemdHost(self._shell, self._fleet.hosts[host], stay=True)

    def warm(self, hosts: Iterable[str], *, within_s: float = WARM_S) -> dict[str, OpsError]:
        """Have connections and helpers of these hosts ready, all at once; gives the errors by host.

        Nothing depends on it but the time that the first call takes.
        """
        names = list(dict.fromkeys(hosts))

        def warm(host: str) -> OpsError | None:
            try:
                self.at(host).warm(within_s=within_s)
            except OpsError as error:
                return error
            return None

        if not names:
            return {}
        with ThreadPoolExecutor(min(HOSTS_AT_ONCE, len(names)), thread_name_prefix="warm") as pool:
            answers = dict(zip(names, pool.map(warm, names), strict=True))
        return {name: error for name, error in answers.items() if error is not None}

    def observe(
        self,
        instances: Sequence[str],
        variables: Sequence[str],
        probes: Mapping[str, Sequence[HttpAsk]] | None = None,
        log: LogAsk | None = None,
        *,
        context: bool = False,
    ) -> Seen:
        """Look at every instance; `probes` are extra HTTP requests by host, `log` asks for the end of each unit's log.

        context: also ask what model and which accelerators there are, see `policies.today`.
        Raises: HostUnreachable, HostAnswerLost (of the first host that could not be asked).
        """
        by_host: dict[str, list[str]] = defaultdict(list)
        for instance in instances:
            by_host[instance.split("@", 1)[1]].append(instance)
        extra = probes or {}
        names = list(dict.fromkeys([*by_host, *extra]))

        def look(host: str) -> Seen:
            asks = [
                unit_ask(self._fleet.at(instance), tuple(variables), log, context=context) for instance in by_host[host]
            ]
            seen = self.at(host).observe(asks, extra.get(host, ()))
            units = {f"{unit.service}@{unit.host}": unit for unit in seen.facts.units}
            return Seen(units, {answer.id: answer for answer in seen.http})

        units: dict[str, UnitFacts] = {}
        answers: dict[str, HttpAnswer] = {}
        for part in self.each(names, look).values():
            units |= part.units
            answers |= part.probes
        return self._told(Seen(units, answers))

    def _told(self, seen: Seen) -> Seen:
        self._seen(seen.units)
        return seen

    def each(self, hosts: Iterable[str], work: Callable[[str], T]) -> dict[str, T]:
        """What `work` gives for every host, several at once; the first error that one of them raises."""
        names = list(dict.fromkeys(hosts))
        if len(names) < 2:
            return {name: work(name) for name in names}
        with ThreadPoolExecutor(min(HOSTS_AT_ONCE, len(names)), thread_name_prefix="host") as pool:
            return dict(zip(names, pool.map(work, names), strict=True))
