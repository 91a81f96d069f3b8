"""`python -m sandbox.crashes`: strike every process at every event of a change, and compare with a calm run."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from policies.errors import OpsError
from sandbox.crashes.matrix import Matrix, all_cells, later, some_cells
from sandbox.crashes.rig import AWAY_S, FAULTS, Fault
from sandbox.crashes.stories import STORIES, Story, story_of
from sandbox.crashes.table import markdown, totals
from sandbox.crashes.verdict import Outcome


def main(argv: Sequence[str] | None = None) -> int:
    """Play the cells: 0 when nothing was lost, doubled or claimed falsely, 1 when something was, 2: it cannot run."""
    told = _arguments(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the services are ended too
    folder = Path(tempfile.mkdtemp(prefix="cb-crash-")).resolve()
    kept = _read(told.log)
    left: list[str] = []
    try:
        for story in STORIES if told.story == "all" else (told.story,):
            matrix = Matrix(
                folder, lambda line: print(line, file=sys.stderr, flush=True), story=story, away_s=told.away_s
            )
            try:
                _play(matrix, told, kept, story)
            finally:
                left += matrix.close()
    except OpsError as error:
        print(f"{error.message} {error.hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        for problem in left:
            print(f"not cleaned up: {problem}", file=sys.stderr)
    if told.table is not None:
        told.table.write_text(markdown(kept), encoding="utf-8")
    good = all(o.good for o in kept)
    counts = totals(kept)
    if told.json:
        print(json.dumps({"totals": counts, "cells": [asdict(o) for o in kept]}, indent=1))
    else:
        print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in counts.items()))
    if good:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"kept: {folder}", file=sys.stderr)
    return int(not good)


def _play(matrix: Matrix, told: argparse.Namespace, kept: list[Outcome], story: Story) -> None:
    cells = all_cells(matrix.calm(), told.faults, told.moments)
    chance = random.Random(told.seed)
    if not told.all:
        cells = some_cells(cells, told.cells, chance)
    cells = later(cells, told.spread_ms, chance)
    done = {(o.cell.fault, o.cell.moment) for o in kept if story_of(o.word) == story}
    for cell in cells:
        if told.log is None or (cell.fault, cell.moment) not in done:
            outcome = matrix.strike(cell)
            kept.append(outcome)
            _append(told.log, outcome)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sandbox.crashes", description=__doc__)
    parser.add_argument("--story", choices=(*STORIES, "all"), default="all", help="which change is played")
    parser.add_argument("--all", action="store_true", help="every fault at every event; some hours")
    parser.add_argument(
        "--cells", type=int, default=len(FAULTS), help="so many, each fault at least once if there is room"
    )
    parser.add_argument("--seed", type=int, default=1, help="which cells, and how long after the event each strikes")
    parser.add_argument("--spread-ms", type=float, default=0.0, help="strike up to so long after each event")
    parser.add_argument("--faults", type=_faults, default=FAULTS, help=f"some of {','.join(FAULTS)}")
    parser.add_argument("--moments", default="", help="only at events whose name holds this")
    parser.add_argument("--away-s", type=float, default=AWAY_S, help="how long Valkey is silent in the column `away`")
    parser.add_argument("--json", action="store_true", help="one JSON document: totals, cells")
    parser.add_argument("--log", type=Path, help="append each cell here, and leave out those that are there already")
    parser.add_argument("--table", type=Path, help="write the table to this file")
    return parser.parse_args(argv)


def _faults(text: str) -> tuple[Fault, ...]:
    chosen = tuple(fault for fault in FAULTS if fault in text.split(","))
    if len(chosen) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"`{text}`: expected some of {','.join(FAULTS)}")
    return chosen


def _read(log: Path | None) -> list[Outcome]:
    if log is None or not log.exists():
        return []
    return [Outcome.of(json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]


def _append(log: Path | None, outcome: Outcome) -> None:
    if log is not None:
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


if __name__ == "__main__":
    sys.exit(main())
