"""Random readings, windows and statements: no cause is ever printed that a second opinion does not support."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.causes import cause_line
from policies.causes.claim import Claim
from policies.causes.judge import judge
from policies.causes.last_change import Blamed, judge_change
from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.statement import Metric, StateWord
from policies.causes.statement import Statement as Tree
from policies.causes.truth import truth_of
from policies.causes.window import Window
from policies.citation import Citation
from policies.finding import Finding
from policies.metrics.measured import Measured, Reading
from policies.states.state import State
from tests.policies import cause_oracle as oracle

METRICS = ("queue", "ttft", "tokens")
COUNTERS = ("tokens",)
STATES: tuple[StateWord, ...] = get_args(StateWord)
VALUES = (0.0, 1.0, 2.0, 5.0, 9.5, 10.0)
NOW = 1000.0
A_SEED = 40  # cases: what is drawn from a seed is cheap, what Hypothesis draws is not
SEEDS = settings(max_examples=40, deadline=None)

Claimed = tuple[oracle.Statement, oracle.Statement | None]


def statement(r: Random, depth: int = 0) -> oracle.Statement:
    """One atom, or up to eight joined."""
    kind = r.choice(["cmp", "cmp", "cmp", "trend", "state", *(["not", "and", "or"] if depth < 3 else [])])
    match kind:
        case "cmp":
            return ("cmp", r.choice(METRICS), r.choice(sorted(oracle.OPS)), r.choice(VALUES))
        case "trend":
            return ("trend", r.choice(METRICS), r.choice(("falling", "rising")))
        case "state":
            return ("state", r.choice(STATES))
        case "not":
            return ("not", statement(r, depth + 1))
        case _:
            return (kind, statement(r, depth + 1), statement(r, depth + 1))


def written(of: oracle.Statement) -> str:
    """The text that a person would write."""
    match of:
        case ("cmp", metric, op, number):
            return f"{metric} {op} {number}"
        case ("trend", metric, way):
            return f"{metric} {way}"
        case ("state", word):
            return f"state == {word}"
        case ("not", part):
            return f"not ({written(part)})"
        case (word, *parts):
            return f" {word} ".join(f"({written(part)})" for part in parts)
    raise AssertionError(of)


def window(r: Random, end: float) -> oracle.Window:
    """Readings at the ends, inside, outside, late, in part, missing; or all of them there and at rest."""
    start = end - r.choice((10.0, 60.0, 400.0))
    calm = r.random() < 0.5
    readings: dict[str, Any] = {}
    for metric in METRICS:
        level = r.choice(VALUES)
        places = (end, start, (start + end) / 2, end - 1, end - 130, start - 5, end + 1)
        found = [_reading(r, r.choice(places)) for _ in range(r.randint(0, 4))]
        readings[metric] = [(end - n, level, level, False) for n in (2, 1, 0)] if calm else sorted(found)
    some = set(r.sample(STATES, r.choice((1, 1, 2, 3))))
    return {
        "start": start,
        "end": end,
        "started": r.choice((None, None, start - 5, start + 1, end - 2.5)),
        "state": some if calm or r.random() < 0.7 else None,
        "readings": readings,
        "counters": COUNTERS,
    }


def _reading(r: Random, at: float) -> tuple[float, float, float, bool]:
    least = r.choice(VALUES)
    most = least + r.choice((0.0, 0.0, 0.0, 2.0))
    return (at, least, most, most == least and r.random() < 0.1)


def given_to_the_product(of: oracle.Window) -> Window:
    """The same window, in the product's own types."""
    start, end = of["start"], of["end"]
    measured = {}
    for metric, readings in of["readings"].items():
        query = f"sum({metric}_total)" if metric in COUNTERS else f"sum({metric})"
        measured[metric] = Measured(
            name=metric, query=query, unit="", source="s", start=start, end=end,
            readings=tuple(Reading(at=t, value=v, most=m, beyond=b) for t, v, m, b in readings),
            problem=None if readings else Finding(code="metrics.missing", effect="warn"),
        )  # fmt: skip
    state = None
    if of["state"] is not None:
        unread = Finding(code="state.unread", effect="note", values={"readings": "HTTP active"})
        cited = Citation(query="q", value=0, unit="", time=end, source="s")
        state = State(possible=tuple(sorted(of["state"])), citations=(cited,), findings=(unread,))
    return Window(start, end, measured, state, of["started"])


def tree(of: oracle.Statement) -> Tree:
    found = read_statement(written(of))
    assert not isinstance(found, Malformed), (written(of), found)
    return found


def claims(r: Random) -> list[Claimed]:
    """The first is judged, the others are its rivals."""
    return [(statement(r), statement(r) if r.random() < 0.4 else None) for _ in range(r.choice((1, 1, 1, 2, 3)))]


