"""Every finding that policies and workers make has a sentence, and brings the values that the sentence names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import pytest

from bot.messages import SENTENCES
from bot.messages.fields import names
from tests.shared import ROOT

CODE = re.compile(r"[a-z]+\.[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*")
FAMILIES = {code.split(".")[0] for code in SENTENCES}
NO_CODES = {"ledger.lua"}
# functions that make findings of what they are given -> the values that they add to those of the call
ADDED: dict[tuple[str, str], frozenset[str]] = {
    ("policies/preflight", "finding"): frozenset({"instance", "unit"}),
    ("policies/planning/placement.py", "_refuse"): frozenset({"instance"}),
    ("policies/approvals.py", "_refuse"): frozenset({"change", "actor"}),
    ("policies/gates", "passed"): frozenset(),
    ("policies/gates", "failed"): frozenset(),
    ("policies/gates", "undecided"): frozenset(),
    ("workers/gatekeeper.py", "failed"): frozenset(),
    ("workers/drains.py", "about"): frozenset({"instance"}),
    ("workers/enlisting.py", "about"): frozenset({"instance"}),
}
FIXED = {"told": frozenset({"instance", "device", "pid", "name", "since", "cgroup"})}


@dataclass
class Made:
    """A finding as it is made. `keys` None: the values come from somewhere else."""

    where: str
    code: str
    keys: set[str] | None = field(default=None)


def _constants(node: ast.AST | None, scope: ast.AST) -> list[str]:
    """The texts that an expression may be: a literal, one of two, or what the name was given in this function."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.IfExp):
        return _constants(node.body, scope) + _constants(node.orelse, scope)
    if isinstance(node, ast.Name):
        given = [n.value for n in ast.walk(scope) if isinstance(n, ast.Assign) and _is(n.targets[0], node.id)]
        return [text for one in given if not isinstance(one, ast.Name) for text in _constants(one, scope)]
    return []


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _keys(node: ast.AST | None, scope: ast.AST) -> set[str] | None:
    """The keys of a dict, written out or put together in this function; None where that cannot be seen here."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and node.args:
        return _keys(node.args[0], scope)
    if isinstance(node, ast.Dict):
        found: set[str] = set()
        for key, value in zip(node.keys, node.values, strict=True):
            more = _keys(value, scope) if key is None else {str(key.value)} if isinstance(key, ast.Constant) else None
            if more is None:
                return None
            found |= more
        return found
    return _kept(node, scope) if isinstance(node, ast.Name) else None


def _kept(use: ast.Name, scope: ast.AST) -> set[str] | None:
    """The keys that a name has where it is used: of what it was given last, and of what was added since."""
    found: set[str] | None = None
    for one in sorted((n for n in ast.walk(scope) if isinstance(n, ast.stmt)), key=lambda n: n.lineno):
        if one.lineno >= use.lineno:
            break
        if isinstance(one, ast.Assign | ast.AnnAssign):
            target = one.targets[0] if isinstance(one, ast.Assign) else one.target
            if _is(target, use.id):
                found = _keys(one.value, scope)
            if isinstance(target, ast.Subscript) and _is(target.value, use.id):
                found = None if found is None else found | set(_constants(target.slice, scope))
        if isinstance(one, ast.AugAssign) and _is(one.target, use.id) and found is not None:
            found |= _keys(one.value, scope) or set()
    return found


def _functions(tree: ast.Module) -> Iterator[ast.AST]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _added(where: str, called: str) -> frozenset[str] | None:
    return next((more for (place, name), more in ADDED.items() if name == called and where.startswith(place)), None)


def _of_call(call: ast.Call, scope: ast.AST, where: str) -> Iterator[Made]:
    called = getattr(call.func, "id", getattr(call.func, "attr", ""))
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if called == "Finding":
        for code in _constants(given.get("code"), scope):
            yield Made(where, code, _keys(given.get("values"), scope))
        return
    first = call.args[0] if call.args else None
    more = _added(where, called)
    for code in _constants(first, scope):
        if not CODE.fullmatch(code) or code.split(".")[0] not in FAMILIES or code in NO_CODES:
            continue
        if called in FIXED:
            yield Made(where, code, set(FIXED[called]))
        elif more is None or None in given:
            yield Made(where, code)
        elif len(call.args) > 1 and called in {"passed", "failed", "undecided"}:
            yield Made(where, code, _keys(call.args[1], scope))
        else:
            yield Made(where, code, {str(name) for name in given} | set(more))


@cache
def made() -> tuple[Made, ...]:
    """Every finding that can be seen to be made in policies and workers."""
    found: list[Made] = []
    for folder in ("policies", "workers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            where = str(path.relative_to(ROOT))
            if re.match(r"policies/fleet_(checks|file)", where):
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for function in _functions(tree):
                for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                    found += _of_call(call, function, f"{where}:{call.lineno}")
    return tuple(found)


def test_codes_given_through_a_variable_are_seen() -> None:
    seen = {one.code for one in made()}
    assert {"plan.place-uncertain", "plan.would-not-start", "host.key-refused", "evidence.enough"} <= seen
    assert len(seen) > 100


def test_every_finding_has_a_sentence() -> None:
    assert {one.where: one.code for one in made() if one.code not in SENTENCES} == {}


def test_every_finding_brings_the_values_of_its_sentence() -> None:
    lacking = {
        f"{one.where} {one.code}": sorted(names(SENTENCES[one.code]) - one.keys)
        for one in made()
        if one.keys is not None and one.code in SENTENCES and names(SENTENCES[one.code]) - one.keys
    }
    assert lacking == {}
    assert sum(one.keys is not None for one in made()) > 90


@pytest.mark.parametrize("code", ["ledger.edited-entry", "evidence.enough", "plan.would-not-start"])
def test_a_person_never_reads_a_bare_code(code: str) -> None:
    assert code not in SENTENCES[code]
