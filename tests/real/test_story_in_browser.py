"""The story, played in Chromium by typing and clicking; judged from services, kernel and workspace."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from policies.errors import SettingsError
from sandbox.audit_judge import AuditJudge
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.load import Load
from sandbox.judge import Judge, Mark
from sandbox.stage import KNOB_VALUE, Stage
from sandbox.story import SUMMARY
from tests.real.page_browser import Room, Tab, chromium
from tests.shared import skip_or_fail

pytestmark = pytest.mark.real

WAIT_MS = 60_000
REQUESTS, TOKENS = 12, 120
RECORDED = "C-2: confirm by @ben is recorded"
# the second of two clicks meets what the first one made of the change: which of these depends on when it is heard
TOO_LATE = re.compile("has no meaning for C-2 now|has confirmed C-2 already|is no longer the plan|this click is .* old")
LINES = (
    r"planned: co-restart",
    r"confirm by @ana refused: the requester is never an approver",
    r"confirmed co-restart by @ben",
    r"work started: leases on decode@gpu1, prefill@gpu1, router@gpu1",
    r"prefill restart issued",
    r"prefill healthy after .* new pid \d+ owns port \d+",
    rf"decode restart issued with {KNOB_ENV}={KNOB_VALUE}",
    r"decode healthy after .* new pid \d+ owns port \d+",
    r"router restart issued",
    r"router healthy after .* new pid \d+ owns port \d+",
    rf"proof: {KNOB_VALUE} in the environment of decode@gpu1 pid \d+",
    r"all gates passed; watched until",
    r"watch ended",
    rf"done in .*: {KNOB} is {KNOB_VALUE} now, was unset",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def stage() -> Iterator[Stage]:
    # a short path: the manager's socket has to fit into 107 bytes
    with tempfile.TemporaryDirectory(prefix="cb-", ignore_cleanup_errors=True) as folder:
        made = Stage(Path(folder).resolve())
        try:
            made.boot()
            made.start()
            yield made
        except SettingsError as error:
            skip_or_fail(str(error))
        finally:
            assert made.close() == []


def act_as(page: Page, who: str) -> None:
    page.get_by_label("Act as").select_option(who)
    expect(page.locator("#field")).to_be_enabled()


def last_card(page: Page, words: str) -> Locator:
    """The newest card, once it shows these words."""
    card = page.locator("#feed .card").last
    expect(card).to_contain_text(words, timeout=WAIT_MS)
    return card


def ask(page: Page, order: str) -> Locator:
    """Click [Confirm ORDER]; gives the dialog that asks once more."""
    page.locator("#feed .card").last.get_by_role("button", name=f"Confirm {order}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"changes {KNOB} ")
    return dialog


def yes(dialog: Locator) -> None:
    dialog.get_by_role("button", name="Confirm", exact=True).click()


def test_the_story_is_played_by_typing_and_clicking(stage: Stage, browser: Browser) -> None:
    summary = stage.folder / "ab-1.yaml"
    summary.write_text(SUMMARY, encoding="utf-8")
    assert stage.clawback("evidence", "record", str(summary), "--knob", KNOB, "--as", "ana").returncode == 0
    judge, here = Judge(stage), Room(stage.slack)
    laptop, phone = Tab(browser, here, "ana"), Tab(browser, here, "ben", width=360)
    page = laptop.page

    # the knob is suspected, and taken away
    taken = judge.mark()
    laptop.type_in(f'/knob revert {KNOB} because "multi-round hang"')
    expect(page.locator(".ephemeral").last).to_contain_text("C-1 asked")
    last_card(page, f"Revert {KNOB}")
    act_as(page, "ben")
    clicked_at = time.time()
    yes(ask(page, "decode-only"))
    last_card(page, f"{KNOB} is unset now, was {KNOB_VALUE}")
    reverted = judge.reverted(taken, clicked_at)

    # under load it is given back; who asked cannot agree
    act_as(page, "ana")
    with Load(stage.demo_fleet.url("router"), REQUESTS, TOKENS):
        laptop.type_in(f"/knob restore {KNOB}={KNOB_VALUE}")
        card = last_card(page, f"Restore {KNOB} = {KNOB_VALUE}")
        for words in ("+12.8 % C64", "prefill → decode → router", "in flight", "not @ana", "undo: back to unset"):
            expect(card).to_contain_text(words)
        given = judge.mark()
        yes(ask(page, "co-restart"))
        refusal = page.locator(".ephemeral").last
        expect(refusal).to_contain_text("Only visible to you")
        expect(refusal).to_contain_text("the requester is never an approver")
        moved = [told for role in ("prefill", "decode", "router") if (told := judge.untouched(role, given))]
        expect(phone.page.locator(".ephemeral", has_text="the requester is never an approver")).to_have_count(0)

        # ben agrees twice: on both devices the question stands before the first answer
        act_as(page, "ben")
        expect(page.locator(".ephemeral", has_text="the requester is never an approver")).to_have_count(0)
        dialogs = [ask(page, "co-restart"), ask(phone.page, "co-restart")]
        clicked_at = time.time()
        for dialog in dialogs:
            yes(dialog)
        page.locator("#feed .replies").last.click()
        thread = page.locator("#replies")
        for line in LINES:
            expect(thread).to_contain_text(re.compile(line), timeout=WAIT_MS)

    # the verdict and the proof
    expect(card).to_contain_text(f"{KNOB} is {KNOB_VALUE} now, was unset")
    expect(card).to_contain_text("decode@gpu1: live, proven up to reported")
    expect(card.get_by_role("button")).to_have_count(0)
    expect(page.locator(".ephemeral", has_text=RECORDED)).to_have_count(1, timeout=WAIT_MS)
    expect(page.locator(".ephemeral", has_text=TOO_LATE)).to_have_count(1, timeout=WAIT_MS)
    said = "\n".join(thread.locator(".message").all_inner_texts()[1:])  # without the card
    places = [found.start() for line in LINES if (found := re.search(line, said))]
    assert places == sorted(places), said
    for tab in (laptop, phone):
        tab.close()
    assert (reverted[0], moved) == (True, []), reverted
    assert wrong(judge, given, clicked_at) == {}


def wrong(judge: Judge, since: Mark, clicked_at: float) -> dict[str, str]:
    """What the services, the kernel, the workspace and the ledger say against it."""
    looks = {
        "one-execution": judge.one_execution(since, clicked_at),
        "order": judge.order(since),
        "timestamps": judge.timestamps(since, "C-2"),
        "knob-live": judge.knob_live(since),
        "healthy": judge.healthy(),
        "canary": judge.canary(),
        "concluded": judge.concluded("C-2"),
        "audit-clean": AuditJudge(judge.stage).audit_clean(),
        "calls-accepted": judge.calls_accepted(),
    }
    return {name: detail for name, (ok, detail) in looks.items() if not ok}
