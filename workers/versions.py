"""The versions of a service's instances: read back as the fleet file says, and what hosts tell of them beside that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from policies.deploys.seen import ReleasesSeen, Seen, TextRead, VersionSeen
from policies.deploys.strategy import CommandLine, DeployEntry, Releases, Variable, VersionSource, filled
from policies.errors import HostRefused
from policies.facts import HttpAnswer, UnitFacts
from policies.fleet import Fleet, Service
from policies.gates import readable
from policies.gates.port import taken
from policies.gates.reported import reported_value
from policies.planning.placement import effective_now
from policies.planning.steady import NO_LIFE, steady
from workers.executors.answers import HttpAsk
from workers.executors.releases import TextAsk, VersionedHost
from workers.hosts import Hosts

MOST_CHARACTERS = 200  # of a version
ANSWER_MAX_BYTES = 1024 * 1024


class Versions:
    """Reads versions of the instances of one service.

    Raises in every method: HostUnreachable, HostAnswerLost, HostRefused, OpsError.
    """

    def __init__(self, fleet: Fleet, hosts: Hosts) -> None:
        self._fleet = fleet
        self._hosts = hosts

    def read(self, instances: Sequence[str]) -> dict[str, VersionSeen]:
        """What each instance is read back as, whoever answers."""
        entry, hosts = self._entry(instances), {i: i.split("@")[1] for i in instances}
        source = entry.version
        if source.http is not None:
            own = {i: self._entry((i,)).version for i in instances}  # `{address}` is another one on each host
            asks = {
                hosts[i]: [HttpAsk(id=i, url=one.http or "", timeout_s=one.timeout_s, max_bytes=ANSWER_MAX_BYTES)]
                for i, one in own.items()
            }
            answers = self._hosts.observe((), (), asks).probes
            return {i: picked(one, _text(answers[i]), place_of(one)) for i, one in own.items()}
        ask = TextAsk(file=source.file, argv=source.command, user=_user(entry), limit_s=source.timeout_s)
        texts = self._hosts.each(hosts.values(), lambda host: self._at(host).read([ask])[0])
        return {i: picked(source, texts[host], place_of(source)) for i, host in hosts.items()}

    def of_life(self, instance: str) -> tuple[UnitFacts, VersionSeen]:
        """What one instance is read back as, and the life of the unit right after that."""
        said = self.read((instance,))[instance]
        return self._hosts.observe((instance,), ()).units[instance], said

    def seen(
        self, instances: Sequence[str], units: Mapping[str, UnitFacts], recorded: Mapping[str, str | None]
    ) -> dict[str, Seen]:
        """The version of each instance, with the link where there is one.

        units: read with the variable that holds the version, if one does. recorded: what runs as far as changes tell.
        """
        strategy, said = self._entry(instances).strategy, self.read(instances)
        releases = self._releases(instances, strategy)
        found: dict[str, Seen] = {}
        for instance in instances:
            there, own = releases.get(instance), self._own(instance, units[instance], said[instance])
            now = self._now(instance, units[instance], own, there, recorded.get(instance))
            found[instance] = Seen(instance, now, own, there)
        return found

    def examined(self, seen: Mapping[str, Seen], refs: Sequence[str], compare: str) -> dict[str, Seen]:
        """The same with every REF examined: its release against its manifest, or the declared check.

        compare: the release whose difference against the one that runs is told.
        """
        instances = tuple(seen)
        strategy = self._entry(instances).strategy
        if isinstance(strategy, CommandLine):
            return {i: replace(seen[i], checks=found) for i, found in self._checks(instances, strategy, refs).items()}
        looked = self._releases(instances, strategy, seen, refs, compare)
        return {i: replace(one, releases=looked.get(i, one.releases)) for i, one in seen.items()}

    def _releases(
        self,
        instances: Sequence[str],
        strategy: Releases | Variable | CommandLine,
        seen: Mapping[str, Seen] | None = None,
        verify: Sequence[str] = (),
        compare: str = "",
    ) -> dict[str, ReleasesSeen]:
        """A look at each host's releases; a host without the folder is left out."""
        if not isinstance(strategy, Releases):
            return {}
        service = self._service(instances)
        by_host = {instance.split("@")[1]: instance for instance in instances}

        def look(host: str) -> ReleasesSeen | None:
            running = seen[by_host[host]].now if seen is not None else None
            pair = (compare, running) if compare and running is not None and running != compare else None
            try:
                return self._at(host).look(service.unit, strategy, verify, pair)
            except HostRefused as error:
                if error.code != "no-releases":
                    raise
                return None

        found = self._hosts.each(by_host, look)
        return {by_host[host]: there for host, there in found.items() if there is not None}

    def _checks(
        self, instances: Sequence[str], strategy: CommandLine, refs: Sequence[str]
    ) -> dict[str, dict[str, TextRead]]:
        if not strategy.check:
            return {instance: {} for instance in instances}
        asks = [
            TextAsk(argv=filled(strategy.check, ref), user=strategy.user, limit_s=strategy.timeout_s) for ref in refs
        ]
        by_host = {instance.split("@")[1]: instance for instance in instances}
        found = self._hosts.each(by_host, lambda host: self._at(host).read(asks))
        return {by_host[host]: dict(zip(refs, texts, strict=True)) for host, texts in found.items()}

    def _now(
        self, instance: str, unit: UnitFacts, own: VersionSeen, there: ReleasesSeen | None, recorded: str | None
    ) -> str | None:
        """The REF that an instance has: as its link or variable says, or, for a command, as far as it is known."""
        entry = self._entry((instance,))
        strategy = entry.strategy
        match strategy:
            case Releases():
                return there.link.release if there is not None else None
            case Variable():
                return effective_now(unit, strategy.env).value
            case CommandLine():
                if own.text is None or (recorded is not None and entry.version.of(recorded) == own.text):
                    return recorded
                whole = entry.version.part is None and re.fullmatch(strategy.ref, own.text) is not None
                return own.text if whole else None
            case _:
                assert_never(strategy)

    def _own(self, instance: str, unit: UnitFacts, said: VersionSeen) -> VersionSeen:
        """What was read, unless it is somebody else's, or that of a unit which does not stay."""
        source, service = self._entry((instance,)).version, self._service((instance,))
        if steady(unit) == NO_LIFE:
            return said.model_copy(update={"text": None, "error": "the unit does not run steadily"})
        same_port = source.http is not None and f":{service.health.port}/" in f"{source.http}/"
        if same_port and taken(unit.port):
            return said.model_copy(update={"text": None, "error": "somebody else has the port of the unit"})
        return said

    def _service(self, instances: Sequence[str]) -> Service:
        return self._fleet.at(instances[0])

    def _entry(self, instances: Sequence[str]) -> DeployEntry:
        entry = self._service(instances).deploy
        if entry is None:
            raise RuntimeError(f"{instances[0]} has no `deploy:` in the fleet file, and its version was asked for")
        return entry

    def _at(self, host: str) -> VersionedHost:
        return VersionedHost(self._hosts.at(host))


def place_of(source: VersionSource) -> str:
    """Where a version is read, for people."""
    if source.http is not None:
        return f"{source.http} ({source.field})" if source.field is not None else source.http
    return source.file or " ".join(source.command)


def picked(source: VersionSource, found: TextRead, where: str) -> VersionSeen:
    """The version in what was read, or why there is none."""
    text, error = found.text, found.error
    if text is not None and source.field is not None:
        text = reported_value(text, source.field)
        error = f"there is no `{source.field}` in the answer" if text is None else None
    elif text is not None:
        text = readable(text.strip())
    if text is not None and (not text or len(text) > MOST_CHARACTERS or "\n" in text):
        text, error = None, "it is empty" if not text else "it is more than one short line"
    return VersionSeen(text=text, source=where, error=error)


def _text(answer: HttpAnswer) -> TextRead:
    error = answer.error or (None if answer.status == 200 else f"it answers {answer.status}")
    return TextRead(text=answer.body if error is None else None, error=error, at=answer.at)


def _user(entry: DeployEntry) -> str | None:
    return entry.strategy.user if isinstance(entry.strategy, CommandLine) else None
