"""Waiting for asynchronous work: in a notebook's loop, after an interrupt, and hearing what it tells."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from pai_scheduler.client.blocking import Conversation, run_blocking, start


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


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_what_would_end_a_loop_is_the_futures_alone(error: BaseException) -> None:
    go_on = threading.Event()

    async def other() -> str:
        await asyncio.to_thread(go_on.wait)
        return "goes on"

    async def work() -> None:
        raise error

    beside = start(other())
    assert start(work()).exception(20) is error
    go_on.set()
    assert beside.result(20) == "goes on"


def test_a_loop_that_was_ended_runs_on_with_all_its_work(caplog: pytest.LogCaptureFixture) -> None:
    go_on = threading.Event()

    async def other() -> str:
        await asyncio.to_thread(go_on.wait)
        return "goes on"

    async def leave() -> None:
        raise SystemExit(3)

    left: list[asyncio.Task[None]] = []

    async def work() -> None:
        # as a library might, beside what is waited for
        left.append(asyncio.create_task(leave()))

    beside = start(other())
    start(work()).result(20)
    go_on.set()
    assert beside.result(20) == "goes on"
    assert isinstance(left[0].exception(), SystemExit)
    assert "runs on" in caplog.text


def test_a_process_that_was_forked_has_a_loop_of_its_own() -> None:
    program = """
import os
from pai_scheduler.client.blocking import run_blocking

async def work():
    return 0

run_blocking(work())
child = os.fork()
if child == 0:
    os._exit(run_blocking(work()))
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)


def test_work_that_is_cancelled_before_it_begins_never_begins() -> None:
    held, begun = threading.Event(), threading.Event()

    async def hold() -> None:
        held.wait(20)

    async def work() -> None:
        begun.set()

    holding = start(hold())
    future = start(work())
    assert future.cancel()
    held.set()
    holding.result(20)
    run_blocking(asyncio.sleep(0))
    assert not begun.is_set()
