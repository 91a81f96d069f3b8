"""Pictures of the sandbox workspace for the documentation, taken through the Chromium of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from policies.errors import SettingsError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Without them the browser asks hosts outside; the page is the machine's own, and root has no sandbox."""
Scheme = Literal["light", "dark"]
Part = Literal["page", "card", "thread", "phone"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
PARTS: tuple[Part, ...] = ("page", "card", "thread", "phone")
WAIT_MS = 60_000
PHONE = (360, 740)


def take_pictures(
    page_url: str,
    folder: Path,
    *,
    person: str,
    channel: str,
    card: str = ".card:has(.block.actions)",
    chromium: str = CHROMIUM,
    schemes: Sequence[Scheme] = SCHEMES,
    parts: Sequence[Part] = PARTS,
    size: tuple[int, int] = (1280, 800),
    scale: float = 2.0,
) -> list[Path]:
    """Take the `parts`, each light and dark, as PNG files below `folder`; their paths.

    `page_url` is SlackSandbox.page_url, `card` a CSS selector: its last match is the card, and the last thread of
    the channel is the thread. Parts that are not on the page have no picture. `size` is that of the window in CSS
    pixels, `scale` how many pixels of the picture each has.
    Raises: SettingsError without a browser or the package that drives it.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise SettingsError("pictures need the python package playwright", hint="install the extra `test`") from None
    if not Path(chromium).exists():
        raise SettingsError(f"no browser at {chromium!r}", hint="install the package chromium")
    folder.mkdir(parents=True, exist_ok=True)
    taken: list[Path] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=list(FLAGS))
        try:
            for scheme in schemes:
                page = _opened(browser, page_url, person, channel, scheme, size, scale)
                if "page" in parts:
                    taken += _shot(page, folder / f"page-{scheme}.png")
                if "card" in parts:
                    taken += _shot(page, folder / f"card-{scheme}.png", card)
                threads = page.locator("#feed .replies")
                if "thread" in parts and threads.count():
                    threads.last.click()
                    page.locator("#replies .message").first.wait_for(timeout=WAIT_MS)
                    page.mouse.move(0, 0)  # nothing looks pointed at
                    taken += _shot(page, folder / f"thread-{scheme}.png")
                page.context.close()
                if "phone" in parts:
                    page = _opened(browser, page_url, person, channel, scheme, PHONE, scale)
                    taken += _shot(page, folder / f"phone-{scheme}.png")
                    page.context.close()
        finally:
            browser.close()
    return taken


def _opened(
    browser: Browser, url: str, person: str, channel: str, scheme: Scheme, size: tuple[int, int], scale: float
) -> Page:
    """The page of a person in a channel, once the workspace is on it."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        device_scale_factor=scale,
        color_scheme=scheme,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
        has_touch=size == PHONE,
    )
    page = context.new_page()
    page.goto(f"{url}#as={person}&in={channel}")
    page.locator("#feed > *").first.wait_for(timeout=WAIT_MS)
    return page


def _shot(page: Page, path: Path, selector: str | None = None) -> list[Path]:
    """One picture, of the whole page or of the last match of a selector."""
    if selector is None:
        page.screenshot(path=path)
        return [path]
    found = page.locator(selector)
    if not found.count():
        return []
    found.last.screenshot(path=path)
    return [path]
