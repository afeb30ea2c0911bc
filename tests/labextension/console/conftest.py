"""What the tests of the console on the web share: a Hub that is left clear, and a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.hub import Hub
from tests.testbed.browser import CHROMIUM_FLAGS


@pytest.fixture
def hub(process_hub: Hub) -> Iterator[Hub]:
    yield process_hub
    process_hub.clear()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        expect.set_options(timeout=60_000)
        yield browser
        browser.close()
