"""`python -m sandbox.fleet --folder DIR`: boot the demo fleet by hand and keep it until Ctrl-C or SIGTERM.

Lines of standard input make it misbehave: `misbehave decode crash-loop`, then `behave decode`; with --replicas
`misbehave decode@gpu2 crash-loop`.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
from pathlib import Path

from policies.errors import OpsError, SettingsError
from sandbox.fleet.document import KNOB_ENV
from sandbox.fleet.fleet import BOOT_S, DemoFleet, Engines
from sandbox.fleet.layout import Layout
from sandbox.fleet.misbehaviour import KINDS


def main(argv: list[str] | None = None) -> int:
    """Boot, print one JSON line, wait, clean up."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.fleet", description=__doc__)
    parser.add_argument("--folder", type=Path, help="default: a new temporary folder")
    parser.add_argument("--hosts", type=int, default=1, help="1 to 3; roles are spread over them")
    parser.add_argument("--replicas", action="store_true", help="2 prefill, 3 decode, a real sglang-router; 3 hosts")
    parser.add_argument("--boot-s", type=float, default=BOOT_S["prefill"], help="boot time of prefill and decode")
    parser.add_argument("--knob", help=f"start decode with {KNOB_ENV}=KNOB")
    told = parser.parse_args(argv)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    folder = told.folder or Path(tempfile.mkdtemp(prefix="clawback-fleet-"))
    knob = {"decode": {KNOB_ENV: told.knob}} if told.knob is not None else None
    engines = Engines(env=knob, real_router=told.replicas)
    boot_s = {"prefill": told.boot_s, "decode": told.boot_s}
    try:
        hosts = Layout.replicated() if told.replicas else told.hosts
        with DemoFleet(folder, boot_s=boot_s, hosts=hosts, engines=engines) as fleet:
            ssh = {
                name: {"address": host.ssh.address, "port": host.ssh.port, "user": host.ssh.user}
                for name, host in fleet.hosts.items()
            }
            line = {
                "fleet_yaml": str(fleet.fleet_yaml),
                "ssh_key": str(fleet.ssh_key),
                "ports": fleet.ports,
                "urls": {instance: fleet.url(instance) for instance in fleet.layout.instances},
                "ssh": ssh,
                "pids": {name: host.manager.pid for name, host in fleet.hosts.items()},
                "cgroups": [str(h.manager.cgroup.path) for h in fleet.hosts.values() if h.manager.cgroup],
            }
            print(json.dumps(line), flush=True)
            threading.Thread(target=_control, args=(fleet,), daemon=True).start()
            ended.wait()
    except OpsError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _control(fleet: DemoFleet) -> None:
    """Lines of stdin: `misbehave ROLE[@HOST] KIND`, `behave ROLE[@HOST]`; one JSON line each says what came of it."""
    for line in sys.stdin:
        words = line.split()
        try:
            match words:
                case ["misbehave", role, kind]:
                    fleet.misbehave(role, kind)
                case ["behave", role]:
                    fleet.behave(role)
                case _:
                    raise SettingsError(f"'{line.strip()}' is no control", hint=f"misbehave ROLE {'|'.join(KINDS)}")
        except OpsError as error:
            print(json.dumps({"ok": False, "said": error.message, "hint": error.hint}), flush=True)
        else:
            print(json.dumps({"ok": True, "did": words}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
