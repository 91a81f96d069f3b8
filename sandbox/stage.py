"""The stage of the demo: a fleet, a workspace, two people, and the product as its own processes beside them.

The product is started as a user would start it, `clawback up`, and knows nothing of the stage but addresses.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from policies.errors import SettingsError
from sandbox.fleet.document import KNOB_ENV, People
from sandbox.fleet.fleet import DemoFleet, Engines
from sandbox.slack.server import SlackSandbox

ANA, BEN, CHANNEL = "U01ANA", "U02BEN", "C0SERVING"
ROLES = ("prefill", "decode", "router")
KNOB_VALUE = "512"
QUICK_BOOT_S = {"prefill": 2.0, "decode": 2.5, "router": 0.5}
# Source: the incident, boots of 68 s and 72 s
REAL_BOOT_S = {"prefill": 68.0, "decode": 72.0, "router": 2.0}
PROGRAM = Path(sys.executable).parent / "clawback"


class StageError(SettingsError):
    """The stage could not be set, or something that had to happen did not in time."""


class Stage:
    """Everything that runs during the demo, below one folder. Always `close()` it."""

    def __init__(self, folder: Path, *, port: int = 0, boot_s: Mapping[str, float] = QUICK_BOOT_S) -> None:
        self.folder = folder
        self.boot_s = dict(boot_s)
        self.slack = SlackSandbox(reference=_reference())
        self.fleet: DemoFleet | None = None
        self._product: subprocess.Popen[bytes] | None = None
        self._log = (folder / "clawback.log").open("ab")
        self._port = port

    def open(self) -> None:
        """Boot the fleet, the workspace and the product, and wait until the bot listens."""
        self.slack.start(port=self._port)
        space = self.slack.workspace
        space.add_user("ana", user_id=ANA)
        space.add_user("ben", user_id=BEN)
        space.add_channel("serving", [ANA, BEN, space.app.bot_user], channel_id=CHANNEL)
        engines = Engines(env={"decode": {KNOB_ENV: KNOB_VALUE}})
        people = People(engineers=(ANA, BEN), approvers=(BEN,))
        self.fleet = DemoFleet(self.folder / "fleet", boot_s=self.boot_s, people=people, engines=engines)
        self.fleet.wait_healthy()
        self._product = subprocess.Popen(
            [str(PROGRAM), "up"],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self.wait(lambda: self.slack.sockets.connected > 0, 30.0, "the bot listens in Socket Mode")

    @property
    def demo_fleet(self) -> DemoFleet:
        """The fleet of an opened stage."""
        if self.fleet is None:
            raise StageError("the stage is not open")
        return self.fleet

    def environment(self) -> dict[str, str]:
        """What the product is told: addresses, tokens, files. No proxy applies to loopback."""
        kept = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER"}}
        return {
            **kept,
            "SLACK_BOT_TOKEN": self.slack.bot_token,
            "SLACK_APP_TOKEN": self.slack.app_token,
            "SLACK_API_URL": self.slack.base_url,
            "CLAWBACK_FLEET": str(self.demo_fleet.fleet_yaml),
            "CLAWBACK_DATA": str(self.folder / "data"),
            "CLAWBACK_SSH_KEY": str(self.demo_fleet.ssh_key),
        }

    def clawback(self, *args: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a terminal command of the product."""
        return subprocess.run(
            [str(PROGRAM), *args],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def wait(self, predicate: Callable[[], object], timeout_s: float, what: str, pause_s: float = 0.02) -> None:
        """Wait until `predicate` holds.

        Raises: StageError with `what` when it did not in time, or the product ended.
        """
        deadline = time.monotonic() + timeout_s
        while not predicate():
            if self._product is not None and self._product.poll() is not None:
                raise StageError(f"clawback ended with status {self._product.returncode}", hint=self.log_tail())
            if time.monotonic() > deadline:
                raise StageError(f"waited {timeout_s:g} s until {what}: it did not happen")
            time.sleep(pause_s)

    def log_tail(self, count: int = 15) -> str:
        """The last lines that the product logged."""
        lines = (self.folder / "clawback.log").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-count:])

    def product_pids(self, *words: str) -> list[int]:
        """Process ids of the product's processes whose command line holds all `words`."""
        if self._product is None:
            return []
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                argv = (entry / "cmdline").read_bytes().split(b"\0")
                session = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3])
            except (OSError, ValueError, IndexError):
                continue
            if session == self._product.pid and all(word.encode() in argv for word in words):
                found.append(int(entry.name))
        return found

    def freeze(self, pids: Sequence[int]) -> None:
        """Stop processes of the product (SIGSTOP), so that a person can change something before they go on."""
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self, pids: Sequence[int]) -> None:
        """Let them go on."""
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    def close(self) -> None:
        """End the product, the workspace and the fleet, in this order."""
        product, self._product = self._product, None
        if product is not None and product.poll() is None:
            for pid in self._stopped_ones(product.pid):
                os.kill(pid, signal.SIGCONT)
            product.terminate()
            try:
                product.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(product.pid, signal.SIGKILL)
                product.wait(5)
        self._log.close()
        self.slack.stop()
        if self.fleet is not None:
            self.fleet.stop()

    @staticmethod
    def _stopped_ones(session: int) -> Sequence[int]:
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] == "T" and int(fields[3]) == session:
                found.append(int(entry.name))
        return found


def environ_of(pid: int, variable: str) -> str | None:
    """A variable in the kernel's copy of a process's environment; None: not there."""
    for item in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        name, _, value = item.partition(b"=")
        if name.decode() == variable:
            return value.decode()
    return None


def fetch(url: str, body: JsonValue = None, timeout_s: float = 30.0) -> tuple[int, str]:
    """One HTTP exchange made by the judge itself: status (0: no answer) and text."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except OSError as error:
        return 0, str(error)


def _reference() -> Path | None:
    """Slack's method reference and block schema, where they lie beside the checkout: every call is then judged."""
    path = Path(__file__).resolve().parents[2] / "shared" / "slack"
    return path if path.exists() else None
