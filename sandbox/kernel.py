"""What the kernel says, read from /proc: the environment of a process, and who listens on a port."""

from __future__ import annotations

import contextlib
import socket
import struct
from pathlib import Path

LISTEN = "0A"  # Source: include/net/tcp_states.h, as /proc/net/tcp prints it
EVERY = "00000000"  # every address, as /proc/net/tcp prints it
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def environ_of(pid: int, variable: str) -> str | None:
    """A variable in the kernel's copy of a process's environment; None: not there.

    Raises: OSError when the process is gone.
    """
    for item in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        name, _, value = item.partition(b"=")
        if name.decode(errors="replace") == variable:
            return value.decode(errors="replace")
    return None


def listeners(port: int, address: str = "127.0.0.1") -> list[int]:
    """Process ids that hold a socket listening on a port of an address; sockets of other users cannot be seen."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(port, address)}
    return [pid for pid in pids() if wanted.intersection(handles(pid))]


def handles(pid: int) -> list[str]:
    """What a process has open, as /proc names it; empty when it is gone or belongs to somebody else."""
    found: list[str] = []
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return found
    for link in links:
        with contextlib.suppress(OSError):  # closed meanwhile; the others count all the same
            found.append(str(link.readlink()))
    return found


def pids() -> list[int]:
    """Every process."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def words_of(pid: int) -> list[str]:
    """The command line of a process; empty when it is gone."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return raw.decode(errors="replace").rstrip("\0").split("\0")


def _inodes(port: int, address: str) -> list[str]:
    found: list[str] = []
    wanted = {f"{struct.unpack('=I', socket.inet_aton(address))[0]:08X}", EVERY}
    for table in TABLES:
        try:
            rows = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue  # a kernel without IPv6
        for row in rows:
            fields = row.split()
            listens, _, number = fields[1].rpartition(":")
            local = listens in wanted or table.endswith("6")
            if fields[3] == LISTEN and local and int(number, 16) == port:
                found.append(fields[9])
    return found
