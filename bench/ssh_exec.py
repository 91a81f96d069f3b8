"""One command over SSH: our pool beside paramiko with its defaults, against OpenSSH on the loopback.

    .venv/bin/python -m bench.ssh_exec [COMMANDS]

Both run in the same process, in turns, so the ratio holds on a noisy machine; the milliseconds do not.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import paramiko
from rich.console import Console
from rich.table import Table

from tests.real.ssh_servers import Sshd
from workers.shells.hostkeys import KnownHosts
from workers.shells.ssh import SshPool

CONNECTIONS = 5


class Default:
    """paramiko as its documentation shows it."""

    def __init__(self, server: Sshd) -> None:
        self._client = paramiko.SSHClient()
        key = paramiko.Ed25519Key(data=KnownHosts(()).keys(server.host())[0].blob)
        self._client.get_host_keys().add(f"[127.0.0.1]:{server.port}", "ssh-ed25519", key)
        host = server.host()
        self._client.connect(
            host.address,
            host.port,
            host.user,
            key_filename=str(server.key),
            allow_agent=False,
            look_for_keys=False,
        )

    def run(self) -> None:
        """One command."""
        _, stdout, stderr = self._client.exec_command("true")
        stdout.read()
        stderr.read()
        assert stdout.channel.recv_exit_status() == 0

    def close(self) -> None:
        """End the connection."""
        self._client.close()


class Ours:
    """The pool."""

    def __init__(self, server: Sshd) -> None:
        self._pool = SshPool((server.key,), known_hosts=KnownHosts(()))
        self._host = server.host()
        assert self._pool.warm([self._host]) == {}

    def run(self) -> None:
        """One command."""
        assert self._pool.run(self._host, ("true",), deadline_s=30, max_output_bytes=1000).exit_status == 0

    def close(self) -> None:
        """End the connection."""
        self._pool.close()


def timed(work: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    started = perf_counter()
    work()
    return (perf_counter() - started) * 1000


def main(commands: int) -> None:
    """Measure in turns and print the medians with their range."""
    kinds: dict[str, type[Default] | type[Ours]] = {"paramiko, defaults": Default, "clawback": Ours}
    rows = ("connect", "first command", "warm command")
    times: dict[tuple[str, str], list[float]] = {(kind, row): [] for kind in kinds for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        server = Sshd(Path(folder)).start()
        try:
            for _ in range(CONNECTIONS):
                for name, kind in kinds.items():
                    made: list[Default | Ours] = []
                    times[name, "connect"].append(timed(lambda kind=kind, made=made: made.append(kind(server))))  # type: ignore[misc]  # mypy infers no lambda with defaults
                    times[name, "first command"].append(timed(made[0].run))
                    times[name, "warm command"] += [timed(made[0].run) for _ in range(commands)]
                    made[0].close()
        finally:
            server.stop()
    table = Table("ms, median [min-max]", *kinds, "ratio")
    for row in rows:
        cells = [times[name, row] for name in kinds]
        shown = [f"{statistics.median(c):.1f} [{min(c):.1f}-{max(c):.1f}]" for c in cells]
        table.add_row(row, *shown, f"{statistics.median(cells[0]) / statistics.median(cells[1]):.1f}x")
    Console().print(table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
