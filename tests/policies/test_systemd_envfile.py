"""Environment files as systemd reads them: golden lines, and thousands of files against systemd's own code."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.systemd.envfile import parse, report
from tests.shared import skip_or_fail

CASES: list[dict[str, Any]] = json.loads(Path("tests/golden/systemd/envfile.json").read_text(encoding="utf-8"))
PIECES = [
    "A", "B", "=", "=", "=", "\n", "\n", " ", "\t", "\r", "\r\n", "#", ";", "'", '"', "\\", "\\\n", "$", "`", "x",
    "512", " # c", "\ufeff", "é", "export ", "A=", "\nB=", "\x01", "\x7f", "\ufdd0", "\udcff", "\0",
]  # fmt: skip
Loader = Callable[[bytes], tuple[int, list[bytes]]]


@pytest.mark.parametrize("case", CASES, ids=[case["about"] for case in CASES])
def test_a_file_gives_what_systemd_takes_from_it(case: dict[str, Any]) -> None:
    parsed = parse(case["text"])
    assert (None if parsed.rejected else parsed.values()) == case["values"]
    assert [f.code.removeprefix("envfile.") for f in report(case["text"], "f")] == case["codes"]


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Loader:
    """systemd's own `load_env_file`, from the library beside the installed systemd."""
    found = [p for folder in ("/usr/lib", "/lib") for p in Path(folder).glob("**/systemd/libsystemd-shared-*.so")]
    if not found:
        skip_or_fail("no libsystemd-shared on this machine")
    call = ctypes.CDLL(str(found[0])).load_env_file
    call.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.POINTER(ctypes.c_char_p))]
    path = tmp_path_factory.mktemp("env") / "file"

    def load(data: bytes) -> tuple[int, list[bytes]]:
        path.write_bytes(data)
        entries = ctypes.POINTER(ctypes.c_char_p)()
        code: int = call(None, str(path).encode(), ctypes.byref(entries))
        taken: list[bytes] = []
        while entries and (entry := entries[len(taken)]) is not None:
            taken.append(entry)
        return code, taken

    return load


def agree(load: Loader, text: str) -> None:
    code, entries = load(text.encode("utf-8", "surrogateescape"))
    parsed = parse(text)
    assert (code < 0) == (parsed.rejected is not None)
    if code >= 0:
        # a name may hold an equals sign when the line begins with one: compare whole entries, the last of a name
        ours = dict((line.name + "=" + line.value).split("=", 1) for line in parsed.lines)
        theirs = dict(entry.decode("utf-8", "surrogateescape").split("=", 1) for entry in entries)
        assert ours == theirs


@pytest.mark.parametrize("case", CASES, ids=[case["about"] for case in CASES])
def test_systemd_itself_agrees_with_the_golden_lines(case: dict[str, Any], loader: Loader) -> None:
    agree(loader, case["text"])


@settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_generated_files_are_read_as_systemd_reads_them(loader: Loader, text: str) -> None:
    agree(loader, text)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_the_report_never_fails_and_names_lines_of_the_file(text: str) -> None:
    for finding in report(text, "/etc/x.env"):
        assert finding.values["file"] == "/etc/x.env"
        line = finding.values["line"]
        assert isinstance(line, int)
        assert 1 <= line <= text.count("\n") + 1


def test_the_comment_that_became_the_value_gives_three_findings() -> None:
    text = (
        'SGLANG_SM120_MMA_TARGET_CTAS=512  # tuned 2026-11\nSGLANG_LOG_LEVEL="info"  # quiet\nexport SGLANG_EXTRA=1\n'
    )
    said = [
        (f.code, f.values["line"], f.values["name"], f.values["value"]) for f in report(text, "/etc/sgl/prefill-0.env")
    ]
    assert said == [
        ("envfile.inline-comment", 1, "SGLANG_SM120_MMA_TARGET_CTAS", "512  # tuned 2026-11"),
        ("envfile.inline-comment", 2, "SGLANG_LOG_LEVEL", "info# quiet"),
        ("envfile.export", 3, "export SGLANG_EXTRA", "1"),
    ]


def test_since_systemd_254_a_comment_does_not_continue() -> None:
    text = "# c \\\nA=1\n"
    assert parse(text).values() == {}
    assert parse(text, comment_continues=False).values() == {"A": "1"}


def test_lines_count_from_one_through_quotes_and_comments() -> None:
    parsed = parse('# c\nA=1\n\nB="x\ny"\nC=2')
    assert [(x.name, x.line, x.last_line) for x in parsed.lines] == [("A", 2, 2), ("B", 4, 5), ("C", 6, 6)]
