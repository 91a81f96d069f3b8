"""Golden cases of the chat grammar: text -> command, or the code of the refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

import pytest
from pydantic import JsonValue

from bot.commands import COMMANDS, find, help_lines
from bot.commands.base import KNOB
from bot.commands.not_built import NOT_BUILT, not_built
from bot.grammar import Names, Reading, parse, parse_slash, render
from tests.shared import ROOT

GOLDEN = ROOT / "tests" / "golden" / "grammar"
NAMES = Names(
    knobs={"TARGET_CTAS": "SGLANG_SM120_MMA_TARGET_CTAS", "DECODE_STREAMS": "SGLANG_DECODE_STREAMS"},
    services=frozenset({"prefill", "decode", "router", "cache"}),
    hosts=frozenset({"gpu1", "gpu2", "cache"}),
    orders=frozenset({"co-restart", "decode-only"}),
    instances=frozenset({"prefill@gpu1", "decode@gpu1", "router@gpu1", "cache@gpu2", "decode@cache"}),
    causes=frozenset({"queued-behind-load", "cold-start"}),
)


class Case(TypedDict, total=False):
    text: str
    command: dict[str, JsonValue]
    normalised: str
    code: str
    hint: str


def cases(name: str) -> list[Case]:
    loaded: list[Case] = json.loads((Path(GOLDEN) / f"{name}.json").read_text())
    return loaded


def as_slack_sends(text: str) -> str:
    """What Slack makes of typed text on its way to an app."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def command_of(reading: Reading) -> dict[str, JsonValue]:
    assert reading.error is None, reading.error
    assert reading.command is not None
    return {"kind": reading.command.kind, **reading.command.model_dump(mode="json", exclude_defaults=True)}


def code_of(reading: Reading) -> str:
    assert reading.command is None
    assert reading.error is not None, reading.normalised
    return reading.error.code


@pytest.mark.parametrize("case", cases("plain"), ids=lambda case: case["text"])
def test_a_plain_command_is_read_as_it_stands(case: Case) -> None:
    reading = parse(case["text"])
    assert command_of(reading) == case["command"]
    assert reading.normalised == case.get("normalised", case["text"])
    assert not reading.changed


@pytest.mark.parametrize("case", cases("typing"), ids=lambda case: ascii(case["text"]))
def test_what_keyboards_and_slack_do_is_taken_back_and_said(case: Case) -> None:
    reading = parse(case["text"])
    assert command_of(reading) == case["command"]
    assert reading.normalised == case["normalised"]
    assert reading.changed
    again = parse(as_slack_sends(reading.normalised))
    assert again.command == reading.command
    assert again.normalised == reading.normalised


@pytest.mark.parametrize("case", cases("refused"), ids=lambda case: ascii(case["text"]))
def test_unclear_or_hostile_text_is_refused_by_code(case: Case) -> None:
    reading = parse(case["text"])
    assert code_of(reading) == case["code"]
    assert reading.error is not None
    assert reading.error.hint
    if "hint" in case:
        assert reading.error.hint == case["hint"]


@pytest.mark.parametrize("case", cases("names"), ids=lambda case: case["text"])
def test_a_name_that_the_fleet_does_not_know_gets_a_suggestion(case: Case) -> None:
    assert parse(case["text"]).error is None or case["code"] == "unknown-knob"
    reading = parse(case["text"], names=NAMES)
    assert code_of(reading) == case["code"]
    assert reading.error is not None
    assert reading.error.hint == case["hint"]


@pytest.mark.parametrize("where", ["decode", "gpu1", "decode@gpu1", "cache@gpu2"])
@pytest.mark.parametrize("words", ["/knob set TARGET_CTAS=512 on", "/deploy restart"])
def test_a_known_scope_is_accepted(words: str, where: str) -> None:
    reading = parse(f"{words} {where} via co-restart", names=NAMES)
    assert command_of(reading)["scope"] == where


def test_a_slash_command_comes_in_two_parts() -> None:
    reading = parse_slash("/knob", "restore TARGET_CTAS=512")
    assert command_of(reading) == {"kind": "restore", "knob": "TARGET_CTAS", "value": "512"}
    assert reading.normalised == "/knob restore TARGET_CTAS=512"
    assert not reading.changed
    assert command_of(parse_slash("/knob", "")) == {"kind": "help"}


