"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.conftest import LONGEST
from tests.shared import ROOT

SOURCE = ("bot", "workers", "policies", "sandbox", "bench")
MOST_LINES = 300
# the one program that runs on hosts is one file on purpose: it is sent as one text
ONE_FILE = {"workers/hosthelper.py"}


def tracked(*patterns: str) -> list[str]:
    """Files of the project: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def product_files() -> list[str]:
    return [name for name in tracked("*.py") if name.split("/")[0] in SOURCE]


def test_no_source_file_is_longer_than_300_lines() -> None:
    longer = {
        name: count
        for name in product_files()
        if name not in ONE_FILE and (count := len((ROOT / name).read_text().splitlines())) > MOST_LINES
    }
    assert longer == {}


def test_every_public_class_and_function_says_what_it_is_for() -> None:
    silent = [f"{name}:{line}" for name in product_files() if name not in ONE_FILE for line in undocumented(name)]
    assert silent == []


def undocumented(name: str) -> list[int]:
    found: list[int] = []

    def look(body: list[ast.stmt], public: bool) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                named = not node.name.startswith("_")
                if public and named and ast.get_docstring(node) is None:
                    found.append(node.lineno)
                if isinstance(node, ast.ClassDef):
                    look(node.body, public and named)

    look(ast.parse((ROOT / name).read_text()).body, public=True)
    return found


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("a mock instead of the real thing", r"\b(MagicMock|unittest\.mock|mocker)\b"),
        ("a shell string", r"shell\s*=\s*True|os\.system\(|os\.popen\("),
        ("pickle", r"^\s*(import|from) pickle\b"),
        ("a stub called done", r"NotImplementedError|#\s*(TODO|FIXME|XXX)\b"),
        ("a key that is trusted at first sight", r"AutoAddPolicy|WarningPolicy"),
        ("yaml that builds objects", r"yaml\.(load|unsafe_load|full_load)\("),
    ],
)
def test_nowhere_is(what: str, pattern: str) -> None:
    this = Path(__file__).name
    hits = [
        f"{name}:{number}: {what}"
        for name in tracked("*.py")
        if not name.endswith(this) and not (what == "pickle" and name.startswith("tests/"))
        for number, line in enumerate((ROOT / name).read_text().splitlines(), start=1)
        if re.search(pattern, line)
    ]
    assert hits == []


def test_locks_have_hashes_and_no_addresses() -> None:
    for name in tracked("requirements/*.txt"):
        text = (ROOT / name).read_text()
        pins = re.findall(r"^[A-Za-z0-9_.-]+==", text, re.MULTILINE)
        assert pins, name
        assert text.count("--hash=sha256:") >= len(pins), name
        assert re.search(r"://|--index-url|--find-links|--trusted-host", text) is None, name


def test_every_dependency_of_the_project_is_in_the_lock() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.match(r"[A-Za-z0-9_.-]+", d)[0].lower() for d in project["dependencies"]]  # type: ignore[index]  # they have names
    locked = (ROOT / "requirements/runtime.txt").read_text().lower()
    assert [name for name in names if f"\n{name}==" not in f"\n{locked}"] == []


def test_everything_that_readme_and_contributing_tell_to_run_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        told = set(re.findall(r"\bmake ([a-z]+)", (ROOT / name).read_text()))
        assert told <= targets, name


def test_every_picture_of_the_readme_is_there_light_and_dark_with_words_and_quick_to_load() -> None:
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r'<img src="(docs/pictures/[a-z-]+-light\.png)" width="\d+" alt="([^"]{80,})"', text)
    assert text.count("<img ") == len(shown) == 5
    for light, _ in shown:
        dark = light.replace("-light", "-dark")
        assert f'srcset="{dark}"' in text
        for name in (light, dark):
            assert (ROOT / name).stat().st_size <= 150_000, name


def test_every_file_that_begins_first_exists() -> None:
    names = {Path(name).stem for name in tracked("tests/**/test_*.py")}
    assert sorted(set(LONGEST) - names) == []


def test_the_project_speaks_of_itself_only() -> None:
    words = (r"/wor" + r"k/", r"\.librar" + r"y\b", r"\bsub" + r"agent", r"\bhelper-[0-9]", r"\bissue #?[0-9]+\b")
    foreign = re.compile("|".join(words), re.IGNORECASE)
    text_files = tracked("*.py", "*.md", "*.toml", "*.yaml", "*.yml", "*.json", "Makefile", "Dockerfile", ".ci/run")
    hits = [
        f"{name}:{number}"
        for name in text_files
        for number, line in enumerate((ROOT / name).read_text(errors="replace").splitlines(), start=1)
        if foreign.search(line)
    ]
    assert hits == []
