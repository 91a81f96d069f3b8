"""From a host's name to a connection that is logged in: socket, host key, login."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import SystemRandom
from time import monotonic, sleep

import paramiko

from policies.errors import HostUnreachable, SettingsError
from policies.fleet import Host
from workers.shells.hostkeys import HostKey, KnownHosts
from workers.shells.link import Link
from workers.shells.sockets import open_socket
from workers.shells.vendor import FAILURES, unreachable

# how paramiko words a connection that sshd dropped at its limit MaxStartups. Source: FACTS-ssh.md
DROPPED = "Error reading SSH protocol banner"
MAX_TRIES = 6
# a broken key file is a ValueError, one with a passphrase a TypeError
UNREADABLE: tuple[type[Exception], ...] = (*FAILURES, ValueError, TypeError)
# Units: seconds. One message on an idle connection, so that a firewall in between keeps it
KEEPALIVE_S = 30

_random = SystemRandom()


@dataclass(frozen=True, slots=True)
class Login:
    """How we prove who we are: key files, and the agent where asked for."""

    keys: tuple[paramiko.PKey, ...] = ()
    agent: bool = False


def load_login(paths: Sequence[Path], *, agent: bool) -> Login:
    """Read the key files once.

    Raises: SettingsError when one cannot be read or needs a passphrase.
    """
    keys = []
    for path in paths:
        try:
            keys.append(paramiko.PKey.from_path(path))
        except UNREADABLE as error:
            raise SettingsError(
                f"ssh key '{path}' cannot be read: {error}",
                hint="expected an OpenSSH key file without passphrase; load one with a passphrase into an ssh agent",
            ) from error
    if not keys and not agent:
        raise SettingsError("no way to log in to hosts is set", hint="give an ssh key file, or allow the ssh agent")
    return Login(tuple(keys), agent)


def connect(host: Host, known: KnownHosts, login: Login, *, until: float) -> Link:
    """Open a connection, check the host's key and log in; tried again while sshd drops it at MaxStartups.

    Units: `until` is monotonic seconds.
    Raises: HostKeyRefused, HostUnreachable.
    """
    tries = 0
    while True:
        tries += 1
        try:
            return _connect_once(host, known, login, until=until)
        except FAILURES as error:
            pause_s = _random.uniform(0.05, 0.15) * 2**tries
            dropped = str(error).startswith(DROPPED) and not isinstance(error, TimeoutError)
            if not dropped or tries >= MAX_TRIES or monotonic() + pause_s >= until:
                raise unreachable(host, error) from error
            sleep(pause_s)


def _connect_once(host: Host, known: KnownHosts, login: Login, *, until: float) -> Link:
    expected = known.keys(host)
    link = Link(open_socket(host.address, host.port, until=until))
    try:
        left = max(0.1, until - monotonic())
        link.banner_timeout = link.handshake_timeout = link.auth_timeout = left
        _prefer(link, expected)
        done = threading.Event()
        link.start_client(event=done)
        done.wait(max(0.0, until - monotonic()))
        failure = link.get_exception()
        if failure is not None:
            raise failure
        if not done.is_set() or not link.initial_kex_done or not link.is_active():
            raise TimeoutError("the key exchange did not end")
        shown = link.get_remote_server_key()
        known.check(host, HostKey(shown.get_name(), shown.asbytes()))
        link.auth_timeout = max(0.1, until - monotonic())
        _log_in(host, link, login)
        link.set_keepalive(KEEPALIVE_S)
    except BaseException:
        link.packetizer.complete_handshake()  # ends its timer thread, which would hold up the end of the process
        link.close()
        link.tuned.close()
        raise
    return link


def _prefer(link: Link, expected: Sequence[HostKey]) -> None:
    """Ask first for the key types that are known, else a host with several keys would look like a changed one."""
    options = link.get_security_options()
    wanted = {key.type for key in expected}
    if "ssh-rsa" in wanted:
        wanted |= {"rsa-sha2-512", "rsa-sha2-256"}
    options.key_types = sorted(options.key_types, key=lambda name: name not in wanted)


def _log_in(host: Host, link: Link, login: Login) -> None:
    """Offer each key until one is taken."""
    agent = paramiko.Agent() if login.agent else None
    try:
        offered = (*login.keys, *(agent.get_keys() if agent else ()))
        last: Exception | None = None
        for key in offered:
            try:
                further = link.auth_publickey(host.user, key)
            except paramiko.AuthenticationException as error:
                last = error
                if not link.is_active():
                    break
            else:
                if link.is_authenticated():
                    return
                last = paramiko.AuthenticationException(f"the host also wants {', '.join(further)}")
        raise HostUnreachable(
            f"host '{host.name}' refused the login of '{host.user}' with {len(offered)} key(s), nothing was done"
            f": {last or 'no key to offer'}",
            hint="check the user in the fleet file and its authorized_keys on the host",
        )
    finally:
        if agent is not None:
            agent.close()
