"""Metrics texts as files, and `clawback cause check` on them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from bot.cli import main
from tests.shared import ROOT, shared

EXAMPLE = ROOT / "fleet.example.yaml"
AT = "2026-12-01T10:00:00Z"
EPOCH = 1796119200.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the command gave. document: of `--json`."""

    code: int
    text: str
    document: dict[str, Any]

    @property
    def readings(self) -> list[tuple[str, float, float]]:
        """(name, value, seconds after 10:00:00) of what was cited."""
        return [(c.get("name", c["query"]), c["value"], c["time"] - EPOCH) for c in self.document["citations"]]


def check(cause: str, *arguments: str, fleet: Path | None = EXAMPLE) -> Answer:
    """Runs the command twice: for people and for machines; both must end alike."""
    given = ["cause", "check", "--cause", cause, *(["--fleet", str(fleet)] if fleet is not None else []), *arguments]
    runs = [CliRunner().invoke(main, [*given, *more]) for more in ([], ["--json"])]
    assert runs[0].exit_code == runs[1].exit_code, runs[0].output + runs[1].output
    assert not isinstance(runs[0].exception, Exception), runs[0].exception
    return Answer(runs[0].exit_code, runs[0].output, json.loads(runs[1].stdout))


def files(folder: Path, texts: Sequence[str], *, apart_s: float = 60.0, name: str = "scrape") -> list[str]:
    """FILE@TIME for each text, the first at 10:00:00."""
    found = []
    for number, text in enumerate(texts):
        path = folder / f"{name}{number}.prom"
        path.write_text(text, encoding="utf-8")
        found.append(f"{path}@{EPOCH + number * apart_s}")
    return found


def case_text(number: int, about: str) -> str:
    """The block of a case whose first line begins with ```text and `about`."""
    whole = (shared("cases") / "README.md").read_text(encoding="utf-8")
    case = whole.split(f"\n## {number}. ")[1].split("\n## ")[0]
    found = re.search(rf"```text {re.escape(about)}[^\n]*\n(.*?)```", case, re.DOTALL)
    assert found is not None
    return found[1]
