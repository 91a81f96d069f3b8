"""User text in messages: it can be read, and it cannot do anything."""

from __future__ import annotations

import pytest

from bot.escape import code, mrkdwn, shown, visible


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("<!channel> look", "&lt;!channel&gt; look"),
        ("<@U123>", "&lt;@U123&gt;"),
        ("@here now", "@\u2060here now"),
        ("@hereafter", "@hereafter"),
        ("a\n> quoted", "a &gt; quoted"),
        ("a\u202eb\u200bc", "abc"),
        ("bell\u0007 half\ud800", "bell\ufffd half\ufffd"),
        ("already &lt;", "already &amp;lt;"),
    ],
)
def test_mrkdwn_is_shown_and_does_nothing(text: str, safe: str) -> None:
    assert mrkdwn(text) == safe


def test_a_code_span_cannot_be_left() -> None:
    assert code("a`b") == "`a'b`"
    assert code("") == '`""`'
    assert code("<!here>") == "`&lt;!here&gt;`"


def test_shown_text_is_short_and_plain() -> None:
    assert shown("512") == "512"
    assert shown("x" * 40) == "x" * 40
    assert shown("x" * 41) == "x" * 39 + "…"
    assert len(shown("x" * 4_000_000)) == 40
    assert shown("\u200b" * 4_000 + "x") == "…"
    assert shown("<@U1> `rm`") == "‹@U1> 'rm'"


def test_visible_text_is_one_line() -> None:
    assert visible("a\u2028b\tc\u00a0d") == "a b c d"
