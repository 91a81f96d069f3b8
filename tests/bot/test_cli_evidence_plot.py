"""`clawback evidence judge --plot FILE`: two pictures beside an answer that stays what it is."""

from __future__ import annotations

import io
import json
from pathlib import Path

from PIL import Image

from tests.bot.test_cli_evidence_judge import A, B, files, judge


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
