"""The stage of the demo: a fleet, a workspace, two people, and the product as its own processes beside them.

The product is started as a user would start it, `clawback up`, and knows nothing of the stage but addresses.
It runs in a cgroup of its own, so that nothing of it can outlive the stage.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from policies.errors import OpsError, SettingsError
from sandbox.fleet.cgroup import Cgroup
from sandbox.fleet.document import KNOB_ENV, People
from sandbox.fleet.fleet import DemoFleet, Engines
from sandbox.fleet.guard import Guard
from sandbox.fleet.layout import Layout
from sandbox.hints import HINTS
from sandbox.kernel import words_of
from sandbox.slack.server import SlackSandbox

ANA, BEN, CHANNEL = "U01ANA", "U02BEN", "C0SERVING"
ROLES = ("prefill", "decode", "router")
KNOB_VALUE = "512"
QUICK_BOOT_S = {"prefill": 1.5, "decode": 2.0, "router": 0.4}
ROLLING_BOOT_S = {"prefill": 0.6, "decode": 0.8, "router": 0.4}  # each replica boots in turn
QUICK_DRAIN_S = 0.7
QUICK_BAKE_S = 1.5
# Source: the incident, boots of 68 s and 72 s
REAL_BOOT_S = {"prefill": 68.0, "decode": 72.0, "router": 2.0}
REAL_DRAIN_S = 3.0
REAL_BAKE_S = 60.0
# how the replicas are taken in turn: one first, watched, and judged by what is measured on it
CANARY_WATCH_S = 1.0
ROLLING_SLICE = "2s"  # a crash loop is told at the end of a long poll
ROLLING: Mapping[str, Mapping[str, JsonValue]] = {
    "prefill": {
        "rolling": {"max_unavailable": 1},
        "drain": {"router": "router", "kind": "prefill", "deadline": "20s"},
    },
    "decode": {
        "rolling": {
            "max_unavailable": 1,
            "keep": 2,
            "canary": {"watch": f"{CANARY_WATCH_S:g}s", "require": ["ttft_s < 1"]},
        },
        "drain": {"router": "router", "kind": "decode", "deadline": "20s"},
    },
}
LISTENS_S = 60.0
COMMAND_S = 120.0
STOP_S = 10.0
PROGRAM = Path(sys.executable).parent / "clawback"


class StageError(SettingsError):
    """The stage could not be set, or something that had to happen did not in time."""


class Stage:
    """Everything that runs during the demo, below one folder. Always `close()` it."""

    def __init__(self, folder: Path, *, port: int = 0, real_time: bool = False, replicas: bool = False) -> None:
        self.folder = folder
        self.replicas = replicas
        self.rolling = ROLLING
        quick_s = ROLLING_BOOT_S if replicas else QUICK_BOOT_S
        self.boot_s: Mapping[str, float] = REAL_BOOT_S if real_time else quick_s
        self.slack = SlackSandbox(reference=reference(), page_hints=HINTS)
        self.fleet: DemoFleet | None = None
        self.bake_s = REAL_BAKE_S if real_time else QUICK_BAKE_S
        self._drain_s = REAL_DRAIN_S if real_time else QUICK_DRAIN_S
        self._product: subprocess.Popen[bytes] | None = None
        self._cgroup: Cgroup | None = None
        self._guard: Guard | None = None
        self._log = (folder / "clawback.log").open("ab")
        self._port = port

    def boot(self) -> None:
        """Open the workspace and boot the hosts; the services still boot when this returns.

        Raises: SettingsError where this machine or this port cannot do that.
        """
        try:
            self.slack.start(port=self._port)
        except OSError as error:
            message = f"the workspace cannot listen on port {self._port}: {error.strerror or error}"
            raise SettingsError(message, hint="choose another one with --port") from error
        space = self.slack.workspace
        space.add_user("ana", user_id=ANA)
        space.add_user("ben", user_id=BEN)
        space.add_channel("serving", [ANA, BEN, space.app.bot_user], channel_id=CHANNEL)
        engines = Engines(drain_s=self._drain_s, env={"decode": {KNOB_ENV: KNOB_VALUE}}, real_router=self.replicas)
        people = People(engineers=(ANA, BEN), approvers=(BEN,))
        self._cgroup = Cgroup.create(f"clawback-{os.getpid()}-product-{time.monotonic_ns():x}")
        self._guard = Guard(self._cgroup)
        folder = self.folder / "fleet"
        timing = {"bake": f"{self.bake_s:g}s", **({"wait_slice": ROLLING_SLICE} if self.replicas else {})}
        self.fleet = DemoFleet(
            folder,
            hosts=Layout.replicated() if self.replicas else 1,
            boot_s=self.boot_s,
            people=people,
            timing=timing,
            engines=engines,
            more=self.rolling if self.replicas else None,
            wait=False,
        )

    @property
    def places(self) -> tuple[str, ...]:
        """Everything with a clock of its own: the roles, or with replicas every engine; the real router has none."""
        if not self.replicas:
            return ROLES
        return tuple(i for i in self.demo_fleet.layout.instances if not i.startswith("router@"))

    def place(self, instance: str) -> str:
        """The place of an instance."""
        return instance if self.replicas else instance.split("@", maxsplit=1)[0]

    @property
    def hosts_said(self) -> str:
        """What is booted, for people."""
        if self.replicas:
            return "three hosts with 2 prefill, 3 decode and a real sglang-router under systemd"
        return "a host with prefill, decode and router under systemd"

    def start(self) -> None:
        """Start the product, and wait until the services are healthy and the bot listens.

        Raises: SettingsError with what did not happen.
        """
        self.launch()
        self.demo_fleet.wait_healthy()
        self.wait(lambda: self.slack.sockets.connected > 0, LISTENS_S, "the bot listens in Socket Mode")

    def launch(self) -> None:
        """Start the product and wait for nothing.

        Raises: StageError when the stage was not booted.
        """
        if self._cgroup is None:
            raise StageError("the stage was not booted")
        enter = f'echo $$ > {shlex.quote(str(self._cgroup.path / "cgroup.procs"))} && exec "$@"'
        self._product = subprocess.Popen(
            ["/bin/sh", "-c", enter, "sh", str(PROGRAM), "up"],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    @property
    def demo_fleet(self) -> DemoFleet:
        """The fleet of a booted stage."""
        if self.fleet is None:
            raise StageError("the stage was not booted")
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

    def clawback(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a terminal command of the product.

        Raises: StageError when it does not end in time.
        """
        try:
            return subprocess.run(
                [str(PROGRAM), *args],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMMAND_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise StageError(f"`clawback {' '.join(args)}` did not end within {COMMAND_S:g} s") from error

    def check_alive(self) -> None:
        """Raises: StageError when the product ended."""
        if self._product is not None and self._product.poll() is not None:
            raise StageError(f"`clawback up` ended with status {self._product.returncode}", hint=self.log_tail())

    def wait(self, predicate: Callable[[], object], timeout_s: float, what: str) -> None:
        """Wait until `predicate` holds.

        Raises: StageError with `what` when it did not in time, or the product ended.
        """
        deadline = time.monotonic() + timeout_s
        while not predicate():
            self.check_alive()
            if time.monotonic() > deadline:
                raise StageError(f"waited {timeout_s:g} s until {what}: it did not happen", hint=self.log_tail())
            time.sleep(0.02)

    def log_tail(self, count: int = 15) -> str:
        """The last lines that the product logged."""
        lines = (self.folder / "clawback.log").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-count:])

    def product_pids(self, *words: str) -> list[int]:
        """Process ids of the product's processes whose command line holds all `words`."""
        pids = self._cgroup.pids() if self._cgroup is not None else []
        return [pid for pid in pids if set(words) <= set(words_of(pid))]

    def signal(self, pids: Sequence[int], number: signal.Signals) -> None:
        """Signal processes of the product; those that have ended meanwhile are left out."""
        mine = set(self.product_pids())
        for pid in pids:
            if pid in mine:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def close(self) -> list[str]:
        """End the product, the workspace and the fleet, in this order; what could not be ended, in words."""
        problems: list[str] = []
        for end in (self._end_product, self.slack.stop, self._end_fleet):
            try:
                end()
            except (OpsError, OSError, subprocess.SubprocessError) as error:
                problems.append(str(error))
        self._log.close()
        return problems

    def _end_product(self) -> None:
        product, self._product = self._product, None
        if product is not None and product.poll() is None:
            self.signal(self.product_pids(), signal.SIGCONT)  # a stopped process cannot follow the request below
            product.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                product.wait(STOP_S)
            product.kill()  # it may not have entered its cgroup yet
        try:
            if self._cgroup is not None:
                self._cgroup.destroy()
            if product is not None:
                product.wait(STOP_S)
        finally:
            if self._guard is not None:
                self._guard.release()
            self._cgroup = self._guard = None

    def _end_fleet(self) -> None:
        if self.fleet is not None:
            self.fleet.stop()


def fetch(url: str, body: JsonValue = None, timeout_s: float = 10.0) -> tuple[int, str]:
    """One HTTP exchange made by the judge itself: status (0: no answer) and text."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error) or type(error).__name__


def reference() -> Path | None:
    """Slack's method reference and block schema, where they lie beside the checkout: every call is then judged."""
    path = Path(__file__).resolve().parents[2] / "shared" / "slack"
    return path if path.exists() else None
