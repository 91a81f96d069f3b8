"""Nothing prints a cause but a sentence that is given a `Cause`, and nothing but a verified verdict makes one."""

from __future__ import annotations

import ast
import re
import string
from functools import cache

import pytest

from bot.causes import cause_line
from bot.markup import Markup
from bot.messages import SENTENCES, NoSentence, causes, say, strict
from bot.messages.fields import Value
from policies.causes.cause import Cause, Consistent
from policies.causes.verdict import Verdict
from policies.citation import Citation
from policies.errors import CauseNotVerified
from policies.finding import Finding
from tests.shared import ROOT

SPEAKS = re.compile(r"\bcauses?\b|because of|due to|caused|root cause|the reason is|owing to", re.IGNORECASE)
NOT_ESTABLISHED = "cause: not established"
CITED = Citation(query="sum(q)", value=11, unit="requests", time=1.0, source="scrape", name="queue_reqs")
BEFORE = CITED.model_copy(update={"value": 0.0, "time": 0.0})
REASON = Finding(code="claim.holds", effect="note", values={"needs": "queue_reqs > 0"})
VERIFIED = Verdict(
    word="verified",
    name="queued-behind-load",
    about="the request queued behind live traffic",
    needs="queue_reqs > 0",
    reason=REASON,
    citations=(CITED,),
    baseline=(BEFORE,),
)
OTHERS = {word: VERIFIED.model_copy(update={"word": word}) for word in ("consistent", "refuted", "unverified")}


def fields(template: str) -> dict[str, str]:
    """Name -> way of writing."""
    return {name: way or "" for _, name, way, _ in string.Formatter().parse(template) if name}


def test_every_sentence_that_speaks_of_a_cause_takes_one_or_says_that_none_is_established() -> None:
    speaking = {code for code, text in SENTENCES.items() if SPEAKS.search(text)}
    assert speaking == set(causes.SENTENCES)
    states = {code for code in speaking if "cause" in fields(SENTENCES[code]).values()}
    assert states == {"cause.is"}
    for code in speaking - states:
        assert SENTENCES[code].startswith(NOT_ESTABLISHED)
        assert not SPEAKS.search(SENTENCES[code].removeprefix(NOT_ESTABLISHED))


def test_no_other_sentence_has_a_place_for_what_is_claimed() -> None:
    typed = {code for code, text in SENTENCES.items() if {"cause", "consistent"} & set(fields(text).values())}
    assert typed == {"cause.is", "cause.consistent"}


@pytest.mark.parametrize(
    "value", ["cold start", Markup("*cold start*"), 1.0, None, Consistent(OTHERS["consistent"])], ids=repr
)
def test_a_sentence_that_states_a_cause_takes_nothing_but_a_cause(value: Value) -> None:
    with pytest.raises(NoSentence):
        say("cause.is", cause=value, measured="queue_reqs=11", before="queue_reqs=0")


@pytest.mark.parametrize("value", ["cold start", Markup("*cold start*"), Cause(VERIFIED)], ids=repr)
def test_a_sentence_that_says_what_agrees_takes_nothing_but_that(value: Value) -> None:
    with pytest.raises(NoSentence):
        say("cause.consistent", found=value, measured="queue_reqs=11")


def test_a_cause_fits_into_no_other_place() -> None:
    for code, text in SENTENCES.items():
        for place in fields(text) if code != "cause.is" else ():
            values: dict[str, Value] = {**dict.fromkeys(fields(text), 1.0), place: Cause(VERIFIED)}
            with pytest.raises(NoSentence):
                say(code, **values)


def test_a_finding_cannot_state_a_cause() -> None:
    values = {"cause": "cold start", "measured": "ttft_s=17.9", "before": "ttft_s=0.2"}
    with pytest.raises(NoSentence):
        strict(Finding(code="cause.is", effect="note", values={**values}))


@pytest.mark.parametrize("word", sorted(OTHERS))
def test_a_cause_is_made_of_a_verified_verdict_only(word: str) -> None:
    assert Cause(VERIFIED).verdict == VERIFIED
    with pytest.raises(CauseNotVerified):
        Cause(OTHERS[word])


def test_the_line_of_each_verdict() -> None:
    assert cause_line(VERIFIED) == (
        "cause: *queued-behind-load* (the request queued behind live traffic); measured queue_reqs=11 requests at"
        " <!date^1^{time_secs}|00:00:01 UTC>; before queue_reqs=0 requests at <!date^0^{time_secs}|00:00:00 UTC>"
    )
    assert cause_line(OTHERS["consistent"]) == (
        "cause: not established; measured queue_reqs=11 requests at <!date^1^{time_secs}|00:00:01 UTC>"
        " -> consistent with *queued-behind-load* (the request queued behind live traffic)"
    )
    for word in ("refuted", "unverified"):
        line = cause_line(OTHERS[word])
        assert line.startswith("cause: not established; measured queue_reqs=11 requests at")
        assert "queued-behind-load" not in line


def test_a_line_with_very_many_readings_says_how_many_more_there_are() -> None:
    many = tuple(CITED.model_copy(update={"time": float(at)}) for at in range(100))
    line = cause_line(VERIFIED.model_copy(update={"citations": many}))
    assert line.count("queue_reqs=11 requests at") == 24
    assert " and 76 readings more; before" in line


@cache
def _product() -> tuple[tuple[str, ast.AST], ...]:
    """The nodes of every source file that could matter, docstrings left out; parsing all of them takes seconds."""
    matters = re.compile(r"verified|model_construct|__setattr__|Verdict\(|(?i:cause(d by|: )|because of|due to)")
    found: list[tuple[str, ast.AST]] = []
    for folder in ("bot", "workers", "policies"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            nodes = list(ast.walk(ast.parse(text))) if matters.search(text) else []
            docs = {
                id(node.body[0].value)
                for node in nodes
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
                and node.body
                and isinstance(node.body[0], ast.Expr)
            }
            found += [(str(path.relative_to(ROOT)), node) for node in nodes if id(node) not in docs]
    return tuple(found)


def test_no_verdict_is_made_beside_the_judge_and_none_is_made_verified_afterwards() -> None:
    """What `Verdict` itself refuses cannot be got around: validation is not skipped, and no word is written over."""
    makers = {"policies/causes/judge.py", "policies/causes/last_change.py"}
    around = []
    for name, node in _product():
        if isinstance(node, ast.Attribute) and node.attr in {"model_construct", "__setattr__"}:
            around.append(f"{name}: {node.attr}")
        if isinstance(node, ast.Call):
            words = {keyword.arg for keyword in node.keywords}
            made = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if made == "Verdict" and "citations" in words and name not in makers:
                around.append(f"{name}: Verdict(...)")
        given = [node.value] if isinstance(node, ast.keyword) else node.values if isinstance(node, ast.Dict) else []
        if any(isinstance(value, ast.Constant) and value.value == "verified" for value in given):
            around.append(f"{name}: 'verified' is given")
    assert around == []


def test_no_text_beside_the_sentences_speaks_of_a_cause_to_anybody() -> None:
    """A literal that begins like a statement of a cause, wherever it stands."""
    claims = re.compile(r"(?i)^\W*(the |root )*cause(d by|: )|\b(because of|due to|caused by) \{?")
    allowed = set(causes.SENTENCES.values())
    found = [
        f"{name}: {node.value[:60]}"
        for name, node in _product()
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and claims.search(node.value)
        and not (name == "bot/messages/causes.py" and node.value in allowed)
    ]
    assert found == []