def test_a_foreign_letter_is_named_with_its_place() -> None:
    reading = parse("/knob set T\u0410RGET_CTAS=512")
    assert reading.error is not None
    assert "CYRILLIC CAPITAL LETTER A (U+0410)" in reading.error.message
    assert "at its character 2" in reading.error.message


def test_what_is_not_built_is_said_in_plain_words() -> None:
    reading = parse("/knob try TARGET_CTAS=512 at C64 x5")
    assert reading.error is not None
    assert reading.error.message == "`/knob try` is not available in this version"


def test_four_megabytes_are_refused_and_only_their_start_is_quoted() -> None:
    reading = parse("/knob set TARGET_CTAS=" + "9" * 4_000_000)
    assert code_of(reading) == "too-long"
    assert reading.error is not None
    assert len(reading.error.message) < 200
    assert "at most 2000 characters" in reading.error.message
    assert reading.normalised == ""


def test_the_longest_text_is_still_read() -> None:
    text = 'revert X because "' + "a" * (2000 - 19) + '"'
    assert len(text) == 2000
    assert parse(text).error is None
    assert code_of(parse(text + " ")) == "too-long"


@pytest.mark.parametrize(
    "text",
    ["/knob <@U1>", "/knob set X=1 <@U1|x>", "&lt;@U1&gt;", "confirm &lt;@U1&gt;", "/&lt;@U1&gt;", "set X=&lt;@U1"],
)
def test_a_refusal_mentions_nobody(text: str) -> None:
    reading = parse(text)
    assert reading.error is not None
    for part in (reading.error.message, reading.error.hint):
        assert "<" not in part
        assert "`" not in part


def test_every_example_and_its_usage_agree() -> None:
    for one in COMMANDS:
        reading = parse(f"{one.families[0]} {one.example}")
        if one.families != KNOB:  # help names the family of all others
            assert parse(help_lines(one.word, lambda _: True)[0].example).command == reading.command
        assert reading.error is None, one.word
        assert reading.command is not None
        assert one.write(reading.command) is not None
        # of two the family's name is the word
        assert one.usage.startswith({"deploy": "SERVICE REF", "cause": '"..."|NAME'}.get(one.word, one.word))
        assert parse(render(reading.command)).command == reading.command


def test_every_command_word_is_there_once_and_built() -> None:
    words = [(family, one.word) for one in COMMANDS for family in one.families]
    assert len(words) == len(set(words))
    for family, absent in NOT_BUILT.items():
        for word in absent:
            found = find(word, family)
            assert found is None or family not in found.families
            assert (not_built(family, word) or "").startswith(family)


@pytest.mark.parametrize(
    "text",
    [
        "set " + "X" * 1990,
        "X" * 2000,
        'set X="' + "\u0430" * 1990 + '"',
        "set X=" + "'" * 1990,
        "set X=1 because " + "“" * 1900,
        "revert X citing " + "(" * 1900,
        "revert X citing " + "a," * 900,
        "&lt;" * 500,
        "<" * 2000,
        "on " * 660,
        "set X=" + "\u200b" * 1900,
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_a_long_text_of_one_kind_gets_an_answer(text: str) -> None:
    reading = parse(text, names=NAMES)
    assert (reading.command is None) == (reading.error is not None)
    if reading.error is not None:
        assert len(reading.error.message) < 200


def test_help_shows_only_what_this_person_may_run() -> None:
    lines = help_lines(None, lambda word: word in {"show", "restore"})
    assert [line.word for line in lines] == ["restore", "show"]
    assert lines[0].usage == 'restore NAME[=VALUE] [on SCOPE] [via ORDER] [emergency because "..."] [ticket ID] [dry]'
    assert help_lines("set", lambda word: word != "set") == ()
    assert [line.word for line in help_lines("set", lambda _: True)] == ["set"]
    assert len(help_lines(None, lambda _: True)) == len(COMMANDS)
    (restart,) = help_lines("restart", lambda _: True)
    assert restart.usage == '/deploy restart SCOPE [via ORDER] [[emergency] because "..." [anyway]] [ticket ID] [dry]'
    assert restart.example.startswith("/deploy restart decode ")
