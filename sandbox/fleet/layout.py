"""Which roles of the demo run on which hosts, at which addresses of the loopback."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from policies.errors import SettingsError

ROLES = ("prefill", "decode", "router")
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Layout:
    """on: role -> its hosts. addresses: host -> where its engines and its SSH server listen.

    With replicas each host has an address of its own, so that the replicas of a role listen on one port.
    """

    on: Mapping[str, tuple[str, ...]]
    addresses: Mapping[str, str]

    @classmethod
    def spread(cls, hosts: int) -> Self:
        """One instance a role on one to three hosts, which all share one address.

        Raises: SettingsError for another number of hosts.
        """
        if not 1 <= hosts <= len(ROLES):
            raise SettingsError(f"{hosts} demo hosts, expected 1 to {len(ROLES)}", hint="each role runs on one host")
        names = [f"gpu{place}" for place in range(1, hosts + 1)]
        on = {role: (names[index % hosts],) for index, role in enumerate(ROLES)}
        return cls(on, dict.fromkeys(names, LOOPBACK))

    @classmethod
    def replicated(cls, on: Mapping[str, tuple[str, ...]] | None = None) -> Self:
        """Two prefill, three decode and one router on gpu1 to gpu3, unless `on` says otherwise.

        Raises: SettingsError where the machine has no more than one loopback address.
        """
        placed = on or {"prefill": ("gpu1", "gpu2"), "decode": ("gpu1", "gpu2", "gpu3"), "router": ("gpu1",)}
        hosts = sorted({host for role in placed.values() for host in role})
        addresses = {host: f"127.0.0.{place}" for place, host in enumerate(hosts, start=2)}
        for address in addresses.values():
            check_address(address)
        return cls({role: tuple(placed[role]) for role in ROLES}, addresses)

    @property
    def replicas(self) -> bool:
        """Whether a role has more than one instance."""
        return any(len(hosts) > 1 for hosts in self.on.values())

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host, in order."""
        return tuple(self.addresses)

    @property
    def instances(self) -> tuple[str, ...]:
        """Every `role@host`, in the order of the roles."""
        return tuple(f"{role}@{host}" for role, hosts in self.on.items() for host in hosts)

    def of(self, where: str) -> tuple[str, str]:
        """Role and host of `role@host`, or of a role: its first host then.

        Raises: SettingsError when nothing of that name is there.
        """
        role, _, host = where.partition("@")
        hosts = self.on.get(role, ())
        if not hosts or (host and host not in hosts):
            raise SettingsError(f"'{where}' is not there", hint=f"there are {', '.join(self.instances)}")
        return role, host or hosts[0]

    def name(self, where: str) -> str:
        """How files of an instance are called: by its role, and by its host where the role has several."""
        role, host = self.of(where)
        return role if len(self.on[role]) == 1 else f"{role}-{host}"

    def url(self, where: str, port: int, path: str = "") -> str:
        """An address of an instance."""
        return f"http://{self.addresses[self.of(where)[1]]}:{port}{path}"


def check_address(address: str) -> None:
    """Raises: SettingsError when nobody can listen there."""
    with socket.socket() as tried:
        try:
            tried.bind((address, 0))
        except OSError as error:
            raise SettingsError(
                f"this machine has no loopback address {address} ({error.strerror or error}): replicas need several",
                hint=f"only {LOOPBACK} is there: give lo the whole of 127.0.0.0/8, as Linux does by itself",
            ) from error
