"""`clawback fleet check FILE` on real files."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from bot.cli.fleet import command
from tests.shared import ROOT

EXAMPLE = ROOT / "fleet.example.yaml"
KNOBS = ROOT / "tests" / "golden" / "fleet" / "knobs.yaml"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def test_the_example_passes() -> None:
    result = run("check", str(EXAMPLE))
    assert result.exit_code == 0
    assert result.output.startswith("ok: fleet dsv4, 1 host, 3 services, 3 knobs, 5 rules, sha256 ")


def test_the_example_passes_in_json() -> None:
    result = run("check", str(EXAMPLE), "--json")
    assert result.exit_code == 0
    assert json.loads(result.output) == {"ok": True, "errors": []}


def test_every_error_is_printed_at_once_with_its_line_and_hint() -> None:
    result = run("check", str(KNOBS))
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert (
        f"{KNOBS}:24: knobs.NO_RANGE: a knob of type int has no range, expected one: any value at all would be accepted"
        in lines
    )
    assert lines[1] == "    hint: add range: [1, 4096]"
    errors = sum(line.startswith(f"{KNOBS}:") for line in lines)
    assert errors == sum(line.startswith("    hint: ") for line in lines)
    assert lines[-1] == f"{errors} errors"


def test_a_lease_that_would_delay_a_takeover_is_refused_with_its_line() -> None:
    path = ROOT / "tests" / "golden" / "fleet" / "lease-long.yaml"
    result = run("check", str(path))
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        f"{path}:11: timing.lease: '10.1s' is too long, expected 10s or less",
        "    hint: write e.g. 10s",
        "1 error",
    ]


def test_json_holds_every_error_with_all_its_keys() -> None:
    result = run("check", "--json", str(KNOBS))
    assert result.exit_code == 1
    answer = json.loads(result.output)
    assert answer["ok"] is False
    assert len(answer["errors"]) > 20
    assert all(set(error) == {"file", "line", "code", "message", "hint"} for error in answer["errors"])
    assert answer["errors"][0] == {
        "file": str(KNOBS),
        "line": 24,
        "code": "knob.no_range",
        "message": "knobs.NO_RANGE: a knob of type int has no range, expected one: any value at all would be accepted",
        "hint": "add range: [1, 4096]",
    }


def test_a_file_that_is_not_there_is_exit_2(tmp_path: Path) -> None:
    result = run("check", str(tmp_path / "none.yaml"), "--json")
    assert result.exit_code == 2
    answer = json.loads(result.output)
    assert (answer["ok"], answer["errors"][0]["code"]) == (False, "file.unreadable")
    assert "no such file" in answer["errors"][0]["message"]


def test_a_folder_is_exit_2(tmp_path: Path) -> None:
    result = run("check", str(tmp_path))
    assert result.exit_code == 2
    assert result.output.startswith(f"{tmp_path}: the file cannot be read (is a directory)")


def test_no_file_is_a_usage_error() -> None:
    assert run("check").exit_code == 2


def test_bytes_that_are_not_utf_8_are_an_error_with_a_line(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"version: 1\nname: dsv4\n# caf\xe9\n")
    result = run("check", str(file), "--json")
    assert result.exit_code == 1
    error = json.loads(result.output)["errors"][0]
    assert (error["line"], error["code"]) == (3, "file.not_utf8")
    assert "0xe9" in error["message"]


def test_a_huge_file_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    file = tmp_path / "huge.yaml"
    with file.open("wb") as sink:
        sink.truncate(64 * 1024 * 1024)
    result = run("check", str(file), "--json")
    assert result.exit_code == 1
    assert [e["code"] for e in json.loads(result.output)["errors"]] == ["file.too_large"]


def test_a_file_with_windows_line_ends_and_a_byte_order_mark_passes(tmp_path: Path) -> None:
    file = tmp_path / "windows.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + EXAMPLE.read_bytes().replace(b"\n", b"\r\n"))
    assert run("check", str(file)).exit_code == 0
