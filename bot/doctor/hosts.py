"""Every host: its key, the login, python, rights for each unit, its clock, health and metrics. Read only."""

from __future__ import annotations

from collections.abc import Iterator

from bot.doctor.check import Check, Patient, bad, failed, good, unknown
from policies.errors import OpsError
from policies.facts import HttpAnswer, Rights, UnitRights
from policies.fleet import Fleet
from workers.checkup import HostLook, look, release_folder, shell_of

# Units: seconds. Lines in a thread carry the host's own times; people compare them with their clocks.
MOST_SKEW_S = 2.0
NEEDS = {"login": "host-key", "python": "ssh", "helper": "python", "done": "helper"}
ORDER = ("key", "login", "python", "helper", "done")


def hosts(patient: Patient) -> Iterator[Check]:
    """All hosts at once, then host by host."""
    fleet = patient.fleet
    if not isinstance(fleet, Fleet):
        yield unknown("hosts", "fleet-file")
        return
    try:
        shell = shell_of(
            patient.settings.ssh_keys, patient.settings.clawback_ssh_agent, patient.settings.clawback_known_hosts, fleet
        )
    except OpsError:
        yield unknown("hosts", "ssh-keys")
        return
    try:
        for found in look(fleet, shell):
            yield from _host(fleet, found)
    finally:
        shell.close()


def _host(fleet: Fleet, found: HostLook) -> Iterator[Check]:
    host, at = fleet.hosts[found.host], ORDER.index(found.stage)
    who = f"{host.user}@{host.address}:{host.port}"
    key, ssh, python, rights = (f"{what}:{found.host}" for what in ("host-key", "ssh", "python", "rights"))
    if found.stage == "key" and found.error is not None:
        yield failed(key, found.error)
        yield unknown(ssh, key)
        return
    if found.stage == "login" and found.error is not None:
        yield failed(ssh, found.error, "fix.ssh", who=who)
        yield unknown(python, ssh)
        return
    yield good(key, "doctor.host-key", host=found.host)
    yield good(ssh, "doctor.ssh", who=who)
    if found.stage == "python" and found.error is not None:
        yield failed(python, found.error, "fix.host-python", host=found.host)
        yield unknown(rights, python)
        return
    yield good(python, "doctor.host-python", found=found.python, host=found.host)
    if found.rights is None:
        error = found.error or OpsError("the helper gave no answer")
        become = host.manager == "system" and host.user != "root"
        yield Check(**{**failed(rights, error).model_dump(), "fix": _helper_fix(error, become=become, who=who)})
        return
    yield from _clock(found)
    for unit in found.rights.units:
        yield _unit(fleet, found, unit)
    yield from _releases(fleet, found, found.rights)
    if at < len(ORDER) - 1 and found.error is not None:
        yield failed(f"endpoints:{found.host}", found.error)
        return
    for answer in found.answers:
        yield _endpoint(found.host, answer)


def _helper_fix(error: OpsError, *, become: bool, who: str) -> str:
    code = "fix.sudo" if become else "fix.helper"
    said = bad("", "doctor.no-channel", code, who=who).fix
    return f"{said}; {error.hint}" if error.hint else said


def _clock(found: HostLook) -> Iterator[Check]:
    if found.skew_s is None:
        return
    name, skew_s, unsure_s = f"clock:{found.host}", abs(found.skew_s), found.unsure_s
    if skew_s - unsure_s > MOST_SKEW_S:
        which = "ahead of" if found.skew_s > 0 else "behind"
        yield bad(
            name, "doctor.clock", "fix.clock", host=found.host, skew_s=skew_s, which=which, unsure_s=found.unsure_s
        )
    else:
        yield good(name, "doctor.clock-fits", host=found.host, skew_s=skew_s, unsure_s=found.unsure_s)


def _unit(fleet: Fleet, found: HostLook, unit: UnitRights) -> Check:
    services = [s.name for s in fleet.services.values() if s.unit == unit.unit and found.host in s.on]
    instance = f"{'/'.join(services)}@{found.host}"
    name, login = f"rights:{instance}", found.rights.login if found.rights else ""
    if unit.load_state != "loaded":
        return bad(name, "doctor.unit", "fix.unit", unit=unit.unit, state=unit.load_state, host=found.host)
    lacking = [
        path for path, may in ((unit.dropin, unit.dropin_writable), (unit.state, unit.state_writable)) if not may
    ]
    if lacking:
        return bad(name, "doctor.unwritable", "fix.rights", login=login, paths=", ".join(lacking))
    if not unit.may_restart:
        return bad(name, "doctor.no-restart", "fix.rights", login=login, unit=unit.unit)
    return good(name, "doctor.rights", login=login, unit=unit.unit)


def _releases(fleet: Fleet, found: HostLook, rights: Rights) -> Iterator[Check]:
    for service in fleet.services.values():
        folder = release_folder(service)
        if folder is None or found.host not in service.on:
            continue
        name, state = f"releases:{service.name}@{found.host}", rights.folders.get(folder, "absent")
        if state == "writable":
            yield good(name, "doctor.releases", login=rights.login, path=folder)
        else:
            code = "doctor.releases-forbidden" if state == "forbidden" else "doctor.releases-absent"
            yield bad(name, code, "fix.releases", login=rights.login, path=folder, host=found.host)


def _endpoint(host: str, answer: HttpAnswer) -> Check:
    kind, _, service = answer.id.partition(" ")
    name, values = f"{kind}:{service}@{host}", {"url": answer.url, "host": host}
    if answer.status is None:
        return bad(name, "doctor.endpoint-silent", "fix.endpoint", why=answer.error or "no answer", **values)
    if answer.status != 200:
        return bad(name, "doctor.endpoint-status", "fix.endpoint", status=answer.status, **values)
    if kind == "metrics" and not any(line and not line.startswith("#") for line in answer.body.splitlines()):
        return bad(name, "doctor.endpoint-empty", "fix.endpoint", **values)
    return good(name, "doctor.endpoint", took_s=answer.took_s, **values)
