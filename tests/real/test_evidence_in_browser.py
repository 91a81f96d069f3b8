"""A person hands result files over at the sandbox's page: the product's own form, filled in and sent in Chromium."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from sandbox.slack import SlackSandbox
from tests.bot.evidence_room import FILES_A, FILES_B, Room
from tests.conftest import Store
from tests.real.page_browser import Room as Page
from tests.real.page_browser import Tab, chromium
from tests.shared import shared


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def slack() -> Iterator[SlackSandbox]:
    with SlackSandbox(reference=shared("slack")) as made:
        made.workspace.add_user("ana", user_id="U0ANA")
        made.workspace.add_user("ben", user_id="U0BEN")
        made.workspace.add_channel("serving", ["U0ANA", "U0BEN"], channel_id="C0SERVING")
        yield made
        assert made.workspace.violations == []


@pytest.fixture
def room(store: Store, slack: SlackSandbox) -> Iterator[Room]:
    """A bot that hears and shows whatever comes."""
    made, ending = Room(store, slack), threading.Event()

    def work() -> None:
        while not ending.wait(0.05):
            made.work()

    thread = threading.Thread(target=work)
    thread.start()
    yield made
    ending.set()
    thread.join(20)
    made.redis.close()


def payloads(files: list[tuple[str, bytes]]) -> Any:
    return [{"name": name, "mimeType": "application/json", "buffer": data} for name, data in files]


def test_result_files_go_in_by_the_form_and_come_out_as_verdict_and_pictures(browser: Browser, room: Room) -> None:
    ana = Tab(browser, Page(room.slack), "ana")
    page = ana.page
    ana.type_in("/knob evidence add")
    form = page.get_by_role("dialog", name="Evidence for a knob")
    expect(form).to_be_visible()
    expect(form.get_by_label("Knob")).to_have_value("TARGET_CTAS")  # the only one there is
    form.get_by_label("Value of B").fill("9999")
    form.get_by_label("Files of A").set_input_files(payloads(FILES_A))
    form.get_by_label("Files of B").set_input_files(payloads(FILES_B))
    form.get_by_label("interleaved").check()
    form.get_by_role("button", name="Judge and record").click()
    expect(form.get_by_role("alert").filter(has_text="outside the range")).to_be_visible()
    form.get_by_label("Value of B").fill("512")
    form.get_by_role("button", name="Judge and record").press("Enter")
    expect(form).to_be_hidden()
    expect(page.locator("#feed .card")).to_contain_text("TARGET_CTAS = 512: improves")
    expect(page.locator(".ephemeral").last).to_contain_text("ab-1 is recorded as improves")
    page.locator("#feed .replies").click()
    expect(page.locator("#replies img.shared")).to_have_count(2)
    expect(page.get_by_role("img", name="C64 +12.8 %").first).to_be_visible()
    ana.close()


def test_files_that_were_dropped_with_a_mention_are_picked_in_the_form(browser: Browser, room: Room) -> None:
    ana = Tab(browser, Page(room.slack), "ana")
    page = ana.page
    page.locator("#write input[type=file]").set_input_files(payloads([*FILES_A, *FILES_B]))
    ana.type_in("@clawback evidence add")
    page.get_by_role("button", name="Open the form").click()
    form = page.get_by_role("dialog", name="Evidence for a knob")
    form.get_by_label("Value of B").fill("512")
    form.get_by_label("Files of A").select_option(label=[name for name, _ in FILES_A])
    form.get_by_label("Files of B").select_option(label=[name for name, _ in FILES_B])
    form.get_by_role("button", name="Judge and record").click()
    expect(page.locator("#feed .card").last).to_contain_text("TARGET_CTAS = 512: improves")
    assert [record.by for record in room.records()] == ["U0ANA"]
    ana.close()
