"""Gates of co-restarts: the time between a service being well, by its own clock, and the next one being told to stop.

    .venv/bin/python -m bench.gates [--co-restarts 5] [--shell-restarts 5]

clawback's worker carries out real changes over SSH on the demo fleet. Beside it, in turns on the same fleet, runs a
shell loop on the host itself: restart, ask the health endpoint every 1 s (or 5 s) until it answers 200, go on. The loop
checks nothing else and has no SSH in its way. Its first questions are spread evenly over the period.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

from policies import events as e
from policies.evidence import Summary
from policies.intents import Act, Actor, Intent, RestoreKnob, RevertKnob, Where
from policies.recording import typed
from sandbox.clock import Life, lives
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.fleet import ROLES, DemoFleet, Engines
from sandbox.fleet.units import unit_name
from workers.execute import execute
from workers.live import EmbeddedStore
from workers.prepare import prepare
from workers.wiring import Wiring, open_wiring

ANA = Actor(id="U01ANA", roles=("engineers",))
BEN = Actor(id="U02BEN", roles=("engineers", "approvers"))
HERE = Where(channel="C1")
ORDER = "co-restart"
BOOT_S = {"prefill": 0.6, "decode": 0.8, "router": 0.2}
PERIODS_S = (1.0, 5.0)
GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, fill the range evenly however many are taken
# one turn of the loop; $1 unit, $2 address, $3 seconds before the first question, $4 between questions
TURN = """systemctl --user restart "$1"; sleep "$3"
until curl -fs -o /dev/null --max-time 25 "$2"; do sleep "$4"; done
"""


@dataclass(slots=True)
class Times:
    """Of one way. Units: seconds."""

    noticed: list[float] = field(default_factory=list)  # well -> the host saw it (clawback only)
    gaps: list[float] = field(default_factory=list)  # well -> the next service is told to stop
    whole: list[float] = field(default_factory=list)  # first stop -> last service well


class Bench:
    """One fleet and one worker."""

    def __init__(self, fleet: DemoFleet, wiring: Wiring) -> None:
        self.fleet = fleet
        self.wiring = wiring
        self.turns = 0

    def by_clawback(self, intent: Intent, times: Times) -> None:
        """One change, from the approval to its end."""
        client = self.wiring.client
        change_id = client.request(intent, ANA, HERE, said="said", normalised="read")
        prepare(self.wiring, change_id)
        planned = client.change(change_id).planned
        if planned is None:
            raise SystemExit(f"{change_id} was not planned: {client.change(change_id).last}")
        digest = next(plan.digest for plan in planned.plans if plan.order == ORDER)
        client.act(Act(kind="confirm", change=change_id, order=ORDER, digest=digest), BEN)
        since = self.counts()
        execute(self.wiring, change_id)
        change = client.change(change_id)
        if change.state != "succeeded":
            raise SystemExit(f"{change_id} is {change.state}: {change.last}")
        self.measure(since, times)
        for entry in client.entries(change_id):
            event = entry.event
            if isinstance(event, e.GatePassed) and event.gate == "health" and event.host_at is not None:
                role = event.instance.split("@")[0]
                times.noticed.append(event.host_at - well(self.lives(role)[-1]))

    def by_shell(self, period_s: float, times: Times) -> None:
        """The loop of an operator, on the host."""
        since = self.counts()
        turns = []
        for role in ROLES:
            path = "/readiness" if role == "router" else "/health"
            self.turns += 1
            first_s = self.turns * GOLDEN % 1.0 * period_s
            words = [unit_name(role), self.fleet.url(role, path), f"{first_s:.3f}", f"{period_s:g}"]
            turns.append(f"set -- {shlex.join(words)}\n{TURN}")
        done = self.fleet.host("decode").manager.run(["/bin/sh", "-c", "".join(turns)], timeout_s=120)
        if done.returncode != 0:
            raise SystemExit(f"the loop ended with {done.returncode}: {done.stderr}")
        self.measure(since, times)

    def lives(self, role: str) -> list[Life]:
        """By the service's own clock."""
        return lives(self.fleet.events(role))

    def counts(self) -> dict[str, int]:
        """Lives so far."""
        return {role: len(self.lives(role)) for role in ROLES}

    def measure(self, since: dict[str, int], times: Times) -> None:
        """Read the gaps of one co-restart from the services' clocks."""
        for before, after in pairwise(ROLES):
            new, old = self.lives(before)[-1], self.lives(after)[since[after] - 1]
            times.gaps.append((old.told_to_stop or 0.0) - well(new))
        first = self.lives(ROLES[0])[since[ROLES[0]] - 1]
        times.whole.append(well(self.lives(ROLES[-1])[-1]) - (first.told_to_stop or 0.0))


