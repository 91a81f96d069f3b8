"""Properties of the chat grammar: it never crashes, reads back what it writes, and never reads one thing as another."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.commands import COMMANDS as COMMAND_WORDS
from bot.commands import find
from bot.escape import mrkdwn
from bot.grammar import Reading, parse, render
from bot.names import near
from bot.normalise import lookalike
from bot.options import OPTIONS
from bot.spelling import is_change
from bot.words import quote, split
from policies.deploys.strategy import sound_ref
from policies.intents import (
    Act,
    Command,
    Deploy,
    DisputeStatement,
    EvidenceAdd,
    EvidenceOf,
    Help,
    ListKnobs,
    Log,
    Reclaim,
    Restart,
    RestoreKnob,
    RevertKnob,
    Rollback,
    SetKnob,
    ShowKnob,
    StateCause,
    Status,
    UnsetKnob,
    Verify,
    WhyCause,
    WhyKnob,
)
from policies.tickets import sound_ticket

NAME = st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,12}\Z")
PLACE = NAME.filter(lambda name: name.lower() not in OPTIONS)
SCOPE = st.one_of(PLACE, st.builds("{}@{}".format, PLACE, PLACE))


def is_visible(char: str) -> bool:
    category = unicodedata.category(char)
    return char == " " or category not in {"Cc", "Cf", "Cs", "Cn", "Co", "Zs", "Zl", "Zp"}


VISIBLE = st.text(st.characters(exclude_categories=["Cs"]).filter(is_visible), max_size=30)
REASON = VISIBLE.filter(lambda text: text.strip() != "" and "<!" not in text)
VALUE = st.one_of(
    st.from_regex(r"\A[A-Za-z0-9_.,:/@%+~-]{1,20}\Z"),
    VISIBLE.filter(lambda text: lookalike(text) is None and "<!" not in text),
)
REFERENCE = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._+@:~-]{0,12}(/[a-z0-9]{1,5})?\Z").filter(
    lambda ref: ref.lower() not in OPTIONS and sound_ref(ref)
)
EXPRESSION = REASON.map(str.strip)
CHANGE = st.integers(1, 999_999_999).map("C-{}".format)
STATEMENT = st.integers(1, 999_999_999).map("st-{}".format)
CITED = st.lists(EXPRESSION, max_size=3).map(tuple)
TICKET = st.from_regex(r"\A[A-Za-z0-9#][A-Za-z0-9._/#:-]{0,12}\Z").filter(
    lambda text: text.lower() not in OPTIONS and sound_ticket(text)
)
maybe_ticket = st.none() | TICKET
maybe_scope, maybe_order, maybe_reason = st.none() | SCOPE, st.none() | PLACE, st.none() | REASON

CAUSES = st.one_of(
    st.builds(StateCause, name=PLACE, of=st.none() | CHANGE, citing=CITED),
    st.builds(StateCause, text=REASON, of=st.none() | CHANGE, citing=CITED),
)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        SetKnob,
        knob=NAME,
        value=VALUE,
        scope=maybe_scope,
        order=maybe_order,
        because=maybe_reason,
        ticket=maybe_ticket,
        dry=st.booleans(),
    ),
    st.builds(
        RestoreKnob,
        knob=NAME,
        value=st.none() | VALUE,
        scope=maybe_scope,
        order=maybe_order,
        ticket=maybe_ticket,
        dry=st.booleans(),
    ),
    st.builds(RestoreKnob, knob=NAME, order=maybe_order, because=REASON, emergency=st.just(True), ticket=maybe_ticket),
    st.builds(Deploy, service=PLACE, ref=REFERENCE, because=REASON, emergency=st.booleans(), ticket=maybe_ticket),
    st.builds(SetKnob, knob=NAME, value=VALUE, because=REASON, emergency=st.booleans(), ticket=maybe_ticket),
    st.builds(
        RevertKnob,
        knob=NAME,
        emergency=st.booleans(),
        because=REASON,
        citing=st.lists(EXPRESSION, max_size=3).map(tuple),
        scope=maybe_scope,
        order=maybe_order,
        ticket=maybe_ticket,
        dry=st.booleans(),
    ),
    st.builds(
        UnsetKnob,
        knob=NAME,
        scope=maybe_scope,
        order=maybe_order,
        because=maybe_reason,
        ticket=maybe_ticket,
        dry=st.booleans(),
    ),
    st.builds(
        Deploy,
        service=PLACE,
        ref=REFERENCE,
        order=maybe_order,
        because=maybe_reason,
        ticket=maybe_ticket,
        dry=st.booleans(),
    ),
    st.builds(Rollback, service=PLACE, order=maybe_order, because=maybe_reason, ticket=maybe_ticket, dry=st.booleans()),
    st.builds(Restart, scope=SCOPE, order=maybe_order, because=maybe_reason, ticket=maybe_ticket, dry=st.booleans()),
    st.builds(
        Restart,
        scope=SCOPE,
        order=maybe_order,
        because=REASON,
        anyway=st.booleans(),
        emergency=st.booleans(),
        ticket=maybe_ticket,
        dry=st.booleans(),
    ),
    CAUSES,
    st.builds(DisputeStatement, statement=STATEMENT, because=REASON),
    # without a fleet file the spelling says what it is about
    st.builds(WhyCause, about=CHANGE | NAME.filter(str.islower)),
    st.builds(WhyKnob, knob=NAME.filter(lambda name: not name.islower() and not is_change(name))),
    st.builds(Reclaim),
    st.builds(Verify, knob=NAME),
    st.builds(ListKnobs, scope=maybe_scope),
    st.builds(ShowKnob, knob=NAME),
    st.builds(EvidenceOf, knob=NAME.filter(lambda name: name.lower() != "add")),
    st.builds(EvidenceAdd),
    st.builds(Status, change=st.none() | CHANGE),
    st.builds(Log, since_s=st.none() | st.integers(1, 999_999).map(float), ticket=maybe_ticket),
    st.builds(Help, command=st.none() | st.sampled_from(["set", "restore", "confirm", "help"])),
    st.builds(Act, kind=st.just("confirm"), change=CHANGE, order=maybe_order),
    st.builds(Act, kind=st.sampled_from(["deny", "abort", "keep", "undo", "retry"]), change=CHANGE),
)


def sent(text: str) -> str:
    """What Slack makes of typed text on its way to an app."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def assert_harmless(reading: Reading) -> None:
    if reading.error is None:
        assert reading.command is not None
        return
    assert reading.command is None
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", reading.error.code)
    for part in (reading.error.message, reading.error.hint):
        assert part
        assert len(part) < 400
        assert "<" not in part
        assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs"} for char in part)


