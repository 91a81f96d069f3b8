"""`clawback up`: bot, workers, narrator and archive in one process tree, with an own Valkey unless REDIS_URL is set."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import click
import structlog
from pydantic import SecretStr

from bot.cli.roles import set_up_log
from bot.settings import read_settings
from policies.errors import OpsError, StoreUnavailable
from workers.live import EmbeddedStore
from workers.wiring import load_fleet

log = structlog.get_logger("clawback")

ROLES: tuple[tuple[str, ...], ...] = (
    ("bot",),
    ("worker", "--queue", "ask"),
    ("worker", "--queue", "ask"),
    ("worker", "--queue", "act"),
    ("worker", "--queue", "act"),
    ("narrator",),
    ("archive",),
)
# the longest leaves time to start within the 15 s in which somebody has to go on, also when every worker died at once
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
STEADY_S = 60.0  # a child that lived for so long starts its pauses anew
SECOND_S = 1.0
STOP_S = 20.0
LOOK_S = 0.2
RUN = "from bot.cli import main; main()"


@dataclass(slots=True)
class Child:
    """One role. `due` is when it starts (again), on the monotonic clock; `deaths` since it was last steady."""

    role: tuple[str, ...]
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    due: float = 0.0
    deaths: int = 0
    codes: list[int] = field(default_factory=list)


class Tree:
    """Children that are started again when they end, until all of them are ended together."""

    def __init__(self, roles: tuple[tuple[str, ...], ...], env: dict[str, str]) -> None:
        # all at once they would keep each other from listening: people wait for one of each, not for the second
        later = time.monotonic() + SECOND_S
        self._children = [
            Child(role, due=later if role in roles[:number] else 0.0) for number, role in enumerate(roles)
        ]
        self._env = env
        self._store_began = 0.0
        self._store_due = 0.0
        self._store_deaths = 0

    def run(self, ending: threading.Event, store: EmbeddedStore | None = None) -> None:
        """Keep everything running until `ending`, then end it. Call from the main thread.

        The kernel ends the children of a thread with that thread, so they are started here and nowhere else.
        """
        try:
            while not ending.is_set():
                if store is not None and not store.alive:
                    self._revive(store)
                for child in self._children:
                    self._look(child)
                ending.wait(LOOK_S)
        finally:
            self.stop()

    def _revive(self, store: EmbeddedStore) -> None:
        """Start the store again, for as long as it takes, with pauses when it does not start or does not live long.

        The roles wait for it meanwhile, and the bot tells people that nothing is recorded.
        """
        now = time.monotonic()
        if now < self._store_due:
            return
        self._store_deaths = 1 if now - self._store_began > STEADY_S else self._store_deaths + 1
        pause_s = pause_after(self._store_deaths)
        log.warning("valkey ended and is started again")
        try:
            store.revive()
        except OpsError as error:
            log.error("valkey does not start", error=error.message, hint=error.hint, again_in_s=pause_s)  # noqa: TRY400 - no fault of ours
        self._store_began = time.monotonic()
        self._store_due = self._store_began + pause_s

    def stop(self) -> None:
        """SIGTERM to everybody, SIGKILL to those who stay."""
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + STOP_S
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _look(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is not None:
            code = child.process.poll()
            if code is None:
                return
            child.process = None
            child.codes = [*child.codes[-9:], code]
            child.deaths = 1 if now - child.began > STEADY_S else child.deaths + 1
            pause_s = pause_after(child.deaths)
            child.due = now + pause_s
            log.warning("ended", role=" ".join(child.role), code=code, again_in_s=pause_s)
        if now >= child.due:
            self._start(child)

    def _start(self, child: Child) -> None:
        command = [sys.executable, "-c", RUN, *child.role, "--parent", str(os.getpid())]
        child.process = subprocess.Popen(command, env=self._env, stdin=subprocess.DEVNULL)
        child.began = time.monotonic()
        log.info("starts", role=" ".join(child.role), pid=child.process.pid)


def pause_after(deaths: int) -> float:
    """Seconds to wait after so many deaths in a row, one or more."""
    return PAUSES_S[min(deaths, len(PAUSES_S)) - 1]


@click.command(name="up")
def command() -> None:
    """Run everything until SIGTERM or Ctrl-C."""
    set_up_log()
    settings = read_settings()
    # said here once, before six children say it
    settings.must_be_complete()
    settings.listens_by()
    load_fleet(settings.fleet_file())
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    with ExitStack() as stack:
        env = dict(os.environ)
        store = None
        if settings.redis_url is None:
            store = stack.enter_context(EmbeddedStore(settings.clawback_data))
            env["REDIS_URL"] = store.url
            log.info("valkey runs", folder=str(settings.clawback_data))
        must_go_on(SecretStr(env["REDIS_URL"]), settings.archive_folder)
        Tree(ROLES, env).run(ending, store)
    log.info("ended", role="up")


def must_go_on(url: SecretStr, folder: Path) -> None:
    """The ledger is not behind its own archive: what is appended to one that lost entries could never be joined again.

    Raises: ArchiveBroken. A store that is away is waited for by the roles, and an archive in use says so itself.
    """
    from workers.archive.check import last_of
    from workers.archive.follow import other_chain
    from workers.store import connect

    seq, digest = last_of(folder)
    try:
        with connect(url) as client:
            problem = other_chain(seq, digest, client)
    except StoreUnavailable as error:
        log.warning("store is away", error=error.message)
        return
    if problem is not None:
        raise problem
