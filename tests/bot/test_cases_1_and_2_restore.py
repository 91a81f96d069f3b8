"""Two published speed-ups that were none, as a whole: recorded, cited by a restore, and refused with their reasons."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from bot.cards.progress import card
from bot.cards.story import Story
from policies.change import Change
from policies.evidence import Record
from policies.recording import Given, Terms, from_results
from tests.bot.said import Table, decode, fleet_of
from tests.bot.test_cards import texts
from tests.conftest import Store
from tests.policies import builders as b
from tests.policies.test_abtest_cases import again, blocks, swept

RULES = (
    {"match": {"intent": "set"}, "evidence": {"metric": "output_throughput", "at_least": "no_worse"}},
    {"match": {"intent": "restore"}, "evidence": {"metric": "output_throughput", "at_least": "observed"}},
)


def given(name: str, text: str) -> Given:
    return Given(name, text.encode())


def terms(**more: object) -> Terms:
    return Terms(knob="TARGET_CTAS", value="512", **more)  # type: ignore[arg-type]  # named fields of Terms


def reply(table: Table, change: Change) -> str:
    """Everything that the reader of the reply sees, as plain text."""
    entries = table.w.client.entries(change.id)
    story = Story.of(entries, tuple(table.w.client.evidence("TARGET_CTAS")), table.w.fleet)
    return html.unescape("\n".join(texts(card(story)))).replace("\u2060", "")


@pytest.fixture
def table(store: Store) -> Table:
    return Table(store, fleet_of(*RULES), decode())


def cold_and_warm() -> tuple[str, str]:
    texts_of = blocks()
    return texts_of["bench-a1.json"], texts_of["bench-b1.json"]


def keep(table: Table, a: list[Given], b_files: list[Given], **more: object) -> Record:
    return table.keep(from_results(a, b_files, terms(**more)))


@pytest.mark.parametrize("lived", [False, True], ids=["on day one", "after it was live"])
def test_a_cold_baseline_against_a_warm_candidate_gives_nothing_back(table: Table, lived: bool) -> None:
    a, warm = cold_and_warm()
    record = keep(table, [given("bench-a1.json", a)], [given("bench-b1.json", warm)])
    assert record.klass == "invalid"
    if lived:
        table.was_live("512")
    change = table.say("/knob restore TARGET_CTAS=512")
    assert change.state == "refused"
    said = reply(table, change)
    assert "evidence ab-1 was judged invalid" in said
    assert "*+16.8 % C64* output tok/s, n=1 per arm, no interval" in said
    assert "A is run 1 after its restart, B is run 3" in said
    assert "mean time to first token is 3.61 x its median in A, 1.06 x in B" in said
    assert "repeat interleaved, after a warm-up that is thrown away" in said


def test_with_two_warm_runs_each_it_is_weak_and_still_no_reason(table: Table) -> None:
    a, warm = cold_and_warm()
    left = [given("a1", a), given("a2", again(a, 3598, "A run 2")), given("a3", again(a, 3611, "A run 3"))]
    right = [given("b1", warm), given("b2", again(warm, 3605, "B run 2")), given("b3", again(warm, 3602, "B run 3"))]
    record = keep(table, left, right, interleaved=True)
    assert record.klass == "weak"
    change = table.say("/knob restore TARGET_CTAS=512")
    assert change.state == "refused"
    said = reply(table, change)
    assert "evidence ab-1 is of class weak, expected at least no_worse" in said
    assert "*-0.03 % [-2.8, +2.8] C64* output tok/s, n=2 per arm, 95 % intervals" in said
    assert "arm A climbed 16.6 % from run 1 to run 2" in said
    assert "the first run of each arm is left out by rule" in said
    assert "n=2 per arm is weak whatever its interval" in said


def replayed() -> tuple[list[Given], list[Given]]:
    return [given(f"a{i}", swept(5120, i)) for i in range(3)], [given(f"b{i}", swept(11878, i)) for i in range(3)]


def test_a_sweep_of_the_prefix_cache_gives_nothing_back_whatever_its_spread(table: Table) -> None:
    a, candidate = replayed()
    scrapes = given("metrics-around-runs.txt", blocks()["metrics-around-runs.txt"])
    record = keep(table, a, candidate, interleaved=True, scrapes=scrapes)
    assert (record.klass, record.files[-1].arm) == ("invalid", "scrapes")
    table.was_live("512")
    change = table.say("/knob restore TARGET_CTAS")
    assert change.state == "refused"
    said = reply(table, change)
    assert "hit rate A 0.0 % of 655,360, B 99.4 % of 655,360 looked-up tokens" in said
    assert "a small spread of the repeats does not help" in said
    assert "+132" in said
    assert "[" not in said.split("+132")[1].split("output tok/s")[0]  # no interval of a broken comparison


def test_without_the_counters_it_is_weak_and_not_silently_valid(table: Table) -> None:
    a, candidate = replayed()
    assert keep(table, a, candidate, interleaved=True).klass == "weak"
    change = table.say("/knob restore TARGET_CTAS=512")
    assert change.state == "refused"
    assert "prefix cache state unknown" in reply(table, change)


def test_the_typed_record_is_given_back_as_observed_with_the_remark(table: Table, tmp_path: Path) -> None:
    points = [{"concurrency": c, "ratio": r} for c, r in ((64, 1.128), (96, 1.057), (80, 1.012))]
    table.keep(b.record(points=points))
    change = table.say("/knob restore TARGET_CTAS=512")
    said = reply(table, change)
    assert change.state == "refused"  # on day one it is judged as a set
    assert "observed" in said
    assert "*+12.8 % C64 · +5.7 % C96 · +1.2 % C80* output tok/s, n=1 per arm, no interval" in said
    assert "C80 is worse than both its neighbours C64 and C96, without an interval: repeat it" in said
    table.was_live("512")
    assert table.say("/knob restore TARGET_CTAS").state == "planned"