@settings(max_examples=400, deadline=None)
@given(st.text(st.characters(), max_size=80))
def test_any_text_at_all_gets_an_answer(text: str) -> None:
    assert_harmless(parse(text))


TRICKS = [
    *"\"'“”„«»‘’<>&!@#|=,;`$(){}[]\\ \t\n\r\u00a0\u200b\u202e\ufeff\u2014\u2013\u0410\uff11\ud800",
    "<@U1>",
    "<!here>",
    "&lt;",
    "<http://x|y>",
    "because",
    "citing",
    "ticket",
    "INC-1",
    "dry",
]


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(
        [
            "/knob set ",
            "set X=",
            "revert X because ",
            "unset X citing ",
            "/deploy restart ",
            "/deploy log ticket ",
            "set X=1 ticket ",
            "/cause ",
            "cause x of ",
            "dispute st-1 because ",
            "confirm ",
            "",
            "/",
        ]
    ),
    st.lists(st.sampled_from(TRICKS) | st.text("XaC-1 ", max_size=4), max_size=12).map("".join),
)
def test_any_mixture_of_signs_behind_a_command_gets_an_answer(start: str, rest: str) -> None:
    assert_harmless(parse(start + rest))


@settings(deadline=None)
@given(COMMANDS, st.sampled_from(["", "/knob ", "<@UBOT> ", "<@U1|name> /knob "]))
def test_a_command_that_was_written_is_read_as_the_same_command(command: Command, before: str) -> None:
    if isinstance(command, (Restart, Deploy, Rollback, Log)):
        before = before.replace("/knob", "/deploy")
    if isinstance(command, StateCause | DisputeStatement | WhyCause):
        before = before.replace("/knob", "/cause")
    reading = parse(before + sent(render(command)))
    assert reading.command == command
    assert reading.normalised == before.removeprefix("<@UBOT> ").removeprefix("<@U1|name> ") + render(command)


@settings(deadline=None)
@given(CAUSES)
def test_behind_its_own_slash_command_the_word_cause_may_be_left_out(command: StateCause) -> None:
    written = render(command).removeprefix("cause ")
    reading = parse(sent(f"/cause {written}"))
    behind = [one.word for one in COMMAND_WORDS if "/cause" in one.families]
    first = written.split(" ")[0].lower()
    if reading.command == command:
        assert reading.normalised == f"/cause {written}"
    else:  # its name is, or looks like, a word of ours
        assert near(first, behind) or find(first)
        assert parse(sent(f"/cause cause {written}")).command == command


