"""Random metrics texts through `clawback cause check`: what it prints as a cause, a second opinion supports."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.cli import main
from tests.bot.dumps import EPOCH, EXAMPLE
from tests.policies import cause_oracle, state_oracle
from tests.policies.test_cause_oracle import written

FAMILIES = {"running": "num_running_reqs", "queued": "num_queue_reqs"}
METRICS = """metrics:
  queue: {on: decode, query: "sum(max by (instance, dp_rank) (sglang:num_queue_reqs))", unit: requests}
  running: {on: decode, query: "max(sglang:num_running_reqs)", unit: requests}
  uptime: {on: decode, query: "time() - process_start_time_seconds", unit: s}
"""
NUMBERS = {"queue": (0.0, 1.0, 5.0), "running": (0.0, 1.0, 5.0), "uptime": (60.0, 600.0)}
STATES = ("idle", "busy", "hung", "saturated")


def moment(r: Random, at: float, before: state_oracle.Look | None, calm: float) -> state_oracle.Look:
    """What an engine without a queue of a pair, and its router, would tell at a time."""
    start = before["start"] if before is not None and r.random() < 0.9 else r.choice((EPOCH - 40, EPOCH - 9000, None))
    counted = before["counters"]["generated"] if before is not None and start == before["start"] else 100
    own = {name: None if r.random() < 0.08 else 0 if r.random() < calm else r.choice((1, 5)) for name in FAMILIES}
    if before is not None and r.random() < 0.6:
        own = {name: before["own"][name] for name in FAMILIES}
    own["http"] = r.choice((0, 0, 0, 2, None))
    return {
        "time": at,
        "start": start,
        "own": own,
        "router": {"router": r.choice((0, 0, 0, 3, None))},
        "counters": {"generated": counted + r.choice((0, 0, 7))},
    }


def text_of(look: state_oracle.Look, ranks: int) -> str:
    """As it would be scraped."""
    lines = [f"process_start_time_seconds {look['start']}"] if look["start"] is not None else []
    values = {f"sglang:{family}": look["own"][name] for name, family in FAMILIES.items()}
    for family, value in (*values.items(), ("sglang:generation_tokens_total", look["counters"]["generated"])):
        lines += [f'{family}{{engine_type="unified",tp_rank="{k}"}} {value}' for k in range(ranks) if value is not None]
    if look["own"]["http"] is not None:
        lines.append(f'sglang:http_requests_active{{endpoint="/generate"}} {look["own"]["http"]}')
    if look["router"]["router"] is not None:
        lines.append(f'smg_worker_requests_active{{worker="a"}} {look["router"]["router"]}')
    return "\n".join(lines) + "\n"


def window_of(looks: list[state_oracle.Look]) -> cause_oracle.Window:
    """The same for the second opinion, from the numbers themselves."""

    def readings(of: Any) -> list[tuple[float, float, float, bool]]:
        found = [(look["time"], of(look)) for look in looks]
        return [(at, value, value, False) for at, value in found if value is not None]

    starts = [look["start"] for look in looks if look["start"] is not None]
    return {
        "start": looks[0]["time"],
        "end": looks[-1]["time"],
        "started": max(starts, default=None),
        "state": state_oracle.possible(looks[0] if len(looks) > 1 else None, looks[-1]),
        "readings": {
            "queue": readings(lambda look: look["own"]["queued"]),
            "running": readings(lambda look: look["own"]["running"]),
            "uptime": readings(lambda look: None if look["start"] is None else look["time"] - look["start"]),
        },
        "counters": (),
    }


def statement(r: Random, depth: int = 0) -> cause_oracle.Statement:
    """A small one over the metrics of the fleet file and the state."""
    kind = r.choice(["cmp", "cmp", "cmp", "state", "trend", *(["not", "and", "or"] if depth < 2 else [])])
    match kind:
        case "cmp":
            metric = r.choice(sorted(NUMBERS))
            return ("cmp", metric, r.choice((">", ">=", "<", "==", "!=")), r.choice(NUMBERS[metric]))
        case "trend":
            return ("trend", r.choice(("queue", "running")), r.choice(("falling", "rising")))
        case "state":
            return ("state", r.choice(STATES))
        case "not":
            return ("not", statement(r, depth + 1))
        case _:
            return (kind, statement(r, depth + 1), statement(r, depth + 1))


def fleet_of(causes: list[tuple[cause_oracle.Statement, cause_oracle.Statement | None]]) -> str:
    """The example with these causes."""
    whole = EXAMPLE.read_text(encoding="utf-8")
    head, tail = whole.split("\nmetrics:\n")[0], "\n# Roles." + whole.split("\n# Roles.")[1]
    lines = [METRICS, "causes:"]
    for number, (needs, against) in enumerate(causes):
        entry = {"about": f"what cause {number} is about", "needs": written(needs)}
        entry |= {"refuted_by": written(against)} if against is not None else {}
        lines.append(f"  cause-{number}: {json.dumps(entry)}")
    return "\n".join([head, *lines, "people: {ana: U01, ben: U02}", tail])


def test_what_is_printed_as_a_cause_is_supported_by_the_numbers_in_the_files(tmp_path: Path) -> None:
    met: Counter[str] = Counter()

    def given_files(option: str, looks: list[state_oracle.Look], ranks: int) -> list[str]:
        found = []
        for look in looks:
            path = tmp_path / f"{look['time']}.prom"
            path.write_text(text_of(look, ranks), encoding="utf-8")
            found += [option, f"{path}@{look['time']}"]
        return found

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.integers(0, 2**64))
    def case(seed: int) -> None:
        r = Random(seed)
        plain = r.random() < 0.4  # a case in which something can be established
        calm, ranks, gap = r.choice((0.1,) if plain else (0.2, 0.8, 1.0)), r.choice((1, 2)), r.choice((10.0, 30.0))
        looks: list[state_oracle.Look] = []
        for number in range(r.choice((1, 2, 2, 3))):
            looks.append(moment(r, EPOCH + number * gap, looks[-1] if looks else None, calm))
        before: list[state_oracle.Look] = []
        for number in range(r.choice((0, 1, 1, 2))):
            quiet = 1.0 if plain else r.choice((0.2, 1.0))
            before.append(moment(r, EPOCH - 3000 + number * gap, before[-1] if before else None, quiet))
        causes = [(statement(r), statement(r) if r.random() < 0.3 else None) for _ in range(r.choice((1, 1, 2)))]
        if plain:
            causes[:1] = [(("cmp", r.choice(("queue", "running")), ">", 0.0), None)]
        fleet = tmp_path / "fleet.yaml"
        fleet.write_text(fleet_of(causes), encoding="utf-8")
        arguments = ["--fleet", str(fleet), "--cause", "cause-0", *given_files("--at", looks[:1], ranks)]
        arguments += [*given_files("--then", looks[1:], ranks), *given_files("--baseline", before, ranks)]
        found = CliRunner().invoke(main, ["cause", "check", *arguments])
        baseline = window_of(before) if before else None
        expected = cause_oracle.word(*causes[0], window_of(looks), baseline, causes[1:], looks[-1]["time"])
        assert found.stdout.startswith(f"verdict: {expected} "), (found.output, causes, looks, before)
        states_one = [line for line in found.stdout.splitlines() if line.startswith("cause: cause-0")]
        assert len(states_one) == (expected == "verified")
        assert found.exit_code == (0 if expected in {"verified", "consistent"} else 1)
        met[expected] += 1

    case()
    assert set(met) == {"verified", "consistent", "refuted", "unverified"}, met