def _claim(number: int, needs: oracle.Statement, against: oracle.Statement | None) -> Claim:
    refuted_by = tree(against) if against is not None else None
    return Claim(tree(needs), refuted_by, f"claim-{number}", "what was claimed")


@SEEDS
@given(st.integers(0, 2**64))
def test_the_truth_of_a_statement_is_what_trying_everything_gives(seed: int) -> None:
    r = Random(seed)
    words = {(True,): "holds", (False,): "fails", (False, True): "unknown"}
    for _ in range(A_SEED):
        what, where = statement(r), window(r, NOW)
        found = truth_of(tree(what), given_to_the_product(where))
        assert found.word == words[tuple(sorted(oracle.answers(what, where)))], (what, where)
        assert bool(found.why) is (found.word == "unknown")


def test_no_cause_is_printed_that_the_second_opinion_does_not_support() -> None:
    met: Counter[str] = Counter()

    @SEEDS
    @given(st.integers(0, 2**64))
    def cases(seed: int) -> None:
        r = Random(seed)
        for _ in range(A_SEED):
            effect = window(r, NOW + r.choice((0.0, 0.0, 0.0, -1.0, 1.0)))
            baseline = window(r, NOW - r.choice((500, 500, 500, 10, 0))) if r.random() < 0.8 else None
            claimed = claims(r)
            judged, *rivals = [_claim(number, *one) for number, one in enumerate(claimed)]
            before = given_to_the_product(baseline) if baseline is not None else None
            verdict = judge(judged, given_to_the_product(effect), before, (judged, *rivals), NOW)
            expected = oracle.word(*claimed[0], effect, baseline, claimed[1:], NOW)
            assert verdict.word == expected, (claimed, effect, baseline)
            line = cause_line(verdict)
            assert line.startswith("cause: *claim-0*") is (expected == "verified")
            assert ("claim-0" in line) is (expected in {"verified", "consistent"})
            met[expected] += 1

    cases()
    # a run that never meets a verified cause says nothing about printing one
    assert min(met[word] for word in ("verified", "consistent", "refuted", "unverified")) >= 10, met


def _loaded(r: Random, end: float, *, plain: bool) -> oracle.Window:
    """A window with the requests that ran in it."""
    found = window(r, end)
    level = r.choice((50.0, 50.0, 60.0) if plain else (50.0, 60.0, 10.0))
    times = (end - 3, end - 2, end - 1) if plain or r.random() < 0.9 else ()
    beyond = not plain and r.random() < 0.1
    found["readings"]["load"] = [(at, level + n, level + n, beyond) for n, at in enumerate(times)]
    return found


def test_no_change_is_blamed_that_the_second_opinion_does_not_blame() -> None:
    met: Counter[str] = Counter()

    @SEEDS
    @given(st.integers(0, 2**64))
    def cases(seed: int) -> None:
        r = Random(seed)
        for _ in range(A_SEED):
            plain = r.random() < 0.4  # one that came and went at one load, as far as chance allows
            effect = statement(r, 2) if r.random() < 0.95 else None
            must = statement(r, 2) if not plain and r.random() < 0.2 else None
            after = _loaded(r, NOW - 450 + (0 if plain else r.choice((0, 0, 0, 0, 451))), plain=plain)
            before = _loaded(r, NOW - r.choice((900, 900, 900, 460)), plain=plain) if r.random() < 0.9 else None
            again = _loaded(r, NOW - r.choice((1, 1, 1, 440, -1)), plain=plain) if r.random() < 0.9 else None
            others = r.choice(((), (), (), None, ("C-7",)))
            rivals = claims(r)[1:] if r.random() < 0.5 else []
            if plain or r.random() < 0.2:
                effect = ("cmp", "queue", ">", 5.0)
                for one, levels in ((after, (9.5, 9.5, 5.0)), (before, (0.0, 1.0, 9.5)), (again, (0.0, 1.0, 9.5))):
                    if one is not None:
                        level = r.choice(levels)
                        one["readings"]["queue"] = [(one["end"] - n, level, level, False) for n in (2, 1, 0)]
            verdict = judge_change(
                Blamed(
                    "C-142",
                    tree(effect) if effect is not None else None,
                    given_to_the_product(after),
                    given_to_the_product(before) if before is not None else None,
                    given_to_the_product(again) if again is not None else None,
                    others,
                    (Metric("load"),),
                    [_claim(number, *one) for number, one in enumerate(rivals)],
                    tree(must) if must is not None else None,
                ),
                NOW,
            )
            expected = oracle.change_word(effect, must, (after, before, again), others, rivals, NOW)
            assert verdict.word == expected, (effect, must, after, before, again, others, rivals)
            line = cause_line(verdict)
            assert line.startswith("cause: *C-142*") is (expected == "verified")
            assert ("C-142" in line) is (expected in {"verified", "consistent"})
            met[expected] += 1

    cases()
    assert min(met[word] for word in ("verified", "consistent", "refuted", "unverified")) >= 10, met
