"""`--plot FILE` of `clawback evidence judge|show|list`: two pictures beside an answer that stays what it is."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from policies.recording import typed
from tests.bot import stories
from tests.bot.test_cli_evidence_judge import A, B, files, judge
from tests.bot.test_cli_say import ANA, PEOPLE, Desk
from tests.conftest import Store
from tests.scenarios.test_up import FLEET
from workers.wiring import Wiring, load_fleet


def size(path: Path) -> tuple[int, int]:
    with Image.open(io.BytesIO(path.read_bytes())) as picture:
        return picture.size


def test_plot_writes_the_effect_and_the_runs_and_leaves_the_document_alone(tmp_path: Path) -> None:
    arms: tuple[str | Path, ...] = ("--a", *files(tmp_path, "a", A), "--b", *files(tmp_path, "b", B), "--interleaved")
    plain = judge(*arms, "--json")
    drawn = judge(*arms, "--json", "--plot", tmp_path / "ab.png")
    assert (drawn.exit_code, json.loads(drawn.stdout)) == (0, json.loads(plain.stdout))
    assert drawn.stderr.splitlines() == [f"drawn: {tmp_path / 'ab.png'}", f"drawn: {tmp_path / 'ab-runs.png'}"]
    assert size(tmp_path / "ab.png") == size(tmp_path / "ab-runs.png") == (1200, 900)
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_plot_wants_a_png_in_a_folder_that_is_there(tmp_path: Path) -> None:
    arms: tuple[str | Path, ...] = ("--a", *files(tmp_path, "a", A), "--b", *files(tmp_path, "b", B))
    wrong = judge(*arms, "--plot", tmp_path / "ab.svg")
    assert wrong.exit_code == 2
    assert "has to end in .png" in wrong.stderr
    absent = judge(*arms, "--plot", tmp_path / "absent" / "ab.png")
    assert absent.exit_code == 2
    assert "cannot be written (no such file or directory)" in absent.stderr


def test_plot_of_loads_that_are_not_shared_says_that_nothing_is_drawn(tmp_path: Path) -> None:
    result = judge("--a", *files(tmp_path, "a", A), "--b", *files(tmp_path, "b", B, 32), "--plot", tmp_path / "ab.png")
    assert result.exit_code == 1
    assert "not drawn" in result.stderr
    assert "no load that both arms have" in result.stderr
    assert not (tmp_path / "ab.png").exists()


@pytest.fixture
def kept(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A terminal at a ledger with a typed record (ab-1) and one of runs (ab-2)."""
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET + PEOPLE)
    wiring = Wiring(load_fleet(path), store.redis, lambda: pytest.fail("no host is asked"))
    env = {"REDIS_URL": store.url, "CLAWBACK_FLEET": str(path), "CLAWBACK_DATA": str(tmp_path)}
    desk = Desk(store, wiring, env, monkeypatch)
    summary = stories.record().summary
    assert summary is not None
    wiring.client.record_evidence(typed(summary, "typed.yaml", "a" * 64), by="U0BEN")
    arms = ("--a", *map(str, files(tmp_path, "a", A)), "--b", *map(str, files(tmp_path, "b", B)))
    made = desk.run(ANA, "evidence", "record", "--knob", "TARGET_CTAS", "--value", "512", "--interleaved", *arms)
    assert made.exit_code == 0, made.output
    return desk


def test_a_record_is_shown_with_all_that_is_known_of_it_and_drawn(kept: Desk, tmp_path: Path) -> None:
    result = kept.run(ANA, "evidence", "show", "ab-2", "--plot", str(tmp_path / "ab.png"))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("TARGET_CTAS = `512`: improves\nevidence ab-2, improves,")
    assert "recorded by @daemon" in result.stdout
    assert "A: `a1-c64.json`, `a2-c64.json`, " in result.stdout
    assert re.search(r"^  B: b4-c64.json, sha256 [0-9a-f]{64}$", result.stdout, re.MULTILINE)
    assert size(tmp_path / "ab.png") == size(tmp_path / "ab-runs.png") == (1200, 900)
    code, told = kept.json(ANA, "evidence", "show", "ab-2")
    assert (code, told["record"]["id"], told["record"]["class"]) == (0, "ab-2", "improves")


def test_a_typed_record_has_nothing_to_draw_and_an_unknown_one_is_a_no(kept: Desk, tmp_path: Path) -> None:
    result = kept.run(ANA, "evidence", "show", "ab-1", "--plot", str(tmp_path / "ab.png"))
    assert (result.exit_code, (tmp_path / "ab.png").exists()) == (0, False)
    assert "ab-1 was typed by a person and has no runs" in result.stderr
    unknown = kept.run(ANA, "evidence", "show", "ab-9")
    assert (unknown.exit_code, "there is no record `ab-9`" in unknown.stderr) == (1, True)


def test_list_draws_the_newest_that_has_runs(kept: Desk, tmp_path: Path) -> None:
    result = kept.run(ANA, "evidence", "list", "--plot", str(tmp_path / "ab.png"))
    assert result.exit_code == 0
    assert "the newest with runs is ab-2" in result.stderr
    assert (tmp_path / "ab.png").exists()


def test_what_is_asked_in_chat_is_answered_in_a_terminal_as_text_and_the_form_is_not(kept: Desk) -> None:
    result = kept.run(ANA, "say", "evidence TARGET_CTAS")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("evidence for TARGET_CTAS, newest first: 2 records")
    assert result.stdout.index("ab-2") < result.stdout.index("ab-1")
    assert "no way to log in to hosts is set" in result.stdout
    form = kept.run(ANA, "say", "evidence add")
    assert form.exit_code == 1
    assert "the form is for a chat; here: clawback evidence record" in form.stderr.replace("`", "")
    explained = kept.run(ANA, "explain", "/knob evidence add", "--json")
    assert json.loads(explained.stdout) == {"intent": {"kind": "evidence_add"}, "normalised": "/knob evidence add"}
