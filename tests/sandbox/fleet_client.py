"""What the fleet tests share: a booted fleet or a skip, SSH commands with paramiko, metric readings."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paramiko
from prometheus_client.parser import text_string_to_metric_families

from policies.errors import SettingsError
from sandbox.fleet.fleet import DemoFleet
from sandbox.fleet.manager import UserManager
from sandbox.fleet.sshd import SshHost
from tests.shared import skip_or_fail

WAIT_S = 60.0


@contextmanager
def booted(make: Callable[[], DemoFleet]) -> Iterator[DemoFleet]:
    """The fleet, stopped afterwards; skips where real managers cannot run."""
    try:
        fleet = make()
    except SettingsError as error:
        skip_or_fail(str(error))
    with fleet:
        yield fleet


@contextmanager
def manager_booted(folder: Path) -> Iterator[UserManager]:
    """One host's manager; skips where it cannot run."""
    manager = UserManager(folder, "gpu1")
    try:
        manager.boot()
    except SettingsError as error:
        skip_or_fail(str(error))
    try:
        yield manager
    finally:
        manager.stop()


@contextmanager
def connected(host: SshHost, key_file: Path, *, user: str = "", host_key: str = "") -> Iterator[paramiko.SSHClient]:
    """A strict client: the host key must be the one that the server says it has."""
    client = paramiko.SSHClient()
    blob = base64.b64decode((host_key or host.host_key).split()[1])
    client.get_host_keys().add(f"[{host.address}]:{host.port}", "ssh-ed25519", paramiko.Ed25519Key(data=blob))
    try:
        client.connect(
            host.address,
            host.port,
            user or host.user,
            key_filename=str(key_file),
            look_for_keys=False,
            allow_agent=False,
            timeout=WAIT_S,
            banner_timeout=WAIT_S,
        )
        yield client
    finally:
        client.close()


def command(client: paramiko.SSHClient, text: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    """Exit status, standard output and standard error of one command."""
    transport = client.get_transport()
    assert transport is not None
    channel = transport.open_session(timeout=WAIT_S)
    channel.settimeout(WAIT_S)
    try:
        channel.exec_command(text)
        out, err, sent = bytearray(), bytearray(), 0
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            busy = False
            if sent < len(stdin) and channel.send_ready():
                sent += _send(channel, stdin[sent : sent + 32768])
                busy = True
            if sent == len(stdin):
                channel.shutdown_write()
                sent += 1
            while channel.recv_ready():
                out += channel.recv(65536)
                busy = True
            while channel.recv_stderr_ready():
                err += channel.recv_stderr(65536)
                busy = True
            if channel.exit_status_ready() and channel.eof_received and not busy:
                return channel.recv_exit_status(), bytes(out), bytes(err)
            if not busy:
                time.sleep(0.002)
        raise AssertionError(f"{text!r} did not end within {WAIT_S} s")
    finally:
        channel.close()


def _send(channel: paramiko.Channel, data: bytes) -> int:
    """How much of `data` was taken; all of it by a channel that was closed, as a program's stdin may be."""
    try:
        return channel.send(data)
    except OSError:
        if not channel.closed:
            raise
        return len(data)


def http(url: str, body: dict[str, object] | None = None) -> tuple[int, Any]:
    """Status and body (parsed when it is JSON) of one request."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=WAIT_S
        ) as answer:
            status, raw = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            status, raw = error.code, error.read()
    try:
        return status, json.loads(raw)
    except ValueError:
        return status, raw.decode()


def reading(url: str, name: str) -> float:
    """The sum of a metric's series; a missing family is an error."""
    _, text = http(url)
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples if s.name == name]
    assert samples, f"no {name} at {url}"
    return sum(sample.value for sample in samples)


def until(check: Callable[[], bool], what: str) -> None:
    """Wait, bounded, until `check` holds."""
    deadline = time.monotonic() + WAIT_S
    while not check():
        assert time.monotonic() < deadline, f"after {WAIT_S} s still not: {what}"
        time.sleep(0.02)
