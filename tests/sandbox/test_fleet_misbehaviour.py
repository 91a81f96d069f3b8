"""The demo fleet misbehaves when it is told to by hand, and is well again when it is told so."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.shared import ROOT, skip_or_fail

pytestmark = pytest.mark.real


@contextmanager
def by_hand() -> Iterator[subprocess.Popen[str]]:
    """`python -m sandbox.fleet`, ended by its id."""
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        argv = [sys.executable, "-m", "sandbox.fleet", "--folder", f"{folder}/f", "--boot-s", "0.2"]
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) as process:
            try:
                yield process
            finally:
                process.terminate()
                process.communicate(timeout=60)


def told(process: subprocess.Popen[str], line: str) -> dict[str, Any]:
    """The answer to one line."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def test_lines_of_stdin_make_a_role_misbehave_and_behave_again() -> None:
    with by_hand() as process:
        assert process.stdout is not None
        begun = process.stdout.readline()
        if not begun:
            assert process.stderr is not None
            skip_or_fail(process.stderr.read())
        assert "ports" in json.loads(begun)
        assert told(process, "misbehave decode crash-loop") == {
            "ok": True,
            "did": ["misbehave", "decode", "crash-loop"],
        }
        again = told(process, "misbehave decode device")
        assert (again["ok"], again["said"]) == (False, "'decode' is no role that behaves now")
        assert told(process, "behave decode")["ok"] is True
        unknown = told(process, "misbehave decode nonsense")
        assert unknown["ok"] is False
        assert "orphan-now" in unknown["said"]
        assert told(process, "dance")["ok"] is False
        assert told(process, "misbehave router orphan")["ok"] is True  # ended with the fleet
