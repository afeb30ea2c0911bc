"""Waiting for asynchronous work: in a notebook's loop, after an interrupt, and hearing what it tells."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from pai_scheduler.client.blocking import Conversation, run_blocking


async def test_work_is_waited_for_where_a_loop_runs() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert run_blocking(work()) == 7


def test_an_error_of_the_work_is_raised() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_blocking(work())


def test_what_is_told_is_heard_in_the_thread_that_waits() -> None:
    async def work(tell: Callable[[str], None]) -> str:
        tell("one")
        tell("two")
        return "done"

    heard: list[tuple[str, int]] = []
    talk = Conversation(work)
    assert talk.listen(lambda said: heard.append((said, threading.get_ident()))) == "done"
    assert heard == [("one", threading.get_ident()), ("two", threading.get_ident())]


def test_an_interrupt_leaves_the_work_alone_until_it_is_cancelled() -> None:
    go_on, cancelled = threading.Event(), threading.Event()

    async def work(tell: Callable[[str], None]) -> str:
        tell("begun")
        try:
            await asyncio.to_thread(go_on.wait)
            tell("more")
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    talk = Conversation(work)

    def interrupt(said: str) -> None:
        raise KeyboardInterrupt(said)

    with pytest.raises(KeyboardInterrupt, match="begun"):
        talk.listen(interrupt)
    go_on.set()
    with pytest.raises(KeyboardInterrupt, match="more"):
        talk.listen(interrupt)
    talk.cancel()
    assert cancelled.wait(20)
