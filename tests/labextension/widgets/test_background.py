"""Work in the background: errors are shown, closing ends it, other threads are led home."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pai_labextension.widgets.background import Background, NoEventLoopError, at_home
from tests.labextension.widgets.waiting import until


def test_without_a_loop_the_error_says_what_to_do() -> None:
    with pytest.raises(NoEventLoopError, match=r"asyncio\.run"):
        Background(print)


async def test_an_error_in_the_background_is_shown_with_its_traceback() -> None:
    shown: list[str] = []

    async def fail() -> None:
        raise ValueError("too bad")

    Background(shown.append).spawn(fail(), "fails")
    await until(lambda: shown)
    assert "ValueError: too bad" in shown[0]


async def test_closing_cancels_what_runs_and_starts_nothing_any_more() -> None:
    shown: list[str] = []
    background = Background(shown.append)
    task = background.spawn(asyncio.sleep(3600), "long")
    background.close()
    background.close()
    assert task is not None
    await until(task.done)
    assert task.cancelled()
    assert background.spawn(asyncio.sleep(0), "late") is None
    assert shown == []


async def test_the_last_work_is_done_after_closing() -> None:
    done = asyncio.Event()

    async def finish() -> None:
        done.set()

    Background(print).close(finish())
    await asyncio.wait_for(done.wait(), 10)


async def test_another_threads_call_runs_on_the_loops_own_thread() -> None:
    seen: list[int] = []
    action = at_home(lambda: seen.append(threading.get_ident()))
    await asyncio.to_thread(action)
    action()
    assert seen == [threading.get_ident()] * 2


async def test_another_thread_gets_the_error_of_its_call() -> None:
    def fail() -> None:
        raise ValueError("too bad")

    with pytest.raises(ValueError, match="too bad"):
        await asyncio.to_thread(at_home(fail))
