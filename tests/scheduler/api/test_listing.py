"""A long list leaves others their turns."""

from __future__ import annotations

import asyncio

import pytest

from pai_scheduler.api import streaming
from pai_scheduler.api.streaming import stored, take


@pytest.mark.parametrize(("seconds", "turns"), [(-1.0, 30), (1000.0, 1)])
def test_others_have_their_turn_where_entries_take_long(
    monkeypatch: pytest.MonkeyPatch, seconds: float, turns: int
) -> None:
    monkeypatch.setattr(streaming, "_AT_ONCE_SECONDS", seconds)
    had: list[int] = []

    async def read(after: int | None, count: int) -> list[int]:
        begin = 0 if after is None else after + 1
        return list(range(begin, min(begin + count, 30)))

    async def other() -> None:
        while True:
            had.append(1)
            await asyncio.sleep(0)

    async def fetch() -> bytes:
        beside = asyncio.create_task(other())
        array, last = await take(None, 30, stored(read, lambda number: (number, number)))
        beside.cancel()
        assert last is None
        return array

    assert asyncio.run(fetch()) == b"[" + b",".join(b"%d" % number for number in range(30)) + b"]"
    assert turns <= len(had) <= turns + 2
