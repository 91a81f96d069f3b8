"""What people do at the page of the sandbox workspace, in Chromium, beside a real Bolt app."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from sandbox.slack import SlackSandbox
from tests.real.page_browser import Room, Tab, card, chromium, room

OpenTab = Callable[..., Tab]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def shared_room() -> Iterator[Room]:
    with room() as made:
        yield made


@pytest.fixture
def here(shared_room: Room) -> Room:
    """The room, without what an earlier test left."""
    space = shared_room.slack.workspace
    for record in (space.messages, space.calls, space.envelopes, space.violations):
        record.clear()
    return shared_room


@pytest.fixture
def tab(browser: Browser, here: Room) -> Iterator[OpenTab]:
    opened: list[Tab] = []

    def make(who: str, **more: object) -> Tab:
        opened.append(Tab(browser, here, who, **more))  # type: ignore[arg-type]  # width and scheme
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def test_a_typed_command_is_answered_and_only_its_author_sees_the_echo(tab: OpenTab) -> None:
    ana, ben = tab("ana"), tab("ben")
    ana.type_in("/knob restore TARGET_CTAS=512")
    expect(ana.page.locator(".ephemeral")).to_contain_text("Only visible to you")
    expect(ana.page.locator(".ephemeral code")).to_have_text("/knob restore TARGET_CTAS=512")
    expect(ben.page.locator("#feed .card")).to_contain_text("Restore TARGET_CTAS = 512 on decode")
    assert ben.page.locator(".ephemeral").count() == 0
    assert ana.page.locator("#field").input_value() == ""


def test_words_and_earlier_commands_are_completed_with_the_keyboard(tab: OpenTab) -> None:
    ana = tab("ana")
    field, offers = ana.page.locator("#field"), ana.page.locator("#field-list li")
    field.press_sequentially("/kn")
    expect(offers).to_have_text(["/knobperformance knobs"])
    field.press("Tab")
    expect(field).to_have_value("/knob ")
    expect(offers).to_have_count(5)
    field.press("ArrowDown")
    field.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant") == "field-1"
    field.press("Enter")
    expect(field).to_have_value("/knob restore ")
    field.press("Tab")
    expect(field).to_have_value("/knob restore TARGET_CTAS=512 ")
    field.press("Enter")
    expect(ana.page.locator(".ephemeral code")).to_have_text("/knob restore TARGET_CTAS=512")
    field.press("ArrowUp")
    expect(field).to_have_value("/knob restore TARGET_CTAS=512")


def test_a_click_is_confirmed_first_and_the_thread_tells_the_steps(here: Room, tab: OpenTab) -> None:
    here.post(blocks=card())
    ben = tab("ben")
    ben.page.get_by_role("button", name="Confirm co-restart").click()
    dialog = ben.page.get_by_role("dialog")
    expect(dialog).to_contain_text("This cuts 53 requests in flight.")
    dialog.get_by_role("button", name="Not now").click()
    assert here.slack.people.envelopes == []
    ben.page.get_by_role("button", name="Confirm co-restart").click()
    dialog.get_by_role("button", name="Restart").click()
    ben.page.get_by_role("button", name=re.compile("^4 replies")).click()
    thread = ben.page.get_by_role("complementary", name="Thread")
    expect(thread.locator(".message")).to_have_count(5)
    expect(thread.locator(".message").last).to_contain_text("15:45:40 proof: 512 in the environment")
    expect(thread.locator(".message").first.locator(".edited")).to_have_text(" (edited)")
    (clicked,) = here.slack.people.envelopes
    assert clicked.payload["user"]["id"] == "U0BEN"
    assert clicked.acked_ms is not None


def test_a_reply_goes_into_the_thread_and_a_command_does_not(here: Room, tab: OpenTab) -> None:
    parent = here.post("a plan")
    ana, ben = tab("ana"), tab("ben")
    ana.page.get_by_role("button", name="Reply to clawback in a thread").click()
    expect(ana.page.locator("#thread-field")).to_be_focused()
    ana.type_in("/knob status", field="#thread-field")
    expect(ana.page.get_by_role("alert")).to_contain_text("Mention the app instead: @clawback status")
    ana.page.locator("#thread-field").fill("")
    ana.type_in("@clawback status", field="#thread-field")
    expect(ana.page.locator("#replies .message").last.locator(".mention")).to_have_text("@clawback")
    expect(ben.page.locator("#feed .replies")).to_have_text(re.compile("^1 reply"))
    assert [m["thread_ts"] for m in here.slack.people.transcript("serving")] == [None, parent]
    ana.page.keyboard.press("Escape")
    expect(ana.page.locator("#thread")).to_be_hidden()
    expect(ana.page.locator("#feed .replies")).to_be_focused()


def test_unread_messages_and_mentions_are_marked(here: Room, tab: OpenTab) -> None:
    here.slack.people.say("ana", "random", "old news")
    ben = tab("ben")
    place = ben.page.locator("#channels a", has_text="random")
    expect(place.locator(".badge.calm")).to_contain_text("1")
    place.click()
    expect(ben.page.locator("#feed .message")).to_have_text([re.compile("old news")])
    ben.page.keyboard.press("Alt+ArrowUp")
    expect(ben.page.locator("#title")).to_have_text("#serving")
    expect(place.locator(".badge")).to_have_count(0)
    here.slack.people.say("ana", "random", "@approvers look")
    expect(place.locator(".badge:not(.calm)")).to_contain_text("1")
    assert ben.page.title() == "(1) #serving · sandbox"
    place.click()
    expect(ben.page.locator("#feed .rule.fresh")).to_have_text("New")
    expect(ben.page.locator("#feed .mention.mine")).to_have_text("@approvers")


def test_acting_as_somebody_else_shows_what_they_see(here: Room, tab: OpenTab) -> None:
    here.slack.workspace.post("C0SERVING", "U0CLAWBACK", "psst", bot_id="B0CLAWBACK", ephemeral_to="U0ANA")
    page = tab("ana").page
    expect(page.locator(".ephemeral")).to_contain_text("psst")
    page.get_by_label("Act as").select_option("ben")
    expect(page.locator(".ephemeral")).to_have_count(0)
    page.locator("#field").fill("it is me")
    page.keyboard.press("Enter")
    expect(page.locator("#feed .who b")).to_have_text("ben")


def test_what_nobody_answers_is_said(browser: Browser) -> None:
    with room(with_app=False, judged=False) as empty:
        ana = Tab(browser, empty, "ana")
        expect(ana.page.locator("#link")).to_have_text("no app connected")
        ana.type_in("/knob list")
        expect(ana.page.get_by_role("alert")).to_contain_text("/knob failed: dispatch_failed (no app is connected)")
        ana.close()


def test_edits_and_deletions_arrive_and_the_page_reconnects_by_itself(browser: Browser) -> None:
    with room(with_app=False, judged=False) as own:
        slack: SlackSandbox = own.slack
        ana = Tab(browser, own, "ana")
        first, second = own.post("first"), own.post("second")
        expect(ana.page.locator("#feed .message")).to_have_count(2)
        slack.people.edit_message_behind_the_bot("serving", first, "tampered")
        slack.people.delete_message("serving", second)
        expect(ana.page.locator("#feed .body")).to_have_text(["tampered (edited)"])
        port = int(slack.page_url.rstrip("/").rsplit(":", 1)[1])
        slack.stop()
        expect(ana.page.locator("#link")).to_have_text("reconnecting…")
        slack.start(port=port)
        expect(ana.page.locator("#link")).to_have_text("no app connected")
        own.post("third")
        expect(ana.page.locator("#feed .body")).to_have_text(["tampered (edited)", "third"])
        ana.context.close()
        # while the workspace was down the browser noted refused connections, and nothing else
        assert [said for said in ana.mistakes if "net::ERR_" not in said] == []
