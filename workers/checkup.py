"""A look at every host for `clawback doctor`: key, login, python, rights, clock, endpoints. Changes nothing there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from policies.deploys.strategy import Releases
from policies.errors import HostKeyRefused, OpsError
from policies.facts import HttpAnswer, Rights
from policies.fleet import Fleet, Host, Service
from workers.executors.answers import HttpAsk
from workers.executors.helper import PYTHON
from workers.executors.systemd import SystemdHost
from workers.hosts import HOSTS_AT_ONCE
from workers.shells import Shell

ASK_S = 15.0
PROBE_BYTES = 65536
PROBE_S = 5.0  # most of it: a health check may declare less


@dataclass(frozen=True, slots=True)
class HostLook:
    """What one host showed, as far as it was reached. An error ends the look; `stage` says where.

    Units: skew_s is the host's clock minus ours, known to within unsure_s.
    """

    host: str
    stage: str = "done"  # key, login, python, helper, done
    error: OpsError | None = None
    python: str = ""
    rights: Rights | None = None
    skew_s: float | None = None
    unsure_s: float = 0.0
    answers: tuple[HttpAnswer, ...] = ()  # ids: "health SERVICE", "metrics SERVICE"


def login_problem(keys: Sequence[Path], *, agent: bool) -> OpsError | None:
    """Why nobody can log in to hosts with these keys; None when they can be read."""
    from workers.shells.connect import load_login

    try:
        load_login(keys, agent=agent)
    except OpsError as error:
        return error
    return None


def shell_of(keys: Sequence[Path], agent: bool, known_hosts: Path | None, fleet: Fleet) -> Shell:
    """Connections to hosts as workers make them.

    Raises: SettingsError when a key cannot be read.
    """
    from workers.shells.hostkeys import DEFAULT_FILES, KnownHosts
    from workers.shells.ssh import SshPool

    known = KnownHosts((known_hosts,) if known_hosts else DEFAULT_FILES)
    return SshPool(keys, agent=agent, known_hosts=known, reach_s=fleet.timing.reach_s)


def release_folder(service: Service) -> str | None:
    """The folder in which a deploy switches the link of a service; None where it switches none."""
    strategy = service.deploy.strategy if service.deploy is not None else None
    return strategy.path if isinstance(strategy, Releases) else None


def look(fleet: Fleet, shell: Shell, clock: Callable[[], float] = time.time) -> list[HostLook]:
    """Every host of the fleet, all at once, in the order of the file."""
    names = list(fleet.hosts)
    if not names:
        return []
    with ThreadPoolExecutor(min(HOSTS_AT_ONCE, len(names)), thread_name_prefix="checkup") as pool:
        return list(pool.map(lambda name: _look(fleet, fleet.hosts[name], shell, clock), names))


def _look(fleet: Fleet, host: Host, shell: Shell, clock: Callable[[], float]) -> HostLook:
    found = HostLook(host.name, stage="login")
    try:
        shell.run(host, ["true"], deadline_s=ASK_S, max_output_bytes=PROBE_BYTES)
        found = replace(found, stage="python")
        done = shell.run(host, [PYTHON, "-V"], deadline_s=ASK_S, max_output_bytes=PROBE_BYTES)
        found = replace(found, python=(done.stdout or done.stderr).decode("utf-8", "replace").strip()[:100])
        if done.exit_status != 0:
            return replace(found, error=OpsError(f"{PYTHON} -V ended with exit status {done.exit_status}"))
        return _asked(fleet, host, shell, clock, replace(found, stage="helper"))
    except HostKeyRefused as error:
        return replace(found, stage="key", error=error)
    except OpsError as error:
        return replace(found, error=error)


def _asked(fleet: Fleet, host: Host, shell: Shell, clock: Callable[[], float], found: HostLook) -> HostLook:
    here = [service.at(host) for service in fleet.services.values() if host.name in service.on]
    helper = SystemdHost(shell, host, stay=True)
    try:
        helper.warm(within_s=ASK_S)  # so that the clocks are compared over one short round trip
        began = clock()
        rights = helper.rights([service.unit for service in here], [f for s in here if (f := release_folder(s))])
        ended = clock()
        # the host read its clock after it had looked: nearer to the end of the call than to its beginning
        found = replace(found, rights=rights, skew_s=rights.at - (began + ended) / 2, unsure_s=(ended - began) / 2)
        asks = [
            HttpAsk(
                id=f"{kind} {service.name}",
                url=check.url,
                timeout_s=min(PROBE_S, check.timeout_s),
                max_bytes=PROBE_BYTES,
            )
            for service in here
            for kind, check in (("health", service.health), ("metrics", service.metrics))
            if check is not None
        ]
        return replace(found, stage="done", answers=helper.observe([], asks).http if asks else ())
    except HostKeyRefused as error:
        return replace(found, stage="key", error=error)
    except OpsError as error:
        return replace(found, error=error)
