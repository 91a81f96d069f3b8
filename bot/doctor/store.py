"""The store, the ledger against its archive, the roles that run, and where clawback answers itself."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
from pydantic import SecretStr

from bot.doctor.check import Check, Patient, bad, failed, good, unknown
from bot.http import address
from bot.slack import is_loopback
from policies.errors import AlertmanagerFailed, OpsError, SettingsError, StoreUnavailable
from policies.fleet import Fleet
from workers.alertmanager import Alertmanager
from workers.archive.check import last_of
from workers.archive.follow import ROLE as ARCHIVE
from workers.archive.follow import other_chain
from workers.health import alive
from workers.live import find_binary, running_url
from workers.queue import QUEUES
from workers.store import connect, persistence

STORE, KEEPS, LEDGER, ROLES, ENDPOINTS = "store", "store-persistence", "ledger", "roles", "endpoints"
HTTP_S = 3.0
NEVER = "store-not-running"


def reachable(patient: Patient) -> Iterator[Check]:
    """Redis answers, and keeps what it acknowledged."""
    url = _url(patient)
    if url is None:
        try:
            find_binary()
        except SettingsError as error:
            yield failed(STORE, error)
            return
        patient.notes[STORE] = NEVER
        yield good(STORE, "doctor.store-embedded", path=str(patient.settings.clawback_data))
        return
    try:
        with connect(url, retries=0) as client:
            found = persistence(client)
    except OpsError as error:  # also an address that is none
        yield failed(STORE, error, "fix.store")
        yield unknown(KEEPS, STORE)
        return
    patient.notes[STORE] = "answers"
    yield good(STORE, "doctor.store")
    wrong = [one for one in found if one.effect == "refuse"]
    settings = ", ".join(f"{one.values.get('setting')} = {one.values.get('found') or 'unreadable'}" for one in wrong)
    if wrong:
        yield bad(KEEPS, "doctor.store-forgets", "fix.store-forgets", settings=settings)
    else:
        yield good(KEEPS, "doctor.store-keeps")


def ledger(patient: Patient) -> Iterator[Check]:
    """The ledger is not behind its archive."""
    try:
        seq, digest = last_of(patient.settings.archive_folder)
        url = _url(patient)
        if patient.notes.get(STORE) != "answers" or url is None:
            if patient.notes.get(STORE) != NEVER:
                yield unknown(LEDGER, STORE)
            return
        with connect(url, retries=0) as client:
            problem = other_chain(seq, digest, client)
    except OpsError as error:
        yield failed(LEDGER, error)
        return
    if problem is not None:
        yield failed(LEDGER, problem)
    else:
        yield good(LEDGER, "doctor.ledger", n=seq)


def roles(patient: Patient) -> Iterator[Check]:
    """All queues are served and the ledger is put away, or nothing runs at all."""
    url = _url(patient)
    if patient.notes.get(STORE) == NEVER:
        yield good(ROLES, "doctor.roles-none")
        return
    if patient.notes.get(STORE) != "answers" or url is None:
        yield unknown(ROLES, STORE)
        return
    try:
        with connect(url, retries=0) as client:
            serving = {queue: alive(client, queue) for queue in (*QUEUES, ARCHIVE)}
    except StoreUnavailable as error:
        yield failed(ROLES, error)
        return
    silent = [queue for queue, count in serving.items() if count == 0]
    if len(silent) == len(serving):
        yield good(ROLES, "doctor.roles-none")
    elif silent:
        yield bad(ROLES, "doctor.roles-silent", "fix.roles", queues=", ".join(silent))
    else:
        yield good(ROLES, "doctor.roles", told=", ".join(f"{queue} {count}" for queue, count in serving.items()))


def endpoints(patient: Patient) -> Iterator[Check]:
    """Where clawback itself answers /healthz and /readyz, when it runs."""
    where = patient.settings.clawback_http
    if where is None:
        yield good(ENDPOINTS, "doctor.endpoints-none")
        return
    try:
        host, port = address(where)
        shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        base = f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
        answer = httpx.get(f"{base}/readyz", timeout=HTTP_S, trust_env=False)
    except SettingsError as error:
        yield failed(ENDPOINTS, error)
        return
    except (httpx.ConnectError, httpx.ConnectTimeout):
        yield good(ENDPOINTS, "doctor.endpoints-quiet", address=where)
        return
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        yield bad(ENDPOINTS, "doctor.endpoints-odd", "fix.endpoints", address=where, why=type(error).__name__)
        return
    if answer.status_code == httpx.codes.OK:
        yield good(ENDPOINTS, "doctor.endpoints", address=where)
    else:
        why = f"status {answer.status_code}: {answer.text[:300]}"
        yield bad(ENDPOINTS, "doctor.endpoints-odd", "fix.endpoints", address=where, why=why)


def prometheus(patient: Patient) -> Iterator[Check]:
    """The Prometheus of the fleet file answers, where it names one."""
    base = patient.fleet.prometheus_url if isinstance(patient.fleet, Fleet) else None
    if base is None:
        return
    try:
        # the environment's proxy settings are for other machines
        address_, query = f"{base.rstrip('/')}/api/v1/query", {"query": "1"}
        answer = httpx.get(address_, params=query, timeout=HTTP_S, trust_env=not is_loopback(base))
        said = answer.json().get("status") if answer.status_code == httpx.codes.OK else f"status {answer.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError) as error:
        said = type(error).__name__
    if said == "success":
        yield good("prometheus", "doctor.prometheus", url=base)
    else:
        yield bad("prometheus", "doctor.prometheus-silent", "fix.prometheus", url=base, why=str(said))


def alertmanager(patient: Patient) -> Iterator[Check]:
    """The Alertmanager of the fleet file answers, where it names one."""
    entry = patient.fleet.alertmanager if isinstance(patient.fleet, Fleet) else None
    if entry is None:
        return
    server = Alertmanager(entry.url, timeout_s=HTTP_S)
    try:
        version = server.version()
    except AlertmanagerFailed as error:
        yield bad("alertmanager", "doctor.alertmanager-silent", "fix.alertmanager", url=entry.url, why=error.message)
    else:
        services = ", ".join(entry.match)
        yield good("alertmanager", "doctor.alertmanager", url=entry.url, version=version, services=services)
    finally:
        server.close()


def _url(patient: Patient) -> SecretStr | None:
    """The store that is in use; None: none is named and no embedded one runs."""
    if patient.settings.redis_url is not None:
        return patient.settings.redis_url
    found = running_url(patient.settings.clawback_data)
    return SecretStr(found) if found else None
