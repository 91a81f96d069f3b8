"""`clawback bot`, `clawback worker`, `clawback narrator`: one role in one process, until SIGTERM."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import click
import structlog
from pydantic import SecretStr

from bot.settings import Settings, read_settings
from policies.errors import SettingsError, StoreUnavailable
from workers.health import beat, leave
from workers.queue import QUEUES, serve
from workers.stores import store_url
from workers.ticks import ticking
from workers.wiring import Wiring, open_wiring

PR_SET_PDEATHSIG = 1
TICK_S = 0.5
SWEEP_END_S = 1.0  # a sweep that waits for a store which is away does not keep the bot from ending
EAR_TIMEOUT_S = 1.5  # Slack waits 3 s for an acknowledgement; Redis gets half of that

Child = click.option("--parent", type=int, hidden=True, help="End when the process with this id ends.")


@click.command(name="bot")
@click.option("--http", is_flag=True, help="HTTP mode: Slack's requests come to CLAWBACK_HTTP.")
@Child
def bot(parent: int | None, *, http: bool) -> None:
    """Listen to Slack; record and acknowledge what people say.

    By Socket Mode, or by HTTP when --http is given or SLACK_SIGNING_SECRET is set without SLACK_APP_TOKEN.
    """
    settings = begin("bot", parent)
    settings.listens_by(http=http)

    from bot.listening import listen  # only this role pays for Bolt

    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    url = store_url(settings.redis_url, settings.clawback_data)
    wiring = wire(settings, url)
    # whoever is there rings for what nobody does: a bot alone, too
    with ticking(wiring.sweep, join_s=SWEEP_END_S):
        code = listen(settings, wiring, impatient(url), ending, http=http)
    sys.stdout.flush()
    # a watchdog that fired must not wait for the threads that it fired about
    os._exit(code)


@click.command(name="worker")
@click.option("--queue", "queues", multiple=True, type=click.Choice([q for q in QUEUES if q != "narrate"]))
@Child
def worker(queues: tuple[str, ...], parent: int | None) -> None:
    """Plan and answer (queue `ask`), act on hosts (queue `act`); both where no queue is named."""
    chosen = queues or ("ask", "act")
    settings = begin("worker", parent)
    wiring = wire(settings, store_url(settings.redis_url, settings.clawback_data))
    settings.must_log_in()
    _ = wiring.shell  # a key file that cannot be read is said now and not when the first change waits for it
    table: dict[str, Callable[[str], object]] = dict(wiring.table)
    ticks: list[Callable[[], object]] = [beating(wiring, chosen), wiring.sweep]
    if "ask" in chosen:
        from bot.jobs import Jobs

        jobs = Jobs(wiring, settings)
        table["hear"] = jobs.table["hear"]
        ticks += [jobs.hear_again, wiring.slow_tick, wiring.watch, wiring.drift, wiring.silences, wiring.remeasure]
    try:
        serve(wiring.redis, chosen, table, name=f"worker-{'-'.join(chosen)}", tick=all_of(ticks))
    finally:
        wiring.close()
    with suppress(StoreUnavailable):  # then the beat fades by itself
        leave(wiring.redis, chosen, wiring.name)


@click.command(name="narrator")
@Child
def narrator(parent: int | None) -> None:
    """Draw the ledger into threads and cards."""
    settings = begin("narrator", parent)
    wiring = wire(settings, store_url(settings.redis_url, settings.clawback_data))

    from bot.jobs import Jobs, NarratorTick

    jobs = Jobs(wiring, settings)
    serve(
        wiring.redis,
        ("narrate",),
        {"draw": jobs.table["draw"]},
        name="narrator",
        tick=all_of([beating(wiring, ("narrate",)), wiring.sweep, NarratorTick(jobs.narrator, jobs.asides)]),
        tick_s=TICK_S,
    )


def begin(role: str, parent: int | None) -> Settings:
    """What every role starts with: settings, the log, and its end when its parent ends."""
    if parent is not None:
        end_with(parent)
    set_up_log()
    settings = read_settings()
    structlog.get_logger("clawback").info("started", role=role, pid=os.getpid())
    return settings


def wire(settings: Settings, url: SecretStr) -> Wiring:
    """The parts, put together for one process."""
    return open_wiring(
        fleet_file=settings.fleet_file(),
        redis_url=url,
        ssh_keys=settings.ssh_keys,
        ssh_agent=settings.clawback_ssh_agent,
        known_hosts=settings.clawback_known_hosts,
    )


def end_with(parent: int) -> None:
    """Have the kernel send SIGTERM when the parent dies, however it dies. Linux only; elsewhere nothing happens.

    Raises: SettingsError when the parent is gone already.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise SettingsError(f"the parent {parent} has ended", hint="start `clawback up` again")


def set_up_log() -> None:
    """One JSON object a line on stderr, with the time and without anything secret."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(name)s %(levelname)s %(message)s"
    )


def impatient(url: SecretStr) -> SecretStr:
    """The address of Redis with a limit on each wait, for those who must answer Slack in time."""
    text = url.get_secret_value()
    return SecretStr(f"{text}{'&' if '?' in text else '?'}socket_timeout={EAR_TIMEOUT_S}")


def beating(wiring: Wiring, queues: tuple[str, ...]) -> Callable[[], object]:
    """A tick that says which queues this process works on."""
    return lambda: beat(wiring.redis, queues, wiring.name)


def all_of(ticks: list[Callable[[], object]]) -> Callable[[], None]:
    """One tick that does all of them; the first that fails ends this turn."""

    def tick() -> None:
        for one in ticks:
            one()

    return tick
