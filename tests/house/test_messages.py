"""Every code that the product can say has a sentence, every sentence is said, and all of them read alike."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from bot.messages import NOUNS, SENTENCES
from bot.messages.fields import names
from policies.finding import Effect
from policies.proof import ProofVerdict
from tests.shared import ROOT

CODE = re.compile(r"[a-z]+\.[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*")
PRODUCT = ("bot", "workers", "policies")
MESSAGES = ROOT / "bot" / "messages"
FAMILIES = {code.split(".")[0] for code in SENTENCES} | {"click", "plan", "gate", "hold", "undo", "host", "value"}
# errors of the fleet file carry their own text and line; they are no findings
FLEET_FILE = re.compile(r"policies/fleet_(checks|file)|bot/cli/fleet")
PART = re.compile(r"[a-z][a-z0-9-]*")


def _strings(tree: ast.AST) -> Iterator[str]:
    """String literals that are no docstrings."""
    skipped = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def _sources() -> Iterator[tuple[Path, ast.Module]]:
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.parent == MESSAGES and path.name != "__init__.py":
                continue
            if FLEET_FILE.match(str(path.relative_to(ROOT))):
                continue
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def _explicit(tree: ast.Module) -> Iterator[str]:
    """Codes given as `code="..."`, and first arguments of `say("...")`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)
        called = node.func
        if isinstance(called, ast.Name) and called.id == "say" and node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)


def _prefixes(tree: ast.AST) -> set[str]:
    """`proof.` where a module makes codes as `f"proof.{code}"`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "code" and isinstance(node.value, ast.JoinedStr):
            first = node.value.values[0]
            if isinstance(first, ast.Constant) and str(first.value).endswith("."):
                found.add(str(first.value))
    return found


def _joined(path: Path, tree: ast.Module) -> Iterator[str]:
    """Codes that this module makes from a prefix and a word; the words may come from modules beside it."""
    for prefix in _prefixes(tree):
        for other in sorted(path.parent.glob("*.py")):
            for text in _strings(ast.parse(other.read_text(encoding="utf-8"))):
                if PART.fullmatch(text) and prefix + text in SENTENCES:
                    yield prefix + text


def _words_given(tree: ast.Module) -> Iterator[str]:
    """Words given to the very functions that make such codes, which all need a sentence."""
    for function in ast.walk(tree):
        prefixes = _prefixes(function) if isinstance(function, ast.FunctionDef) else set()
        for call in ast.walk(tree) if prefixes else ():
            name = getattr(getattr(call, "func", None), "id", getattr(getattr(call, "func", None), "attr", None))
            if not isinstance(call, ast.Call) or name != getattr(function, "name", ""):
                continue
            words = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if words and PART.fullmatch(words[0]) and words[0] not in get_args(Effect):
                yield from (prefix + words[0] for prefix in prefixes)


def used() -> dict[str, str]:
    """Code -> a file that uses it."""
    found: dict[str, str] = {}
    for path, tree in _sources():
        where = str(path.relative_to(ROOT))
        for text in _strings(tree):
            if CODE.fullmatch(text) and text.split(".")[0] in FAMILIES and text in SENTENCES:
                found.setdefault(text, where)
        for code in (*_joined(path, tree), *_words_given(tree)):
            found.setdefault(code, where)
        for code in _explicit(tree):
            if CODE.fullmatch(code):
                found.setdefault(code, where)
    return found


def _suspected() -> dict[str, str]:
    """Literals that look like codes of a known family, given to a helper that makes the finding."""
    found: dict[str, str] = {}
    for path, tree in _sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                code = node.args[0].value
                if not isinstance(code, str) or code.endswith(".lua"):
                    continue
                if CODE.fullmatch(code) and code.split(".")[0] in FAMILIES:
                    found.setdefault(code, str(path.relative_to(ROOT)))
    return found


def test_every_code_has_a_sentence() -> None:
    missing = {code: where for code, where in (used() | _suspected()).items() if code not in SENTENCES}
    assert missing == {}


def _literal_findings() -> Iterator[tuple[str, set[str], str]]:
    """(code, names of its values, place) of findings whose values are written out where they are made."""
    for path, tree in _sources():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            code, values = given.get("code"), given.get("values")
            if isinstance(code, ast.Constant) and isinstance(values, ast.Dict) and all(values.keys):
                keys = {str(key.value) for key in values.keys if isinstance(key, ast.Constant)}
                yield str(code.value), keys, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_a_finding_brings_what_its_sentence_says() -> None:
    found = list(_literal_findings())
    assert len(found) >= 8
    short = {
        where: sorted(names(SENTENCES[code]) - keys)
        for code, keys, where in found
        if code in SENTENCES and names(SENTENCES[code]) - keys
    }
    assert short == {}


def test_every_sentence_is_said_somewhere() -> None:
    silent = sorted(set(SENTENCES) - set(used()) - BUILT)
    assert silent == []


# codes that are put together from parts where they are used, each with the place that does so
BUILT = frozenset(f"gate.environment.{verdict.replace('_', '-')}" for verdict in get_args(ProofVerdict))  # its gate


def test_no_code_stands_in_two_files() -> None:
    assert sum(len(noun.SENTENCES) for noun in NOUNS) == len(SENTENCES)


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_a_sentence_is_lower_case_plain_and_pings_nobody(code: str) -> None:
    template = SENTENCES[code]
    first = template.lstrip("*⚠ ")[:1]
    assert not first.isupper() or template.startswith(("I ", "Keep {", "Confirm {", "Abort {")), template
    assert "<!" not in template
    assert "<@" not in template
    assert not template.endswith("."), template
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names(template))
