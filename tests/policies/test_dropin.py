"""Our drop-in is written whole and read back whole, and systemd reads in it exactly what was meant."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.dropin import HEAD, DropIn, ForeignDropIn, read_dropin
from policies.systemd import unitfile
from policies.systemd.effective import effective
from policies.systemd.text import is_text
from tests.policies.systemd_tree import file_text

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
# no control characters: they are refused as values; surrogates cannot be written to a file
PIECES = [
    '"', "'", "\\", "%", "%%", "%i", "$", "`", "#", ";", " ", "=", "a", "\u2028", "\ufeff", "\\x41", "\\\\",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc"))),
    st.lists(st.sampled_from(PIECES)).map("".join),
)
VARIABLES = st.dictionaries(NAMES, st.one_of(st.none(), TEXTS), max_size=5)
GIVEN = settings(max_examples=100, deadline=None)


@GIVEN
@given(VARIABLES)
@example({"A": "a\u2028b\x85c\u2029"})
@example({"A": "\\"})
@example({"A": '"'})
@example({"A": "%"})
def test_what_is_written_is_read_back(variables: dict[str, str | None]) -> None:
    assert read_dropin(DropIn(variables).render()).variables == variables


@GIVEN
@given(VARIABLES)
def test_systemd_reads_exactly_what_was_meant(variables: dict[str, str | None]) -> None:
    text = DropIn(variables).render()
    assert (text is None) is (variables == {})
    if text is None:
        return
    base = "[Service]\n" + "".join(f"Environment={name}=base\n" for name in variables)
    for name, value in variables.items():
        ours = file_text("/d/zz-clawback.conf", text)
        found = effective(file_text("/u.service", base), (ours,), {}, "u.service", name, {name: "manager"})
        expected = value if value is None or is_text(value) else "base"  # systemd drops what is no text
        assert (found.value, found.certain, found.starts) == (expected, True, True)


@GIVEN
@given(VARIABLES)
def test_nothing_but_our_two_directives_is_written(variables: dict[str, str | None]) -> None:
    parsed = unitfile.parse(DropIn({k: v for k, v in variables.items() if is_text(v or "")}).render() or "", "f")
    assert {(d.section, d.key) for d in parsed.directives} <= {
        ("Service", "Environment"),
        ("Service", "UnsetEnvironment"),
    }
    assert parsed.findings == ()


@GIVEN
@given(VARIABLES, NAMES, TEXTS)
def test_one_variable_is_changed_and_the_others_stay(variables: dict[str, str | None], name: str, value: str) -> None:
    others = {k: v for k, v in variables.items() if k != name}
    said = DropIn(variables)
    assert said.with_value(name, value).variables == {**others, name: value}
    assert said.taking_away(name).variables == {**others, name: None}
    assert said.without(name).variables == others
    assert said.variables == variables


def test_the_file_in_full() -> None:
    text = DropIn({"B": None, "A": 'say "50%" \\'}).render()
    assert text == f'{HEAD}\n[Service]\nEnvironment="A=say \\"50%%\\" \\\\"\nUnsetEnvironment=B\n'


def test_the_order_of_asking_does_not_change_the_text() -> None:
    assert DropIn({"B": "1", "A": "2"}).render() == DropIn({"A": "2", "B": "1"}).render()


def test_no_file_and_an_empty_file_say_nothing() -> None:
    assert read_dropin(None).variables == read_dropin(f"{HEAD}\n[Service]\n").variables == {}
    assert DropIn({}).render() is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Environment=A=1", "an assignment without quotes"),
        ('Environment="A=1" "B=2"', "two assignments in a line"),
        ('Environment="A=%h"', "a specifier"),
        ('Environment="A=1\\"', "an open quote"),
        ('Environment="A=1\\n"', "an escape that we never write"),
        ('Environment="1A=1"', "a name that is none"),
        ('Environment="A"', "a name without a value"),
        ('  Environment="A=1"', "a line that is indented"),
        ('Environment="A=1" ', "a blank at the end"),
        ('Environment="A=1"\r', "a carriage return"),
        ("UnsetEnvironment=A B", "two names in a line"),
        ("UnsetEnvironment=", "an empty list"),
        ("Nice=5", "another directive"),
        ("[Unit]", "another section"),
        ("# a note", "a comment"),
        ("", "an empty line"),
    ],
)
def test_a_line_that_we_did_not_write_makes_the_file_foreign(line: str, why: str) -> None:
    with pytest.raises(ForeignDropIn, match="line 3"):
        read_dropin(f'{HEAD}\n[Service]\n{line}\nEnvironment="B=1"\n')


@GIVEN
@given(st.text())
def test_any_text_is_read_whole_or_is_foreign(text: str) -> None:
    try:
        said = read_dropin(text)
    except ForeignDropIn:
        return
    assert said.variables == {}
