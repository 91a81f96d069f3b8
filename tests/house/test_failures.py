"""What the failure table promises is held by tests that exist."""

from __future__ import annotations

import re

from tests.shared import ROOT

NAMED = re.compile(r"`(test_[a-z0-9_]+)::(test_[a-z0-9_]+)`")


def test_every_test_that_the_failure_table_names_exists() -> None:
    page = (ROOT / "docs/failures.md").read_text(encoding="utf-8")
    files = {path.stem: path for path in (ROOT / "tests").rglob("test_*.py")}
    named = NAMED.findall(page)
    missing = [
        f"{file}::{name}"
        for file, name in named
        if file not in files or f"def {name}(" not in files[file].read_text(encoding="utf-8")
    ]
    assert len(named) > 50
    assert missing == []


def test_every_row_of_the_failure_table_names_a_test() -> None:
    page = (ROOT / "docs/failures.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| what ", "| --- "))]
    assert [row for row in rows if not NAMED.search(row)] == []
