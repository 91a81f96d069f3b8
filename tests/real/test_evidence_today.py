"""Evidence that is held against engines as they run: recorded from result files with the server's own words."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from policies import events as e
from policies.evidence import Draft
from policies.intents import SetKnob
from policies.recording import Terms, from_results
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.load import Load
from tests.policies.test_recording import given
from tests.real.stage import Stage, until

pytestmark = pytest.mark.real
A = (1000.0, 1010.0, 995.0, 1004.0)
B = (1001.0, 1011.0, 996.0, 1003.0)
RUNNING = 4


def server_info(stage: Stage) -> dict[str, Any]:
    """What decode says of itself, as a benchmark writes it into its results; without what the knob was then."""
    with urllib.request.urlopen(stage.fleet.url("decode", "/server_info"), timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
    found["internal_states"] = []
    return found


def measured(stage: Stage, **context: str) -> Draft:
    """No worse at 1, 8 and 64 clients, on this very server."""
    info = server_info(stage)
    told = {"gpu": "RTX PRO 6000", "gpus": "1", "topology.prefill": "1", "topology.decode": "1", **context}
    a, b = (
        [given(f"{arm}{c}.jsonl", values, c, server_info=info) for c in (1, 8, 64)]
        for arm, values in (("a", A), ("b", B))
    )
    terms = Terms(knob=KNOB, value="600", baseline="512", variable=KNOB_ENV, interleaved=True, context=told,
                  correctness="0/200")  # fmt: skip
    return from_results(a, b, terms)


def test_what_was_measured_on_this_very_server_lets_a_value_through(stage: Stage) -> None:
    record = stage.w.client.record_evidence(measured(stage), by="U01ANA")
    assert record.klass == "no_worse"
    with Load(stage.fleet.url("router"), RUNNING, 200):
        until(lambda: running(stage) >= 1, "requests run")
        change = stage.ask(SetKnob(knob=KNOB, value="600"))
    assert change.state == "planned", stage.codes(change)
    assert change.planned is not None
    (standing,) = change.planned.standings
    assert (standing.record, standing.word) == (record.id, "valid")
    assert change.planned.load_seen is not None
    assert 1 <= change.planned.load_seen.high <= RUNNING


@pytest.mark.parametrize(
    ("context", "word"),
    [({"gpu": "H200"}, "invalid"), ({"topology.decode": "3"}, "invalid"), ({"gpus": "8"}, "invalid")],
)
def test_what_was_measured_elsewhere_does_not(stage: Stage, context: dict[str, str], word: str) -> None:
    stage.w.client.record_evidence(measured(stage, **context), by="U01ANA")
    change = stage.ask(SetKnob(knob=KNOB, value="600"))
    assert change.state == "refused"
    event = stage.events(change)[-1]
    assert isinstance(event, e.Refused)
    assert [(f.code, f.values.get("standing")) for f in event.findings if f.effect == "refuse"] == [
        ("evidence.not-valid", word)
    ]


def running(stage: Stage) -> float:
    """Requests that decode runs."""
    with urllib.request.urlopen(stage.fleet.url("decode", "/metrics"), timeout=10) as answer:
        text = answer.read().decode()
    line = next(line for line in text.splitlines() if line.startswith("sglang:num_running_reqs"))
    return float(line.split()[-1])
