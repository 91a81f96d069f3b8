"""Files and forms at the page of the sandbox workspace, in Chromium: pictures, drops, modals with file inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from slack_bolt import Ack, App
from slack_bolt.adapter.socket_mode import SocketModeHandler

from bot.hangup import hang_up
from bot.pictures import effect_png
from sandbox.slack.records import Json
from tests.policies.runs import arm, ask
from tests.real.page_browser import Room, Tab, chromium, room, text

CHECKS = Path(__file__).with_name("page_checks.js").read_text()
ALT = "improves: output tok/s. C64 +12.8 %, n=4"
PICTURE = effect_png(ask(arm([1000, 1004, 997, 1002]), arm([1128, 1130, 1127, 1129])))
DROP = """(at, [name, words]) => {
  const data = new DataTransfer();
  data.items.add(new File([words], name));
  at.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def here() -> Iterator[Room]:
    with room(with_app=False) as made:
        yield made


@pytest.fixture
def page(browser: Browser, here: Room) -> Iterator[Page]:
    space = here.slack.workspace
    for record in (space.messages, space.calls, space.envelopes, space.violations, space.views):
        record.clear()
    ana = Tab(browser, here, "ana")
    yield ana.page
    ana.close()


def check(page: Page, name: str) -> Any:
    return page.evaluate(f"({CHECKS}).{name}()")


def post_picture(here: Room, thread_ts: str | None = None) -> None:
    here.web.files_upload_v2(
        file=PICTURE, filename="effect.png", title="effect", alt_txt=ALT, channel="C0SERVING", thread_ts=thread_ts,
        initial_comment="evidence ab-17",
    )  # fmt: skip


def test_a_picture_is_shown_with_its_words_and_opens_and_downloads(here: Room, page: Page) -> None:
    post_picture(here)
    picture = page.get_by_role("img", name=ALT)
    expect(picture).to_be_visible()
    page.wait_for_function("() => document.querySelector('img.shared').naturalWidth === 1200")
    expect(page.locator("#feed .message")).to_contain_text("evidence ab-17")
    with page.expect_download() as kept:
        page.get_by_role("link", name="Download effect.png").click()
    assert Path(kept.value.path()).read_bytes() == PICTURE
    assert check(page, "names")["nameless"] == []
    assert check(page, "contrast")["found"] == []
    # without a pointer: a link with the focus opens with Enter
    page.get_by_role("link", name="Open effect").focus()
    with page.expect_popup() as opened:
        page.keyboard.press("Enter")
    assert opened.value.evaluate("document.images[0].naturalWidth") == 1200
    opened.value.close()


def test_a_picture_in_a_thread_is_not_wider_than_a_phone(here: Room, browser: Browser) -> None:
    parent = here.post("a plan")
    post_picture(here, parent)
    phone = Tab(browser, here, "ben", width=360, scheme="dark")
    phone.page.locator("#feed .replies").last.click()
    expect(phone.page.locator("#replies").get_by_role("img", name=ALT)).to_be_visible()
    phone.page.wait_for_function("() => document.querySelector('#replies img.shared').naturalWidth === 1200")
    assert check(phone.page, "wide") == []
    width = phone.page.evaluate("document.querySelector('#replies img.shared').getBoundingClientRect().width")
    assert 200 < width <= 360
    phone.close()


def test_files_are_attached_removed_and_sent_with_a_message_from_the_keyboard(here: Room, page: Page) -> None:
    dropped: Any = [{"name": name, "mimeType": "", "buffer": b"{}"} for name in ("a1.json", "<b>b1.json", "wrong.json")]
    page.locator("#write input[type=file]").set_input_files(dropped)
    pending = page.get_by_role("list", name="Attached files").get_by_role("listitem")
    expect(pending).to_have_count(3)
    page.get_by_role("button", name="Remove wrong.json").press("Enter")
    expect(pending).to_have_count(2)
    page.locator("#field").fill("@clawback evidence add")
    page.locator("#field").press("Enter")
    chip = page.get_by_role("link", name="Download <b>b1.json, 2 B")
    expect(chip).to_be_visible()
    expect(pending).to_have_count(0)
    (message,) = here.slack.people.transcript("serving")
    assert [file["name"] for file in message["files"]] == ["a1.json", "<b>b1.json"]
    assert page.locator("#feed b b").count() == 0
    assert check(page, "names")["nameless"] == []


def test_a_dropped_file_goes_to_the_pane_where_it_was_dropped_and_a_command_takes_none(here: Room, page: Page) -> None:
    here.post("a plan")
    page.get_by_role("button", name="Reply to clawback in a thread").click()
    page.locator("#replies").evaluate(DROP, ["in-thread.csv", "a,b"])
    page.locator("#feed").evaluate(DROP, ["in-channel.json", "{}"])
    page.locator("#field").fill("/knob evidence add")
    page.locator("#field").press("Enter")
    expect(page.get_by_role("alert").first).to_contain_text("A command takes no files")
    page.locator("#thread-field").press("Enter")
    expect(page.locator("#replies .chip")).to_have_text("in-thread.csv3 B")
    (_, said) = here.slack.people.transcript("serving")
    assert (said["text"], said["thread_ts"] is not None) == ("", True)


def form() -> Json:
    """A form with every kind of input that is drawn."""
    words = text("Arm A", "plain_text")

    def options(*names: str) -> list[Json]:
        return [{"text": text(name, "plain_text"), "value": name} for name in names]

    def block(block_id: str, label: str, **element: object) -> Json:
        block: Json = {"type": "input", "block_id": block_id, "label": text(label, "plain_text")}
        return block | {"element": {"action_id": f"{block_id}-x", **element}}

    return {
        "type": "modal",
        "callback_id": "evidence",
        "title": text("Evidence", "plain_text"),
        "submit": text("Record", "plain_text"),
        "blocks": [
            {"type": "section", "text": text("two *arms*")},
            block("knob", "Knob", type="static_select", options=options("TARGET_CTAS", "OTHER")),
            block("value", "Value", type="plain_text_input"),
            block("a", "Arm A", type="file_input", max_files=2, filetypes=["json", "csv"]) | {"hint": words},
            block("many", "Files of B", type="multi_static_select", options=options("b1", "b2", "b3")),
            block("order", "Order", type="checkboxes", options=options("interleaved")) | {"optional": True},
            block("note", "Note", type="plain_text_input", multiline=True) | {"optional": True},
        ],
    }


def test_a_form_is_filled_in_sent_back_with_what_is_wrong_and_sent_again(browser: Browser) -> None:
    with room(with_app=False) as own:
        app = App(client=own.web, token_verification_enabled=False)
        got: list[Json] = []

        @app.command("/form")
        def opened(ack: Ack, body: Json) -> None:
            ack()
            own.web.views_open(trigger_id=body["trigger_id"], view=form())

        @app.view("evidence")
        def submitted(ack: Ack, view: Json) -> None:
            got.append(view["state"]["values"])
            if len(got) == 1:
                ack(response_action="errors", errors={"value": "expected an int from 1 to 4096"})
            else:
                ack()

        handler = SocketModeHandler(app, own.slack.app_token)
        handler.connect()  # type: ignore[no-untyped-call]  # slack_bolt gives it no types
        assert own.slack.people.wait_for(lambda: own.slack.sockets.connected, 60)
        ana = Tab(browser, own, "ana")
        fill_in(ana, got)
        ana.close()
        assert own.slack.workspace.violations == []
        hang_up(handler.client)


def fill_in(ana: Tab, got: list[Json]) -> None:
    page = ana.page
    ana.type_in("/form")
    dialog = page.get_by_role("dialog", name="Evidence")
    expect(dialog).to_be_visible()
    assert check(page, "names")["nameless"] == check(page, "names")["dangling"] == []
    dialog.get_by_role("button", name="Record").click()
    assert got == []  # what is required is asked for by the browser
    dialog.get_by_label("Knob").select_option("TARGET_CTAS")
    dialog.get_by_label("Value").fill("9999")
    file: Any = {"name": "a1.json", "mimeType": "", "buffer": b"{}"}
    dialog.get_by_label("Arm A").set_input_files([file] * 3)
    dialog.get_by_label("Files of B").select_option(["b1", "b3"])
    dialog.get_by_label("interleaved").check()
    dialog.get_by_role("button", name="Record").click()
    assert got == []  # two files at most
    dialog.get_by_label("Arm A").set_input_files([file] * 2)
    dialog.get_by_role("button", name="Record").press("Enter")
    wrong = dialog.get_by_role("alert").filter(has_text="expected an int from 1 to 4096")
    expect(wrong).to_be_visible()
    expect(dialog.get_by_label("Value")).to_be_focused()
    expect(dialog.get_by_label("Value")).to_have_value("9999")
    assert check(page, "contrast")["found"] == []
    dialog.get_by_label("Value").fill("512")
    dialog.get_by_label("Value").press("Enter")
    expect(dialog).to_be_hidden()
    last = got[-1]
    assert last["knob"]["knob-x"]["selected_option"]["value"] == "TARGET_CTAS"
    assert last["value"]["value-x"] == {"type": "plain_text_input", "value": "512"}
    assert [one["name"] for one in last["a"]["a-x"]["files"]] == ["a1.json", "a1.json"]
    assert [one["value"] for one in last["many"]["many-x"]["selected_options"]] == ["b1", "b3"]
    assert [one["value"] for one in last["order"]["order-x"]["selected_options"]] == ["interleaved"]
    assert last["note"]["note-x"] == {"type": "plain_text_input", "value": None}


def test_escape_closes_a_form_for_good(here: Room, page: Page) -> None:
    trigger = here.slack.tickets.new_trigger("U0ANA")
    here.web.views_open(trigger_id=trigger, view=form())
    expect(page.get_by_role("dialog", name="Evidence")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert here.slack.people.wait_for(lambda: not here.slack.workspace.views)
