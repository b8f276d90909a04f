"""A real browser for pages, cut off from every network but this machine; what it complains about fails a test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HERE = ("127.0.0.1", "")
WAIT = 20_000  # milliseconds for what a page is to come to, on a machine that is busy
OpenPage = Callable[..., Any]


def browser_path() -> str | None:
    """The browser of the system, or the one that REGARD_BROWSER names."""
    named = os.environ.get("REGARD_BROWSER")
    return named or next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = browser_path()
    if path is None:
        pytest.skip("no browser: install chromium, or name one with REGARD_BROWSER")
    sync.expect.set_options(timeout=WAIT)
    with sync.sync_playwright() as playwright:
        # In a container of root there is no sandbox for it; what it opens here is our own.
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[OpenPage]:
    """A function that opens a page. Complaints and requests to elsewhere fail the test when it ends."""
    wrong: list[str] = []
    contexts: list[Any] = []

    def opened(url: str, *, width: int = 1280, dark: bool = False, expects: tuple[str, ...] = ()) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", bypass_csp=False
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)

        def complained(kind: str, text: str) -> None:
            if not any(word in text for word in expects):
                wrong.append(f"{kind}: {text}")

        def guarded(route: Any) -> None:
            address = urlsplit(route.request.url)
            if address.scheme in ("http", "https", "ws", "wss") and address.hostname not in HERE:
                wrong.append(f"request: {route.request.url}")
                route.abort()
            else:
                route.continue_()

        page.route("**/*", guarded)
        page.on("console", lambda told: complained("console", told.text) if told.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complained("error", str(error)))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong, wrong


def page_width(page: Any) -> int:
    """How wide the page is, once what follows a size has followed: observers of sizes are called after the layout."""
    frames = "requestAnimationFrame(() => requestAnimationFrame(done))"
    return int(page.evaluate(f"new Promise((done) => {frames}).then(() => document.documentElement.scrollWidth)"))


def wait_until(page: Any, expression: str, arg: object = None) -> None:
    """Asked from here: Playwright's own waiting evaluates in the page, which the policy of our pages forbids."""
    for _ in range(600):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(30)
    raise AssertionError(f"never true: {expression}")
