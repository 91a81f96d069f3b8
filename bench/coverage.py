"""Does the judge keep its word: how often a 95 % interval holds the truth, and how often it sees what is not there.

    .venv/bin/python -m bench.coverage [--tries 800] [--cv 1.5] [--drift 4] [--effect 0]

A/Bs are simulated: each run has noise of `cv` percent, and the machine drifts by `drift` percent over the session.
Interleaved runs go AB BA AB ..., blocked runs AAA BBB. The whole judge looks at them, not its formulas alone. "Sweep"
has four loads: the share in which any of them is called an improvement. The simulation is seeded: its numbers are the
same on every machine. "Blocked: interval holds" is what turns are for; a judge that is told of no turns has to find the
drift within the arms to say `weak`.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from policies.abtest.judge import Question, judge
from policies.abtest.judgement import Judgement
from policies.bench.run import Identity, Load, Quantity, Run

SIZES = (2, 3, 5, 10)
SWEEP = (1, 16, 64, 96)
BASE = 1000.0
KNOWN = Identity(model="m", server_version="1")


@dataclass(frozen=True, slots=True)
class World:
    """What is true. Units: fractions."""

    cv: float = 0.015
    drift: float = 0.04
    effect: float = 0.0


@dataclass(frozen=True, slots=True)
class Kept:
    """Shares of all tries, and the mean half width of the interval as a fraction."""

    covered: float
    improved: float
    no_worse: float
    half_width: float


def session(
    draw: random.Random, world: World, n: int, concurrency: int, *, interleaved: bool
) -> tuple[list[Run], list[Run]]:
    """The runs of one A/B at one load, each arm in the order in which it ran."""
    order = (
        [arm for pair in range(n) for arm in ("AB" if pair % 2 == 0 else "BA")] if interleaved else "A" * n + "B" * n
    )
    arms: dict[str, list[Run]] = {"A": [], "B": []}
    for slot, arm in enumerate(order):
        true = BASE * (1 + (world.effect if arm == "B" else 0)) * (1 + world.drift * slot / max(1, 2 * n - 1))
        arms[arm].append(_run(true * draw.gauss(1, world.cv), concurrency, len(arms[arm])))
    return arms["A"], arms["B"]


def _run(value: float, concurrency: int, order: int) -> Run:
    return Run(
        format="vllm-bench-serve",
        load=Load(concurrency=concurrency, request_rate="inf", dataset="random"),
        metrics={"output_throughput": Quantity(value=value, unit="tok/s")},
        completed=1000,
        failed=0,
        identity=KNOWN,
        duration_s=120.0,
        order=order,
    )


def judged(draw: random.Random, world: World, n: int, *, interleaved: bool, loads: Sequence[int] = (64,)) -> Judgement:
    """One simulated A/B, judged."""
    a: list[Run] = []
    b: list[Run] = []
    for load in loads:
        left, right = session(draw, world, n, load, interleaved=interleaved)
        a += left
        b += right
    return judge(a, b, Question(interleaved=interleaved))


def keeps(
    seed: int, tries: int, world: World, n: int, *, interleaved: bool = True, loads: Sequence[int] = (64,)
) -> Kept:
    """Shares over `tries` A/Bs with `n` runs an arm."""
    draw = random.Random(f"{seed} {n} {interleaved} {len(loads)}")
    covered = improved = no_worse = 0
    width = 0.0
    for _ in range(tries):
        found = judged(draw, world, n, interleaved=interleaved, loads=loads)
        point = found.points[0]
        if point.ci_low is not None and point.ci_high is not None:
            covered += point.ci_low <= 1 + world.effect <= point.ci_high
            width += (point.ci_high - point.ci_low) / 2
        capped = any(f.effect == "warn" for f in found.problems)
        improved += not capped and any(p.klass == "improves" for p in found.points)
        no_worse += not capped and all(p.klass in {"improves", "no_worse"} for p in found.points)
    return Kept(covered / tries, improved / tries, no_worse / tries, width / tries)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description="simulated A/Bs and what the judge says of them")
    parser.add_argument("--tries", type=int, default=800)
    parser.add_argument("--cv", type=float, default=1.5, help="noise of a run, percent")
    parser.add_argument("--drift", type=float, default=4.0, help="drift over the session, percent")
    parser.add_argument("--effect", type=float, default=0.0, help="what B is truly better by, percent")
    given = parser.parse_args()
    world = World(given.cv / 100, given.drift / 100, given.effect / 100)
    title = f"{given.tries} A/Bs each, noise {given.cv} %, drift {given.drift} %, true effect {given.effect} %"
    table = Table(title=title)
    for column in (
        "runs per arm",
        "interval holds",
        "half width",
        "improves",
        "no worse",
        "sweep improves",
        "blocked: interval holds",
        "blocked: improves",
    ):
        table.add_column(column, justify="right")
    for n in SIZES:
        turns = keeps(1, given.tries, world, n)
        sweep = keeps(2, max(1, given.tries // 4), world, n, loads=SWEEP)
        blocked = keeps(3, given.tries, world, n, interleaved=False)
        shares = (
            turns.covered,
            turns.half_width,
            turns.improved,
            turns.no_worse,
            sweep.improved,
            blocked.covered,
            blocked.improved,
        )
        table.add_row(str(n), *(f"{share * 100:.1f} %" for share in shares))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
