"""`clawback evidence record` and `list` on a real ledger, as a person of the operating system calls them."""

from __future__ import annotations

import json
import pwd
from pathlib import Path
from typing import Any

import pytest

from tests.bot.test_cli_evidence_judge import A, B, files, one
from tests.bot.test_cli_say import ANA, PEOPLE, STRANGER, Desk
from tests.conftest import Store
from tests.policies.test_abtest_cases import blocks
from tests.scenarios.test_up import FLEET
from workers.wiring import Wiring, load_fleet

TYPED = "value: 512\npoints: {C64: +12.8 %, C96: +5.7 %, C80: +1.2 %}\n"
RESULTS = ("evidence", "record", "--knob", "TARGET_CTAS", "--value", "512", "--interleaved")
OTHER = "sys"


@pytest.fixture
def desk(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET + PEOPLE.replace("}", f", {OTHER}: U0SYS}}"))
    wiring = Wiring(load_fleet(path), store.redis, lambda: pytest.fail("no host is asked"))
    env = {"REDIS_URL": store.url, "CLAWBACK_FLEET": str(path), "CLAWBACK_DATA": str(tmp_path)}
    return Desk(store, wiring, env, monkeypatch)


def arms(folder: Path, a: tuple[float, ...] = A, b: tuple[float, ...] = B) -> list[str]:
    left, right = files(folder, "a", a), files(folder, "b", b)
    return ["--a", *map(str, left), "--b", *map(str, right)]


def record(desk: Desk, *words: str, who: str = ANA) -> tuple[int, Any]:
    return desk.json(who, *RESULTS, *words)


def test_result_files_are_judged_and_recorded_with_their_digests(desk: Desk, tmp_path: Path) -> None:
    code, told = record(desk, *arms(tmp_path), "--correctness", "0/200", "--context", "gpu=H200")
    assert (code, told) == (0, {"id": "ab-1", "class": "improves"})
    (kept,) = desk.wiring.client.evidence("TARGET_CTAS")
    assert (kept.by, kept.value, kept.baseline, len(kept.files)) == ("U0ANA", "512", None, 8)
    assert {file.file for file in kept.files if file.arm == "A"} == {f"a{n}-c64.json" for n in range(1, 5)}
    assert kept.context.accelerator == "H200"
    assert kept.correctness is not None
    assert kept.correctness.level == 1
    _, listed = desk.json(ANA, "evidence", "list")
    assert (listed["records"][0]["id"], listed["records"][0]["class"]) == ("ab-1", "improves")
    (line,) = desk.run(ANA, "evidence", "list").stdout.splitlines()
    assert line.startswith("ab-1: TARGET_CTAS = 512, improves, +12.8 % [+12.6, +13.0] C64")
    assert "output_throughput, n=4 per arm, 95 % intervals, by daemon, 20" in line


