"""Waiting for something to become true, with a limit that only a fault reaches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LIMIT = 20.0


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until the condition holds; TimeoutError where it never does."""
    async with asyncio.timeout(LIMIT):
        while not condition():  # noqa: ASYNC110 - anything may make it true, nothing tells
            await asyncio.sleep(0.01)


async def turns(count: int = 20) -> None:
    """Let everything that is ready run."""
    for _ in range(count):
        await asyncio.sleep(0)
