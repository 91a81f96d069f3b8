"""Calls of the host helper: started for each call beside one that stays, over OpenSSH on the loopback, on real systemd.

    .venv/bin/python -m bench.helper_session [CALLS]

Both ways take turns in the same run, so the ratio holds on a noisy machine; the milliseconds do not.
"""

from __future__ import annotations

import hashlib
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, sleep

from rich.console import Console
from rich.table import Table

from policies.fleet import HttpCheck, Service
from tests.ports import free_port
from tests.real.ssh_servers import Sshd
from tests.workers.lab_host import lab_host
from workers.executors.answers import unit_ask
from workers.executors.helper import HelperCall
from workers.executors.systemd import SystemdHost
from workers.shells.hostkeys import KnownHosts
from workers.shells.ssh import SshPool

UNIT = "engine.service"
SETTLE_S = 0.3


class Way:
    """One way to call the helper, and the times it took."""

    def __init__(self, host: SystemdHost, name: str, service: Service) -> None:
        self._host, self._name, self._service = host, name, service
        self.times: dict[str, list[float]] = {}

    def turn(self, number: int) -> None:
        """Each call once."""
        ask = unit_ask(self._service, ("KNOB",))
        step = f"{self._name}-{number}"
        self._time("observe", lambda: self._host.observe([ask]))
        self._time("fence", lambda: self._host.fence(UNIT, token=1))
        text = f'[Service]\nEnvironment="KNOB={number}"\n'
        for name, new, old in (("put", text, None), ("remove", None, text)):
            fields = {"change": "bench", "step": f"{step}-{name}"}
            expected = old and hashlib.sha256(old.encode()).hexdigest()
            self._time("write", partial(self._host.write, UNIT, token=1, text=new, expect_sha256=expected, **fields))
        self._time("restart", lambda: self._host.restart(UNIT, token=1, change="bench", step=step))
        sleep(SETTLE_S)  # the restart itself is not part of the next call

    def _time(self, verb: str, call: Callable[[], object]) -> None:
        began = perf_counter()
        call()
        self.times.setdefault(verb, []).append((perf_counter() - began) * 1000)


def main(calls: int) -> None:
    """Measure in turns and print the medians with their range."""
    port = free_port()
    service = Service(name="engine", on=("gpu1",), unit=UNIT, health=HttpCheck(url=f"http://127.0.0.1:{port}/health"))
    with tempfile.TemporaryDirectory() as folder, lab_host() as lab:
        lab.unit(UNIT, f"StartLimitBurst=0\n{lab.engine_line(port, 0, 0)}", unit="StartLimitIntervalSec=0")
        lab.manager.systemctl("start", UNIT)
        server = Sshd(Path(folder)).start()
        pool = SshPool((server.key,), known_hosts=KnownHosts(()))
        try:
            sent = HelperCall.sent()
            helper = HelperCall(tuple(lab.manager.wrap(sent.argv)), sent.source, sent.sha256)
            host = server.host(manager="user")
            ways = [
                Way(SystemdHost(pool, host, helper=helper, stay=stay), name, service)
                for name, stay in (("started for each call", False), ("stays", True))
            ]
            for number in range(calls + 1):
                for way in ways:
                    way.turn(number)
                    if number == 0:
                        way.times.clear()
        finally:
            pool.close()
            server.stop()
    table = Table("ms, median [min-max]", "started for each call", "stays", "ratio")
    for verb in ways[0].times:
        one, stays = (way.times[verb] for way in ways)
        cells = [f"{statistics.median(times):.1f} [{min(times):.1f}-{max(times):.1f}]" for times in (one, stays)]
        table.add_row(verb, *cells, f"{statistics.median(one) / statistics.median(stays):.1f}x")
    Console().print(table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
