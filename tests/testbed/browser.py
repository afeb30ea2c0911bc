"""Debian's Chromium for Playwright, quiet where the network is closed."""

from __future__ import annotations

import shutil

from tests.testbed.machine import CannotError, apt_install

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium_path() -> str:
    """Return Chromium's path, installing it where it is missing; CannotError where that is impossible."""
    apt_install({"chromium": "chromium"})
    path = shutil.which("chromium")
    if path is None:
        raise CannotError("chromium was installed, but is not on PATH")
    return path
