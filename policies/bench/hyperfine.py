"""hyperfine --export-json: each timing of a command is one run, in order. Seconds."""

from __future__ import annotations

from policies.bench.fields import Fields, Wanted
from policies.bench.reader import MOST_RUNS, Counts, Reader, made, names
from policies.bench.run import Load, Run
from policies.bench.source import Key, Located

NAME = "hyperfine"
ARM_MOST = 60


def fits(source: Located) -> bool:
    """`results` with a command and its mean or times each."""
    value = source.value
    if "results" not in names(source) or not isinstance(value, dict):
        return False
    results = value["results"]
    return isinstance(results, list) and any(
        isinstance(r, dict) and "command" in r and ({"times", "mean"} & r.keys()) for r in results
    )


def read(fields: Fields) -> list[Run]:
    """One run a timing; of a command whose timings were not exported, its mean alone."""
    runs: list[Run] = []
    timings = [fields.size("results", index, "times") for index in range(fields.size("results"))]
    if not fields.within(sum(timings) + timings.count(0), MOST_RUNS, "results"):
        return []
    for index in range(fields.size("results")):
        paths: list[tuple[Key, ...]] = [("times", i) for i in range(timings[index])] or [("mean",)]
        for number, path in enumerate(paths):
            one = fields.below("results", index)
            metrics = one.quantities([Wanted(path, "time_s", "s")], needed=frozenset({"time_s"}))
            code = one.raw("exit_codes", number)
            went_well = None if code is None else int(code == 0)
            if went_well == 0:
                one.problem(("exit_codes", number), f"the command ended with {code}, expected 0")
            counts = Counts(completed=went_well, failed=None if went_well is None else 1 - went_well)
            if path == ("mean",):
                one.warnings.append("single timings were not exported: this is their mean")
            # the command may hold keys and addresses, so it is told by its place
            runs += made(NAME, one, Load(), metrics, counts, arm=f"command {index + 1}")
            fields.problems += one.problems
    return runs


READER = Reader(NAME, fits, read)
