"""Random metrics of an engine and its router, twice: no state is claimed that a completion of the unknown denies."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.states.judge import Look, judge_state
from tests.policies import state_oracle as oracle
from tests.policies.builders import NOW
from tests.policies.scrapes import scrape

OWN = {
    "running": 'sglang:num_running_reqs{engine_type="decode",tp_rank="%d"}',
    "queued": 'sglang:num_queue_reqs{engine_type="decode",tp_rank="%d"}',
    "prealloc": 'sglang:num_decode_prealloc_queue_reqs{engine_type="decode",tp_rank="%d"}',
    "transfer": 'sglang:num_decode_transfer_queue_reqs{engine_type="decode",tp_rank="%d"}',
    "http": 'sglang:http_requests_active{endpoint="/generate",rank="%d"}',
}
COUNTERS = {
    "generated": 'sglang:generation_tokens_total{engine_type="decode",tp_rank="%d"}',
    "prompts": 'sglang:prompt_tokens_total{engine_type="decode",tp_rank="%d"}',
}


def look(r: Random, time: float, start: float | None, calm: float) -> oracle.Look:
    """Readings of one moment; calm: how likely one is 0."""
    return {
        "time": time,
        "start": start,
        "own": {name: reading(r, calm) for name in OWN},
        "router": {"router": reading(r, calm)},
        "counters": {name: r.choice((0, 100)) for name in COUNTERS if r.random() < 0.9},
    }


def reading(r: Random, calm: float) -> int | None:
    if r.random() < 0.08:
        return None
    return 0 if r.random() < calm else r.choice((1, 37, 39))


def later(r: Random, before: oracle.Look, calm: float) -> oracle.Look:
    """The same engine some time after; mostly of the same process."""
    gap = r.choice((0.0, 0.5, 5.0, 29.0, 30.0, 60.0))
    same = r.random() < 0.9
    found = look(r, before["time"] + gap, before["start"] if same else r.choice((None, NOW - 3)), calm)
    if same:
        gained = r.choice((0, 0, 0, 7))
        found["counters"] = {name: value + gained for name, value in before["counters"].items()}
    if r.random() < 0.5:
        found["own"] = dict(before["own"])
    return found


def look_of(given: oracle.Look, ranks: int) -> Look:
    """As a server would export it, each rank repeating the same."""
    lines = [f"process_start_time_seconds {given['start']}"] if given["start"] is not None else []
    for families, values in ((OWN, given["own"]), (COUNTERS, given["counters"])):
        for name, value in values.items():
            count = 1 if name == "http" else ranks
            lines += [f"{families[name] % rank} {value}" for rank in range(count) if value is not None]
    lines.append("up_and_running 1")
    router = given["router"]["router"]
    text = f'smg_worker_requests_active{{worker="a"}} {router}\n' if router is not None else "up_and_running 1\n"
    at = given["time"] - NOW
    return Look(scrape("\n".join(lines) + "\n", at), (scrape(text, at, "router@gpu1"),))


def test_no_state_is_claimed_that_trying_everything_denies() -> None:
    met: Counter[str] = Counter()

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**64))
    def cases(seed: int) -> None:
        r = Random(seed)
        for _ in range(12):
            calm, ranks = r.choice((0.5, 0.9, 1.0)), r.choice((1, 2))
            before = look(r, NOW - 60, r.choice((NOW - 78_000, NOW - 78_000, None)), calm)
            now = later(r, before, calm)
            first = before if r.random() < 0.9 else None
            found = judge_state(
                look_of(first, ranks) if first is not None else None, look_of(now, ranks), role="decode"
            )
            assert set(found.possible) == oracle.possible(first, now), (first, now, found.findings)
            assert bool(found.findings) is (len(found.possible) > 1)
            met[found.word] += 1

    cases()
    assert min(met[word] for word in ("idle", "busy", "hung", "saturated", "not_proven")) >= 5, met
