"""Whether everybody can use the page: contrast, names and roles, keyboard alone, a phone, less motion."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from sandbox.pictures import take_pictures
from tests.real.page_browser import STEPS, Room, Tab, card, chromium, room, text

CHECKS = Path(__file__).with_name("page_checks.js").read_text()


def check(page: Page, name: str) -> Any:
    """Ask one of the questions of page_checks.js."""
    return page.evaluate(f"({CHECKS}).{name}()")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def here() -> Iterator[Room]:
    with room() as made:
        fill(made)
        yield made


def fill(made: Room) -> None:
    """A channel with everything that can be drawn."""
    people = made.slack.people
    people.say("ana", "serving", "the harness hangs again, see *dashboards* and `nvidia-smi` @ben")
    people.say("ben", "serving", "@approvers nothing in the queue\n> quoted\n```\nsome code\n```")
    rows = [
        [{"type": "raw_text", "text": cell} for cell in row] for row in (("knob", "desired"), ("TARGET_CTAS", "512"))
    ]
    menu = [{"text": text("decode", "plain_text"), "value": "d"}]
    made.post(
        "table",
        blocks=[
            {"type": "header", "text": text("Knobs", "plain_text")},
            {"type": "table", "rows": rows},
            {"type": "divider"},
            {
                "type": "section",
                "text": text("*scope* <https://x.example|site>"),
                "accessory": {"type": "overflow", "action_id": "o", "options": menu},
            },
            {
                "type": "actions",
                "elements": [
                    {
                        "type": "static_select",
                        "action_id": "s",
                        "placeholder": text("Order", "plain_text"),
                        "options": menu,
                    }
                ],
            },
            {"type": "image", "image_url": "https://x.example/a.png", "alt_text": "effect per concurrency"},
        ],
    )
    for who in ("U0ANA", "U0BEN"):
        made.slack.workspace.post(
            "C0SERVING", "U0CLAWBACK", "only `you` <@U0BEN>", bot_id="B0CLAWBACK", ephemeral_to=who
        )
    parent = made.post("plan", blocks=card())
    for line in STEPS:
        made.post(line, thread_ts=parent)
    made.web.chat_update(channel="C0SERVING", ts=parent, text="plan", blocks=card())
    people.command("ana", "serving", "/nobody listens")


def everything(page: Page) -> Iterator[str]:
    """Open one thing after the other; each time the page is to be looked at."""
    page.locator("#feed .card").last.wait_for()
    yield "channel"
    page.locator("#feed .replies").last.click()
    page.locator("#replies .message").last.wait_for()
    yield "thread"
    page.locator("#close-thread").click()
    page.locator("#field").press_sequentially("/k")
    page.locator("#field-list li").first.wait_for()
    page.keyboard.press("ArrowDown")
    yield "suggestions"
    page.keyboard.press("Escape")
    page.locator("#field").fill("")
    page.locator("#traffic").click()
    page.locator("#rows summary").first.click()
    yield "traffic"
    page.locator("#faults").click()
    page.locator(".faults").wait_for()
    yield "faults"
    page.locator("#close-drawer").click()
    page.get_by_role("button", name="Confirm co-restart").first.click()
    yield "question"
    page.keyboard.press("Escape")
    page.locator("#keys").click()
    yield "keys"
    page.keyboard.press("Escape")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(browser: Browser, here: Room, scheme: str) -> None:
    ana = Tab(browser, here, "ana", scheme=scheme)
    low: dict[str, list[str]] = {}
    for what in everything(ana.page):
        seen = check(ana.page, "contrast")
        assert seen["looked"] > 30
        low |= {what: seen["found"]} if seen["found"] else {}
    assert low == {}
    ana.close()


def test_everything_has_a_name_and_a_role(browser: Browser, here: Room) -> None:
    ana = Tab(browser, here, "ana")
    for what in everything(ana.page):
        found = check(ana.page, "names")
        assert found == {"nameless": [], "doubled": [], "dangling": [], "pictures": 0, "headings": 1}, what
    page = ana.page
    for role, name in (
        ("log", "Messages"),
        ("navigation", "Channels"),
        ("textbox", "Message #serving, or type / for a command"),
        ("combobox", "Act as"),
    ):
        expect(page.get_by_role(role, name=name, exact=True)).to_be_visible()  # type: ignore[arg-type]  # four known roles
    assert page.locator("html").get_attribute("lang") == "en"
    ana.close()


def test_the_theme_follows_the_system_until_it_is_chosen(browser: Browser, here: Room) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    shown = {}
    for scheme in ("light", "dark"):
        ana = Tab(browser, here, "ana", scheme=scheme)
        shown[scheme] = ana.page.evaluate(ground)
        ana.page.get_by_role("button", name="Dark or light").click()
        shown["not " + scheme] = ana.page.evaluate(ground)
        ana.page.reload()
        ana.page.locator("#feed .card").last.wait_for()
        assert ana.page.evaluate(ground) == shown["not " + scheme]
        ana.close()
    assert shown["light"] == shown["not dark"] == "rgb(253, 252, 250)"
    assert shown["dark"] == shown["not light"] == "rgb(20, 23, 26)"


def test_nothing_is_wider_than_a_phone(browser: Browser, here: Room) -> None:
    ana = Tab(browser, here, "ana", width=360)
    for what in everything(ana.page):
        assert check(ana.page, "wide") == [], what
    ana.close()


def test_on_a_phone_the_thread_covers_the_channel_and_the_menu_opens(browser: Browser, here: Room) -> None:
    ana = Tab(browser, here, "ana", width=360)
    page = ana.page
    expect(page.get_by_role("navigation")).to_be_hidden()
    page.get_by_role("button", name="Channels").click()
    page.get_by_role("link", name="#random").click()
    expect(page.locator("#title")).to_have_text("#random")
    expect(page.get_by_role("navigation")).to_be_hidden()
    page.go_back()
    page.locator("#feed .replies").last.click()
    box = page.locator("#thread").bounding_box()
    assert box is not None
    assert (box["x"], box["width"]) == (0, 360)
    assert page.locator("#main").evaluate("(main) => main.inert")
    page.go_back()
    expect(page.locator("#thread")).to_be_hidden()
    assert not page.locator("#main").evaluate("(main) => main.inert")
    ana.close()


def test_a_button_is_reached_and_clicked_with_the_keyboard_alone(browser: Browser, here: Room) -> None:
    ana = Tab(browser, here, "ana")
    page = ana.page
    before = len(here.slack.people.envelopes)
    ringed = []
    for _ in range(60):
        page.keyboard.press("Tab")
        ringed.append(check(page, "ringed"))
        if page.evaluate("document.activeElement.textContent") == "Deny":
            break
    assert page.evaluate("document.activeElement.textContent") == "Deny"
    assert all(ringed)
    page.keyboard.press("Enter")
    expect(page.locator(".ephemeral").last).to_contain_text("somebody else decides")
    (clicked,) = here.slack.people.envelopes[before:]
    assert clicked.payload["actions"][0]["action_id"] == "deny"
    ana.close()


def test_shortcuts_do_what_the_list_says(browser: Browser, here: Room) -> None:
    ana = Tab(browser, here, "ana")
    page = ana.page
    page.locator("#feed").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("k")
    expect(page.locator("#feed .message").last).to_be_focused()
    for key, part in (("t", "#rows"), ("f", ".faults")):
        page.locator("#feed").focus()
        page.keyboard.press(key)
        expect(page.locator(part)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#drawer")).to_be_hidden()
    page.locator("#feed").focus()
    page.keyboard.press("/")
    expect(page.locator("#field")).to_have_value("/")
    page.keyboard.type("tf?")
    expect(page.locator("#field")).to_have_value("/tf?")
    ana.close()


def test_traffic_shows_calls_answers_and_violations_and_faults_are_switched(browser: Browser) -> None:
    with room() as own:
        ana = Tab(browser, own, "ana")
        page = ana.page
        page.locator("#faults").click()
        page.locator("[name=kind]").select_option("delay")
        page.locator("[name=method]").select_option("chat.postMessage")
        page.locator("[name=value]").fill("0.1")
        page.get_by_role("button", name="Switch on").click()
        expect(page.locator("#on")).to_have_text("a late answer, in chat.postMessage, 1 more time")
        expect(page.locator("#armed")).to_have_text("1")
        own.post("<!channel> careful")
        expect(page.locator("#on")).to_have_text("nothing")
        page.get_by_label("@ben deactivated").check()
        assert own.slack.people.wait_for(lambda: own.slack.workspace.users["U0BEN"].deleted)
        page.locator("#traffic").click()
        bad = page.locator("#rows .bad")
        expect(bad).to_contain_text("chat.postMessage1 violation: mass_mention")
        bad.locator("summary").click()
        expect(bad.locator(".wrong")).to_contain_text("the message pings everybody")
        expect(bad.locator("pre").first).to_contain_text('"text": "<!channel> careful"')
        expect(bad.locator("pre").last).to_contain_text('"fault": "delay"')
        ana.type_in("/knob list")
        expect(page.locator("#rows li", has_text="slash_commands")).to_contain_text("@ana: /knob list")
        expect(page.locator("#rows li", has_text="slash_commands")).to_contain_text("acked after")
        ana.close()


def test_pictures_are_taken_of_page_card_and_thread(here: Room, tmp_path: Path) -> None:
    # a process of its own: two drivers cannot live in one thread
    taken = pictures_elsewhere(here, tmp_path)
    assert [path.name for path in taken] == ["page-light.png", "card-light.png", "thread-light.png", "phone-light.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in taken)


def pictures_elsewhere(here: Room, folder: Path) -> list[Path]:
    """Take pictures in a thread of its own."""
    taken: list[Path] = []
    work = threading.Thread(
        target=lambda: taken.extend(
            take_pictures(here.slack.page_url, folder, person="ben", channel="serving", schemes=("light",))
        )
    )
    work.start()
    work.join(60)
    return taken
