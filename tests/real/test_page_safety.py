"""Text of people and apps stays text at the page, whatever it says; what the page cannot draw does not break it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from sandbox.slack.records import Json
from tests.real.page_browser import Room, Tab, button, chromium, room, text

IMAGE = '<img src=x onerror="window.harmed=1">'
HOSTILE = (
    IMAGE,
    "&lt;script&gt;window.harmed=1&lt;/script&gt;",
    "<javascript:window.harmed=1|click>",
    "<data:text/html,hello|click>",
    '<http://x.example/" onclick=window.harmed=1|click>',
    "*<svg onload=window.harmed=1>*",
    "```</code><img src=x onerror=window.harmed=1>```",
    "<!date^1764600000^<img src=x onerror=window.harmed=1>|fallback>",
    "<@U0ANA|<img src=x>> <!subteam^S0|<b>x</b>> <#C0|<i>y</i>>",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def here() -> Iterator[Room]:
    with room(with_app=False, judged=False) as made:
        yield made


@pytest.fixture
def tab(browser: Browser, here: Room) -> Iterator[Tab]:
    made = Tab(browser, here, "ana")
    yield made
    made.close()


def raw(here: Room, words: str, blocks: list[Json] | None = None) -> None:
    """A message of the app that no judge has seen."""
    here.slack.workspace.post("C0SERVING", "U0CLAWBACK", words, bot_id="B0CLAWBACK", blocks=blocks)


def harmless(tab: Tab) -> None:
    """Nothing ran, no element came from a text, and no link leads anywhere but to the web."""
    assert tab.page.evaluate("window.harmed") is None
    assert tab.page.locator("#feed :is(script, svg, iframe, b > b, i)").count() == 0
    assert tab.page.locator("#feed img").count() == 0
    for link in tab.page.locator("#feed a").all():
        assert (link.get_attribute("href") or "").startswith(("http://", "https://", "#"))


def test_hostile_texts_stay_texts(here: Room, tab: Tab) -> None:
    for words in HOSTILE:
        raw(here, words)
        here.slack.people.say("ben", "serving", words)
    expect(tab.page.locator("#feed .message")).to_have_count(2 * len(HOSTILE))
    expect(tab.page.locator("#feed .body").first).to_have_text(IMAGE)
    harmless(tab)


def test_hostile_blocks_stay_texts(here: Room, tab: Tab) -> None:
    here.slack.workspace.add_user(IMAGE, user_id="U0EVIL")
    with here.slack.workspace.change():
        here.slack.workspace.channels["C0SERVING"].members.add("U0EVIL")
    for words in HOSTILE:
        elements: list[Json] = [{"type": "text", "text": words}, {"type": "user", "user_id": "U0EVIL"}]
        elements.append({"type": "link", "url": "javascript:window.harmed=1", "text": words})
        blocks: list[Json] = [
            {"type": "header", "text": text(words, "plain_text")},
            {"type": "section", "text": text(words), "fields": [text(words)]},
            {"type": "context", "elements": [text(words), {"type": "image", "alt_text": words, "image_url": "x"}]},
            {"type": "image", "image_url": "javascript:window.harmed=1", "alt_text": words, "title": text(words)},
            {"type": "markdown", "text": words + "\n# " + words + f"\n[a](javascript:window.harmed=1) **{words}**"},
            {"type": "table", "rows": [[{"type": "raw_text", "text": words}]] * 2},
            {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]},
            {"type": "actions", "elements": [button("go", words, url="javascript:window.harmed=1")]},
        ]
        raw(here, "hostile", blocks)
    expect(tab.page.locator("#feed .message")).to_have_count(len(HOSTILE))
    harmless(tab)
    tab.page.get_by_role("button", name=IMAGE).first.click()
    tab.page.locator("#traffic").click()
    expect(tab.page.locator("#rows li").first).to_be_visible()
    assert len(tab.context.pages) == 1
    harmless(tab)


def test_blocks_that_are_wrong_or_unknown_do_not_break_the_page(here: Room, tab: Tab) -> None:
    odd: list[Json] = [
        {"type": "section"},
        {"type": "actions", "elements": []},
        {"type": "table", "rows": []},
        {"type": "hologram", "text": "?"},
        {"type": "rich_text", "elements": [{"type": "rich_text_hologram"}]},
        {"type": "actions", "elements": [{"type": "datepicker", "action_id": "d"}]},
        {"type": "constructor"},
        {"type": "section", "text": text("and this one is drawn")},
    ]
    raw(here, "odd", odd)
    expect(tab.page.locator("#feed .block").last).to_have_text("and this one is drawn")
    expect(tab.page.locator("#feed .unknown", has_text="hologram: not drawn here").first).to_be_visible()


def test_a_very_long_and_nested_text_is_drawn_at_once(here: Room, tab: Tab) -> None:
    for words in ("*_~`" * 9_000, "<" * 40_000, "*a _b " * 6_000, "> " * 15_000, "```" * 9_999):
        raw(here, words)
    expect(tab.page.locator("#feed .message")).to_have_count(5)


def test_mrkdwn_is_drawn_as_it_is_meant(here: Room, tab: Tab) -> None:
    raw(here, "*bold* _it_ ~gone~ `a *b* &amp; c` 2*3*4 TARGET_CTAS_X <https://x.example/?a=1&amp;b=2|site> :tada:")
    body = tab.page.locator("#feed .body").first
    expect(body).to_have_text("bold it gone a *b* & c 2*3*4 TARGET_CTAS_X site :tada:")
    expect(body.locator("strong")).to_have_text("bold")
    expect(body.locator("em")).to_have_text("it")
    expect(body.locator("s")).to_have_text("gone")
    expect(body.locator("code")).to_have_text("a *b* & c")
    expect(body.locator("a")).to_have_attribute("href", "https://x.example/?a=1&b=2")
    raw(here, "&gt; quoted\n• one\n• two\n```\nfirst &lt;line&gt;\nsecond\n```")
    body = tab.page.locator("#feed .body").last
    expect(body.locator("blockquote")).to_have_text("quoted")
    expect(body.locator(".item")).to_have_count(2)
    assert body.locator("pre").inner_text() == "first <line>\nsecond"


def test_date_tokens_are_in_the_readers_time_with_the_fallback_as_title(here: Room, tab: Tab) -> None:
    raw(
        here,
        "<!date^1764600000^{date_num} {time_secs}|14:40:00 UTC> and <!date^1764600000^{time}^https://x.example|14:40>",
    )
    dates = tab.page.locator("#feed .body time")
    expect(dates).to_have_text(["2025-12-01 15:40:00", "15:40"])
    assert dates.first.get_attribute("title") == "14:40:00 UTC"
    assert dates.first.get_attribute("datetime") == "2025-12-01T14:40:00.000Z"
    expect(tab.page.locator("#feed .body a time")).to_have_text("15:40")