def with_artefacts(text: str, draw: st.DataObject) -> str:
    """`text` as keyboards send it: only outside quotes, where plain ones are meant; quotes around become curly."""
    out: list[str] = []
    for word in split(text):
        bare = word.bare
        for index in sorted(draw.draw(st.sets(st.integers(0, len(bare)), max_size=2)), reverse=True):
            bare = bare[:index] + draw.draw(st.sampled_from("\u200b\u200d\ufeff\u202e\u2066\u00ad")) + bare[index:]
        bare = "".join(draw.draw(st.sampled_from("-\u2013\u2011\u2212")) if char == "-" else char for char in bare)
        quoted = "" if word.quoted is None else quote(word.quoted)
        if quoted.startswith('"') and not set(quoted[1:-1]) & set('"\\“”'):
            quoted = draw.draw(st.sampled_from(["“{}”", '"{}"', "”{}”"])).format(quoted[1:-1])
        if out and not word.glued:
            out.append(draw.draw(st.sampled_from([" ", "  ", "\u00a0", "\u202f", "\t", " \u200b "])))
        out.append(bare + quoted)
    return "".join(out)


@settings(deadline=None)
@given(COMMANDS, st.data())
def test_artefacts_change_nothing_but_the_echo(command: Command, data: st.DataObject) -> None:
    plain = render(command)
    typed = with_artefacts(plain, data)
    reading = parse(sent(typed))
    assert reading.command == command
    assert reading.normalised == plain
    assert reading.changed or typed == plain


@settings(deadline=None)
@given(COMMANDS, st.sampled_from([str.upper, str.title, str.swapcase]))
def test_the_case_of_command_words_is_folded_and_said(command: Command, fold: Callable[[str], str]) -> None:
    word, blank, rest = render(command).partition(" ")
    reading = parse(sent(fold(word) + blank + rest))
    assert reading.command == command
    assert reading.changed


EDIT = st.sampled_from([*" \"'=-,@;:.$`/\\0aZ_", "\u00a0", "\u2013", "\u2014", "\u0410", "\uff11", "“", "dry"])


@settings(max_examples=500, deadline=None)
@given(COMMANDS, st.data())
def test_one_changed_character_is_read_as_typed_or_refused(command: Command, data: st.DataObject) -> None:
    """Whatever is accepted holds every word of the text and no other; what differs from the text is said."""
    text = render(command)
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 1))
    edited = text[:at] + data.draw(EDIT | st.just("")) + text[at + cut :]
    reading = parse(sent(edited))
    if reading.command is None:
        assert_harmless(reading)
        return
    assert reading.changed or reading.normalised == edited.strip(" \t")
    written = render(reading.command)
    got = parse(sent(written))
    assert got.command == reading.command
    knob = getattr(reading.command, "knob", None)
    if knob is not None:
        assert reading.normalised.split(" ")[1].partition("=")[0] == knob
    if isinstance(reading.command, Restart):
        assert reading.normalised.split(" ")[1] == reading.command.scope
    if (ticket := getattr(reading.command, "ticket", None)) is not None:
        plain = [word.text for word in split(reading.normalised)]
        assert plain[plain.index("ticket") + 1] == ticket
    value = getattr(reading.command, "value", None)
    if value is not None:
        name, equals, typed = split(reading.normalised)[1].bare.partition("=")
        assert (name, equals) == (knob, "=")
        assert value == (typed if split(reading.normalised)[1].quoted is None else split(reading.normalised)[1].quoted)
    if not getattr(reading.command, "citing", ()):
        # a quoted value that needs no quotes is written without them, so quotes are taken off both sides
        assert unquoted(reading.normalised) == unquoted(written)


def unquoted(text: str) -> Counter[str]:
    return Counter(word.bare + (word.quoted or "") for word in split(text))


@settings(deadline=None)
@given(VISIBLE)
def test_quoted_text_reads_back_as_itself(text: str) -> None:
    (word,) = split(quote(text))
    assert (word.bare, word.quoted) == ("", text)


@settings(deadline=None)
@given(st.text(st.characters(), max_size=60))
def test_escaped_text_can_neither_ping_nor_break_a_line(text: str) -> None:
    safe = mrkdwn(text)
    assert "<" not in safe
    assert ">" not in safe
    assert "\n" not in safe
    assert re.search(r"&(?!amp;|lt;|gt;)", safe) is None
    assert re.search(r"@(channel|here|everyone)\b", safe, re.IGNORECASE) is None
    safe.encode()
