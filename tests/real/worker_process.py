"""A worker that ends or stops itself at one place in a change: `python -m tests.real.worker_process ...`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from policies import events as e
from tests.real.stage import quick, wire
from workers.execute import execute
from workers.shells.hostkeys import KnownHosts
from workers.shells.ssh import SshPool
from workers.wiring import load_fleet


def main(
    fleet: str, url: str, key: str, change: str, name: str, when: str, kind: str, index: str, bake_s: str = "0"
) -> None:
    """Take one turn; at the first event of `kind` and step `index` (-1: any) this process gets the signal `name`."""
    pool = SshPool((Path(key),), known_hosts=KnownHosts(()))
    wiring, ledger = wire(quick(load_fleet(Path(fleet)), bake_s=float(bake_s)), url, pool, name=f"pid-{os.getpid()}")

    def hook(event: e.Event) -> None:
        if event.kind == kind and int(index) in {-1, getattr(event, "index", -1)}:
            (ledger.before if when == "before" else ledger.after).remove(hook)
            os.kill(os.getpid(), getattr(signal, name))

    (ledger.before if when == "before" else ledger.after).append(hook)
    execute(wiring, change)
    pool.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