def well(life: Life) -> float:
    """When the service would first have answered 200.

    An engine knows that itself. A router is told its state only with its first 200, as it waits for its workers.
    """
    found = life.healthy if life.read is not None else life.answered
    if found is None:
        raise SystemExit(f"process {life.pid} was never healthy")
    return found


def quantile(times: Sequence[float], share: float) -> str:
    """The time below which this share of them lies."""
    ordered = sorted(times)
    return f"{ordered[max(0, round(share * len(ordered)) - 1)]:.2f}" if ordered else "-"


def main(argv: list[str] | None = None) -> int:
    """Measure in turns and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.gates", description="the time that gates cost")
    parser.add_argument("--co-restarts", type=int, default=5)
    parser.add_argument("--shell-restarts", type=int, default=5, help="of each period")
    told = parser.parse_args(argv)
    ours = Times()
    loops = {period_s: Times() for period_s in PERIODS_S}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cb-gates-")))
        store = stack.enter_context(EmbeddedStore(folder / "data"))
        engines = Engines(env={"decode": {KNOB_ENV: "512"}})
        fleet = stack.enter_context(DemoFleet(folder / "fleet", boot_s=BOOT_S, timing={"bake": "0s"}, engines=engines))
        wiring = open_wiring(fleet_file=fleet.fleet_yaml, redis_url=store.url, ssh_keys=[fleet.ssh_key])
        stack.callback(wiring.redis.close)
        stack.callback(wiring.shell.close)
        points = ({"concurrency": 64, "ratio": 1.128},)
        summary = Summary.model_validate({"knob": KNOB, "value": "512", "points": points})
        wiring.client.record_evidence(typed(summary, "typed", "0" * 64), by=ANA.id)
        bench = Bench(fleet, wiring)
        work: list[Callable[[], None]] = []
        for number in range(max(told.co_restarts, told.shell_restarts)):
            if number < told.co_restarts:
                work.append(lambda n=number: bench.by_clawback(intent(n), ours))  # type: ignore[misc]  # mypy infers no lambda with defaults
            if number < told.shell_restarts:
                work += [lambda p=p, t=t: bench.by_shell(p, t) for p, t in loops.items()]  # type: ignore[misc]  # as above
        for one in work:
            one()
    table = Table("s, median / p90", "gates", "well -> host saw it", "well -> next stop", "whole co-restart, median")
    ways = {"clawback": ours, **{f"shell loop, every {p:g} s": t for p, t in loops.items()}}
    for name, times in ways.items():
        noticed, gaps = (f"{quantile(t, 0.5)} / {quantile(t, 0.9)}" for t in (times.noticed, times.gaps))
        whole = f"{statistics.median(times.whole):.1f}" if times.whole else "-"
        table.add_row(name, str(len(times.gaps)), noticed, gaps, whole)
    Console(width=110).print(table)
    return 0


def intent(number: int) -> Intent:
    """Take the value away and give it back, in turns."""
    if number % 2 == 0:
        return RevertKnob(knob=KNOB, because="bench")
    return RestoreKnob(knob=KNOB, value="512")


if __name__ == "__main__":
    sys.exit(main())