def test_people_read_what_was_judged_and_what_nobody_told(desk: Desk, tmp_path: Path) -> None:
    result = desk.run(ANA, *RESULTS, *arms(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("verdict: improves (output_throughput, higher is better")
    assert "accelerator unknown; accelerators unknown; model unknown" in result.stdout
    assert "flags unknown" in result.stdout


def test_bad_news_is_kept_and_said_to_be_bad(desk: Desk, tmp_path: Path) -> None:
    result = desk.run(ANA, *RESULTS, *arms(tmp_path, B, A))
    assert result.exit_code == 0
    assert "verdict: regresses" in result.stdout
    assert "kept as regresses: bad news is evidence too, and lets nothing through" in result.stdout
    (kept,) = desk.wiring.client.evidence()
    assert kept.klass == "regresses"


def test_case_1_is_kept_as_invalid_with_the_reason(desk: Desk, tmp_path: Path) -> None:
    for name in ("bench-a1.json", "bench-b1.json"):
        (tmp_path / name).write_text(blocks()[name])
    paths = [str(tmp_path / name) for name in ("bench-a1.json", "bench-b1.json")]
    result = desk.run(ANA, *RESULTS[:-1], "--a", paths[0], "--b", paths[1])
    assert result.exit_code == 0
    assert "C64: +16.8 % output tok/s (A 3086, B 3605 tok/s), n=1 per arm, no interval: observed" in result.stdout
    assert "A is run 1 after its restart, B is run 3; repeat interleaved" in result.stdout
    assert desk.wiring.client.evidence()[0].klass == "invalid"


def test_the_typed_record_is_observed_and_asks_for_repeats(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "ab.yaml"
    file.write_text(TYPED)
    result = desk.run(ANA, "evidence", "record", str(file), "--knob", "TARGET_CTAS")
    assert result.exit_code == 0, result.output
    assert (
        "recorded ab-1: TARGET_CTAS = 512, observed, +12.8 % C64 · +5.7 % C96 · +1.2 % C80 output_throughput, n=1 per"
        " arm, no interval, by daemon"
    ) in result.stdout
    assert "C80 is worse than both its neighbours C64 and C96, without an interval: repeat it" in result.stdout
    assert "[" not in result.stdout


def test_the_same_files_are_recorded_once(desk: Desk, tmp_path: Path) -> None:
    given = arms(tmp_path)
    assert record(desk, *given)[0] == 0
    assert record(desk, *given, "--note", "again") == (1, {"id": "ab-1", "class": "improves", "already": True})
    assert len(desk.wiring.client.evidence()) == 1


@pytest.mark.parametrize(
    ("who", "code"), [(OTHER, "evidence.may-not-record"), (STRANGER, "identity.not-mapped")], ids=["role", "mapped"]
)
def test_who_may_neither_ask_nor_approve_records_nothing(desk: Desk, tmp_path: Path, who: str, code: str) -> None:
    assert pwd.getpwnam(who)
    status, told = record(desk, *arms(tmp_path), who=who)
    assert (status, told["decision"]["findings"][0]["code"]) == (1, code)
    assert desk.wiring.client.evidence() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--value", "0"), "expected 1 to 4096"),
        (("--baseline", "many"), "expected a whole number"),
        (("--context", "gpu"), "expected KEY=VALUE"),
        (("--context", "gup=H200"), "did you mean `gpu`?"),
        (("--correctness", "3/2"), "expected at most as many"),
        (("--correctness", "nope.yaml"), "cannot be read"),
        (("--scrapes", "nope.prom"), "cannot be read"),
        (("--knob", "NOPE"), "there is no knob `NOPE`"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_kept(
    desk: Desk, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    result = desk.run(ANA, *RESULTS, *arms(tmp_path), *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert desk.wiring.client.evidence() == []


@pytest.mark.parametrize(
    "words",
    [
        ("--knob", "TARGET_CTAS"),
        ("--knob", "TARGET_CTAS", "--a", "x", "--b", "y"),
        ("--knob", "TARGET_CTAS", "--value", "512", "--a", "x"),
        ("ab.yaml", "--knob", "TARGET_CTAS", "--value", "512"),
        ("ab.yaml", "--knob", "TARGET_CTAS", "--a", "x", "--b", "y", "--value", "512"),
    ],
)
def test_half_a_question_is_a_usage_error(desk: Desk, words: tuple[str, ...]) -> None:
    result = desk.run(ANA, "evidence", "record", *words)
    assert result.exit_code == 2
    assert "expected a typed summary FILE" in result.stderr or "need" in result.stderr or "only FILE" in result.stderr


def test_a_files_place_on_this_machine_is_not_kept(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "a1.json").write_text(one(1000.0))
    (tmp_path / "b1.json").write_text(one(1001.0))
    assert record(desk, "--a", str(tmp_path / "a1.json"), "--b", str(tmp_path / "b1.json"))[0] == 0
    assert str(tmp_path) not in json.dumps(desk.json(ANA, "evidence", "list")[1])
