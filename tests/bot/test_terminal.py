"""Cards and lines at a terminal: names, local times, no markup, and nothing that acts on the screen."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone

import pytest

from bot.cards.kit import Card, actions, context, section
from bot.markup import mention
from bot.messages import say
from bot.terminal import lines_of, names_of, plain
from bot.times import clock, day_clock

NAMES = names_of({"ana": "U01ANA", "ana-build": "U01ANA", "ben": "U02BEN"})
AT = 1_764_600_000.0  # 2025-12-01 14:40:00 UTC


def shown(text: str) -> str:
    return plain(text, NAMES, UTC)


def test_a_user_is_named_as_the_fleet_file_names_them() -> None:
    assert shown(f"asked by {mention('U01ANA')}, {mention('U02BEN')}") == "asked by @ana, @ben"


def test_somebody_whom_the_fleet_file_does_not_name_stays_an_id() -> None:
    assert shown(f"{mention('U0GUS')} {mention('S0PERF')}") == "@U0GUS @S0PERF"


def test_a_moment_is_local_time() -> None:
    assert shown(clock(AT)) == "14:40:00"
    assert shown(day_clock(AT)) == "2025-12-01 14:40:00"
    assert plain(clock(AT), NAMES, timezone(timedelta(hours=2))) == "16:40:00"


def test_a_form_that_is_not_known_shows_its_fallback() -> None:
    assert shown("<!date^1^{ago}|01:00 UTC>") == "01:00 UTC"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("*co-restart* prefill", "co-restart prefill"),
        ("2*3*4 and a*b", "2*3*4 and a*b"),
        ("1 &lt; 2 &amp;amp; &gt;", "1 < 2 &amp; >"),
        ("now `512`", "now `512`"),
    ],
)
def test_markup_goes_and_text_stays(text: str, wanted: str) -> None:
    assert shown(text) == wanted


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x1b]0;title\x07", "\r", "\u202e", "\x9b31m", "&#27;[2J", "\u200b"])
def test_nothing_that_acts_reaches_the_screen(hostile: str) -> None:
    told = shown(f"journal: {hostile}x")
    assert all(char.isprintable() for char in told)
    assert "\x1b" not in told


def test_a_person_cannot_write_a_mention_or_a_date() -> None:
    said = say("error.told", message="<@U02BEN> <!date^1^{time_secs}|x>")
    assert shown(said) == "<@U02BEN> <!date^1^{time_secs}|x>"


def test_a_card_is_its_lines_without_its_buttons() -> None:
    button = {"type": "button", "action_id": "a", "text": {"type": "plain_text", "text": "Confirm"}}
    card = Card("short", (section("*head*", "line"), context("small"), actions([button])))
    assert lines_of(card, NAMES, UTC) == ["head", "line", "small"]
    assert lines_of(Card("only text"), NAMES, UTC) == ["only text"]
