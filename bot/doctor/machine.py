"""This machine: python, packages, settings, folders, keys, the fleet file."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from bot.doctor.check import Check, Patient, bad, failed, good
from policies.errors import OpsError, SettingsError
from workers.checkup import login_problem

LEAST = (3, 11)
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def python(_: Patient) -> Iterator[Check]:
    """The interpreter."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < LEAST:
        yield bad("python", "doctor.python", "fix.python", found=found)
    else:
        yield good("python", "doctor.python", found=found)


def packages(_: Patient) -> Iterator[Check]:
    """Everything that this program needs is installed."""
    needed = [one for one in requires("clawback") or () if "extra ==" not in one]
    names = [re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0] for one in needed]
    missing = []
    for name in names:
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        yield bad("packages", "doctor.packages-missing", "fix.packages", missing=", ".join(missing))
    else:
        yield good("packages", "doctor.packages", n=len(names))


def settings(patient: Patient) -> Iterator[Check]:
    """What has to be in the environment is there and can be read."""
    if patient.problem is not None:
        yield failed("settings", patient.problem)
        return
    try:
        patient.settings.must_be_complete()
    except SettingsError as error:
        yield failed("settings", error)
        return
    mode = patient.settings.listens_by()
    yield good("settings", "doctor.settings", mode={"socket": "Socket Mode", "http": "HTTP mode"}[mode])


def data_folder(patient: Patient) -> Iterator[Check]:
    """Ledger and archive are for their owner's eyes only."""
    folders = {"data-folder": patient.settings.clawback_data, "archive-folder": patient.settings.archive_folder}
    for name, folder in folders.items():
        try:
            seen = folder.stat()
        except FileNotFoundError:
            yield _makeable(name, folder)
            continue
        except OSError as error:
            yield bad(name, "doctor.folder-unusable", "fix.folder", path=str(folder), why=error.strerror)
            continue
        if seen.st_mode & OTHERS or seen.st_uid != os.geteuid():
            mode = f"{stat.S_IMODE(seen.st_mode):04o}"
            yield bad(name, "doctor.folder-open", "fix.folder", path=str(folder), mode=mode, uid=seen.st_uid)
        elif not os.access(folder, os.W_OK | os.X_OK):
            yield bad(name, "doctor.folder-unusable", "fix.folder", path=str(folder), why="it cannot be written")
        else:
            yield good(name, "doctor.folder", path=str(folder))


def login_keys(patient: Patient) -> Iterator[Check]:
    """There is a way to log in to hosts, and nobody else can use it."""
    keys = patient.settings.ssh_keys
    problem = login_problem(keys, agent=patient.settings.clawback_ssh_agent)
    if problem is not None:
        yield failed("ssh-keys", problem)
        return
    loose = [str(path) for path in keys if path.stat().st_mode & OTHERS]
    if loose:
        yield bad("ssh-keys", "doctor.keys-open", "fix.keys-open", paths=", ".join(loose))
    else:
        agent = " and the agent" if patient.settings.clawback_ssh_agent else ""
        yield good("ssh-keys", "doctor.keys", n=len(keys), agent=agent)


def fleet_file(patient: Patient) -> Iterator[Check]:
    """The fleet file has no errors, and only its owner and those who may can change it."""
    fleet = patient.fleet
    if isinstance(fleet, OpsError):
        yield failed("fleet-file", fleet, "fix.fleet-file")
        return
    path = patient.settings.fleet_file()
    if path.stat().st_mode & stat.S_IWOTH:
        yield bad("fleet-file", "doctor.fleet-open", "fix.fleet-open", path=str(path))
        return
    found = {"hosts": len(fleet.hosts), "services": len(fleet.services), "knobs": len(fleet.knobs)}
    yield good("fleet-file", "doctor.fleet", name=fleet.name, **found)


def _makeable(name: str, folder: Path) -> Check:
    above = next((path for path in folder.absolute().parents if path.exists()), Path("/"))
    if os.access(above, os.W_OK | os.X_OK):
        return good(name, "doctor.folder-new", path=str(folder))
    return bad(name, "doctor.folder-unusable", "fix.folder", path=str(folder), why=f"{above} cannot be written")
