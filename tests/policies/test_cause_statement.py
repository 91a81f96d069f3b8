"""Statements about readings: what is read, what is refused and where, and that text and tree are one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.causes.parsing import read_statement
from policies.causes.query import families_of
from policies.causes.scanning import Malformed
from policies.causes.statement import (
    Compared,
    Either,
    Every,
    InState,
    Metric,
    Not,
    Statement,
    Trend,
    metrics_of,
    speaks_of_state,
)
from tests.policies.statements import statements

QUEUE, TTFT = Metric("queue_reqs"), Metric("ttft_s")


def read(text: str) -> Statement:
    found = read_statement(text)
    assert not isinstance(found, Malformed), found
    return found


def refused(text: str) -> Malformed:
    found = read_statement(text)
    assert isinstance(found, Malformed), found
    return found


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("queue_reqs > 0", Compared(QUEUE, ">", 0)),
        ("queue_reqs>=1e3", Compared(QUEUE, ">=", 1000)),
        ("queue_reqs != -.5", Compared(QUEUE, "!=", -0.5)),
        ("ttft_s falling", Trend(TTFT, "falling")),
        ("ttft_s  not\trising", Trend(TTFT, "rising", negated=True)),
        ("not ttft_s rising", Not(Trend(TTFT, "rising"))),
        ("state == idle", InState("idle")),
        ("state!=hung", InState("hung", negated=True)),
        ("queue_reqs > 0 or state == busy and ttft_s falling",
         Either((Compared(QUEUE, ">", 0), Every((InState("busy"), Trend(TTFT, "falling")))))),
        ("(queue_reqs > 0 or state == busy) and (ttft_s falling)",
         Every((Either((Compared(QUEUE, ">", 0), InState("busy"))), Trend(TTFT, "falling")))),
        ("(a + b) / 2 > 1", Compared(Metric("(a + b) / 2", free=True), ">", 1)),
        ('"queue_reqs" > 0', Compared(Metric("queue_reqs", free=True), ">", 0)),
        ("'sum(a) and b' > 0", Compared(Metric("sum(a) and b", free=True), ">", 0)),
        ('sum(x{a=")>0 and"}) > 0', Compared(Metric('sum(x{a=")>0 and"})', free=True), ">", 0)),
        ('"x{a=\\"b\\"}" rising', Trend(Metric('x{a="b"}', free=True), "rising")),
        ("sglang:num_queue_reqs > 0", Compared(Metric("sglang:num_queue_reqs", free=True), ">", 0)),
    ],
)  # fmt: skip
def test_a_statement_is_read_as_it_is_meant(text: str, tree: Statement) -> None:
    assert read(text) == tree


@pytest.mark.parametrize(
    ("text", "at", "said", "hint"),
    [
        ("", 0, "found nothing, expected a comparison", "queue_reqs > 0"),
        ("queue_reqs", 10, "found the end behind 'queue_reqs', expected a comparison", "queue_reqs > 0"),
        ("queue_reqs is high", 0, "expected a metric or a query", "in quotes"),
        ("queue_reqs = 5", 11, "found '=', expected a comparison", "write =="),
        ("queue_reqs => 5", 11, "found '=>', expected a comparison", "=="),
        ("ttft_s > 5s", 9, "found '5s', expected a number without a unit", "600"),
        ("queue_reqs > running_reqs", 13, "expected a number", "two metrics inside a query"),
        ("queue_reqs > 1e999", 13, "expected a number", "600"),
        ("600 > uptime_s", 0, "expected a metric before the comparison", "in quotes"),
        ("queue_reqs > 0 AND state == idle", 15, "found 'AND', expected and, or", "did you mean 'and'?"),
        ("queue_reqs > 0 queue_reqs > 1", 15, "found 'queue_reqs'", "join the parts by and, or"),
        ("queue_reqs > 0)", 14, "found ')'", "remove it"),
        ("(queue_reqs > 0", 0, "found '(' and no ')'", "close"),
        ("sum(x]) > 0", 5, "found ']', expected ')'", "order"),
        ('"sum(x) > 0', 0, "no second one", "close the quote"),
        ("state == idel", 9, "expected a state", "did you mean 'idle'?"),
        ("state > 3", 6, "expected == or !=", "state != idle"),
        ("ttft_s not dropping", 11, "found 'dropping' behind not, expected falling or rising", "not falling"),
        ("and state == idle", 0, "'and', a word of this language", "fleet metric"),
        ("queue_reqs > 0 or", 17, "found the end, expected a metric", "fleet metric"),
        ("x[5m] > 0", 0, "a whole range, expected one number", "rate"),
        ("x # y", 2, "expected no comment", "remove"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place_and_a_hint(text: str, at: int, said: str, hint: str) -> None:
    found = refused(text)
    assert found.at == at
    assert said in found.message
    assert hint in found.hint


@pytest.mark.parametrize(
    "text",
    [
        "x" + "+x" * 200 + " > 0",  # the parser of queries would end the whole process
        '"' + "-" * 400 + 'x" > 0',
        "sum(" * 90 + "x" + ")" * 90 + " > 0",
        "(" * 200 + "a > 0" + ")" * 200,
        "not " * 300 + "a > 0",
        "a > 0 or " * 400 + "a > 0",
    ],
)
def test_a_statement_that_would_exhaust_the_reader_is_refused(text: str) -> None:
    assert "expected" in refused(text).message


@given(statements())
def test_a_statement_written_and_read_again_is_the_same(tree: Statement) -> None:
    text = str(tree)
    assert read(text) == tree
    assert str(read(text)) == text


@given(statements(), st.data())
def test_blanks_between_the_parts_change_nothing(tree: Statement, data: st.DataObject) -> None:
    parts = str(tree).split(" and ")
    wide = data.draw(st.sampled_from(["  and\t", " and\n", " and "]))
    if any("'" in part or '"' in part for part in parts):
        return  # an `and` inside a query is the query's own
    assert read(f" {wide.join(parts)} ") == tree


@given(st.text(max_size=60) | st.text(alphabet="()<>=!\"'`{}[] abnot.0#\\\n", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    found = read_statement(text)
    if isinstance(found, Malformed):
        assert 0 <= found.at <= len(text)
        assert found.hint
        assert "expected" in found.message
        assert (found.message + found.hint).isprintable()
    else:
        assert read_statement(str(found)) == found


def test_metrics_are_listed_once_and_states_are_seen() -> None:
    tree = read('queue_reqs > 0 or not (queue_reqs < 5 and "sum(a)" falling)')
    assert metrics_of(tree) == (QUEUE, Metric("sum(a)", free=True))
    assert not speaks_of_state(tree)
    assert speaks_of_state(read("queue_reqs > 0 and not (state == idle)"))


def test_a_query_names_what_it_selects() -> None:
    assert families_of('sum(rate(a[1m])) / on(b) max by (c) (d{e="f"} > 5) + -g') == {"a", "d", "g"}
