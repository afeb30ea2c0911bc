"""Logins that hold something open: when one ends, everything that it holds is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from pai_labextension import callers
from pai_labextension.callers import LoginWatch


async def test_all_that_a_login_holds_is_told_of_its_end_also_where_one_lets_go_at_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(callers, "_LOGIN_SECONDS", 0.01)
    alive = {"alice's": True, "bob's": True}

    async def is_there(token: str) -> bool:
        return alive[token]

    watch = LoginWatch(is_there)
    told: list[str] = []
    all_told = asyncio.Event()
    releases: dict[str, Callable[[], None]] = {}

    def end(name: str) -> None:
        told.append(name)
        if len(told) == 3:
            all_told.set()
        releases[name]()  # as what is kept of a person's does, and a socket that closes

    for token, name in (
        ("alice's", "shells"),
        ("alice's", "log"),
        ("alice's", "terminal"),
        ("bob's", "other"),
    ):
        releases[name] = watch.hold(token, partial(end, name))
    alive["alice's"] = False
    async with asyncio.timeout(10):
        await all_told.wait()
    assert told == ["shells", "log", "terminal"]
    alive["bob's"] = False
    releases["other"]()
    await asyncio.sleep(0.05)
    assert told == ["shells", "log", "terminal"]
