"""Functions that run as jobs of a real scheduler: values, errors, sweeps, and what is left of them."""

from __future__ import annotations

import asyncio
import math
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.client import (
    CallError,
    Client,
    FilesClient,
    JobFailedError,
    NotSendableError,
    RemoteTraceback,
    remote,
)
from pai_scheduler.client.calls.session import Access
from tests.testbed.scheduler import RunningScheduler, hello_job

Remote = Callable[..., Any]


@pytest.fixture
def on(scheduler: RunningScheduler) -> Remote:
    """Make functions remote as alice."""

    def decorate(function: Callable[..., Any], **options: Any) -> Any:
        return remote(url=scheduler.url, token="token-of-alice", locale="en", **options)(function)

    return decorate


@pytest.fixture
async def alice(scheduler: RunningScheduler) -> Any:
    async with Client(scheduler.url, "token-of-alice") as client:
        yield client


def test_a_call_prints_here_and_returns_what_the_function_returns(
    on: Remote, capfd: pytest.CaptureFixture[str]
) -> None:
    offset = 40

    def add(number: int, *, more: int = 0) -> dict[str, Any]:
        import os

        print("grüß from", os.environ["PAI_TASK_INDEX"])
        return {"sum": number + more + offset, "root": math.sqrt(4)}

    assert on(add)(1, more=1) == {"sum": 42, "root": 2.0}
    written = capfd.readouterr()
    assert written.out == "grüß from 0\n"
    looks = written.err.split("\r")
    assert re.match(r"add_\w{8}:   0%\|.* 0/1 ", looks[1])
    assert re.match(r"add_\w{8}: 100%\|.* 1/1 ", looks[-1])


async def test_a_call_starts_after_the_jobs_that_it_names(on: Remote, alice: Client, tmp_path: Path) -> None:
    def seen() -> bool:
        return (tmp_path / "prepared").exists()

    gate = tmp_path / "gate"
    command = f"while ! [ -e {gate} ]; do sleep 0.1; done; touch {tmp_path}/prepared"
    await alice.submit(hello_job("call-prepare", command))
    extras = {"after": ["call-prepare"]}
    waiting = on(seen, name="call-next", after="call-prepare:ended", extras=extras).submit()
    while not (links := (await alice.job("alice", "call-prepare"))["jobStatus"]["dependents"]):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    assert [(link["on"], link["state"]) for link in links] == [("succeeded", "WAITING"), ("ended", "WAITING")]
    assert not waiting.done()
    gate.touch()
    assert await asyncio.wrap_future(waiting) is True


async def test_a_call_whose_turn_never_comes_says_for_which_job_it_waited(on: Remote, alice: Client) -> None:
    await alice.submit(hello_job("call-first", "exec sleep 1000"))
    waiting = on(len, name="call-last", after=["call-first"]).submit("four")
    while not (await alice.job("alice", "call-first"))["jobStatus"]["dependents"]:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    await alice.stop("alice", "call-first")
    with pytest.raises(JobFailedError, match="Job call-first is STOPPED, and this one waited"):
        await asyncio.wrap_future(waiting)
    with pytest.raises(CallError, match="Not submitted: Job call-first is STOPPED"):
        await on(len, after={"job": "call-first"}).aio("four")


def test_a_coroutine_function_is_run_to_its_end(on: Remote) -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    assert on(double)(4) == 8


def test_an_error_comes_back_with_the_traceback_of_the_job_as_its_cause(
    on: Remote, capfd: pytest.CaptureFixture[str]
) -> None:
    def divide(number: int) -> float:
        return number / 0

    with pytest.raises(ZeroDivisionError) as caught:
        on(divide)(1)
    cause = caught.value.__cause__
    assert isinstance(cause, RemoteTraceback)
    assert cause.task == "main-0"
    assert "return number / 0" in str(cause), "with the lines of the source"
    assert "__main__.py" not in str(cause), "without our own"
    written = capfd.readouterr()
    assert "Traceback" not in written.out + written.err, "what is raised is not printed, too"


def test_a_function_that_exits_ends_nothing_but_itself(on: Remote) -> None:
    def leave(code: int) -> int:
        import sys

        if code:
            sys.exit(code)
        return code

    def interrupt() -> None:
        raise KeyboardInterrupt

    far = on(leave)
    left = far.submit(3).exception(60)
    assert isinstance(left, SystemExit)
    assert left.code == 3
    assert isinstance(on(interrupt).submit().exception(60), KeyboardInterrupt)
    some, none = far.map([3, 0]).results(return_exceptions=True)
    assert isinstance(some, SystemExit)
    assert none == 0
    with pytest.raises(SystemExit, match="3"):
        far(3)
    assert far.submit(0).result(60) == 0, "the next call is not touched by it"


async def test_an_exit_is_raised_where_the_call_is_awaited(on: Remote) -> None:
    def leave() -> None:
        import sys

        sys.exit(3)

    with pytest.raises(SystemExit, match="3"):
        await on(leave).aio()
    with pytest.raises(CallError, match="StopIteration"):
        await on(lambda: next(iter(()))).aio()


def test_what_cannot_be_sent_is_named_before_anything_is_submitted(on: Remote) -> None:
    lock = threading.Lock()

    def hold(number: int) -> Any:
        return lock, number

    with pytest.raises(NotSendableError, match=r"lock, which .*hold uses, cannot be sent"):
        on(hold).submit(1)
    with pytest.raises(NotSendableError, match=r"^handle cannot be sent"):
        on(lambda handle: handle).submit(threading.Lock())


def test_a_call_with_wrong_arguments_is_refused_before_anything_is_submitted(on: Remote) -> None:
    far = on(lambda number, *, scale: number * scale)
    for call in (far, far.submit, far.aio):
        with pytest.raises(TypeError, match="missing a required"):
            call(1)
    with pytest.raises(TypeError, match="too many positional arguments"):
        on(lambda number: number).map([1], [2])


def test_a_method_is_refused_when_its_class_is_made(on: Remote) -> None:
    with pytest.raises((NotSendableError, RuntimeError)) as caught:

        class Model:
            @on
            def fit(self, x: int) -> int:
                return x

    # (Python 3.11 wraps what is raised there)
    refusal = caught.value if isinstance(caught.value, NotSendableError) else caught.value.__cause__
    assert str(refusal).startswith("fit is a method of Model, and a method cannot be remote.")

    class Tools:
        @staticmethod
        @on
        def double(x: int) -> int:
            return 2 * x

        length = on(len)

    assert Tools.double.local(2) == 4
    assert Tools().length.local("abc") == 3


def test_what_cannot_come_back_is_said(on: Remote) -> None:
    def lock() -> Any:
        import threading

        return threading.Lock()

    with pytest.raises(CallError, match="What main-0 returns cannot be sent back"):
        on(lock)()


def test_a_module_that_the_job_lacks_is_named_and_its_folder_may_go_along(on: Remote, tmp_path: Path) -> None:
    (tmp_path / "my_helpers.py").write_text("def answer(): return 42\n")
    (tmp_path / "table.json").write_text("[1]")

    def ask() -> Any:
        import my_helpers  # type: ignore[import-not-found]

        with open("table.json") as table:
            return my_helpers.answer(), table.read()

    with pytest.raises(ModuleNotFoundError, match="my_helpers"):
        on(ask)()
    assert on(ask, code=tmp_path)() == (42, "[1]")


def test_a_job_that_ends_before_its_function_says_how(on: Remote) -> None:
    def die() -> None:
        import os

        print("almost", flush=True)
        os._exit(7)

    with pytest.raises(JobFailedError) as caught:
        on(die)()
    assert (caught.value.state, caught.value.exit_code) == ("FAILED", 7)
    assert "almost" in str(caught.value)


def test_a_job_that_never_fits_is_refused_with_the_reason(on: Remote) -> None:
    with pytest.raises(CallError, match="Not submitted"):
        on(lambda: None, gpus=1000)()


async def test_a_future_and_an_awaitable_give_the_value_and_no_file_is_left(
    on: Remote, scheduler: RunningScheduler
) -> None:
    def square(number: int) -> int:
        return number * number

    future: Future[int] = on(square).submit(3)
    assert await on(square).aio(4) == 16
    assert await asyncio.to_thread(future.result, 60) == 9
    async with FilesClient(scheduler.url, "token-of-alice") as files:
        assert [entry.path async for entry in files.walk("/alice/.pai/calls")] == []


def test_a_call_outlives_the_scheduler(
    own_scheduler: Callable[..., RunningScheduler], tmp_path: Path
) -> None:
    scheduler = own_scheduler()
    go_on = tmp_path / "go-on"

    def wait(path: str) -> str:
        Path(f"{path}.begun").touch()
        while not Path(path).exists():
            time.sleep(0.05)
        return "there"

    far = remote(url=scheduler.url, token="token-of-alice", locale="en")(wait)
    future = far.submit(str(go_on))
    begun = tmp_path / "go-on.begun"
    for _ in range(600):
        if begun.exists():
            break
        time.sleep(0.1)
    scheduler.kill()
    # its end comes while nobody is there to take what it returns
    go_on.touch()
    time.sleep(1.5)
    scheduler.start()
    assert future.result(120) == "there"


async def test_what_nobody_fetched_is_removed_when_its_job_is_over(
    on: Remote, scheduler: RunningScheduler, alice: Client
) -> None:
    await alice.submit(hello_job("goes-on", "sleep 3600"))
    async with FilesClient(scheduler.url, "token-of-alice") as files:
        for name in ("goes-on", "is-gone", "is-new"):
            await files.mkdirs(f"/alice/.pai/calls/{name}/results")
            if name != "is-new":
                await files.set_times(f"/alice/.pai/calls/{name}", 1_700_000_000_000)
        assert await on(len).aio("ab") == 2
        assert [entry.name async for entry in files.iterate("/alice/.pai/calls")] == ["goes-on", "is-new"]
        await files.delete("/alice/.pai/calls", recursive=True)
    await alice.stop("alice", "goes-on")


async def test_a_cancelled_future_stops_its_job(on: Remote, alice: Client) -> None:
    def sleep() -> None:
        import time

        time.sleep(3600)

    future = on(sleep, name="sleeper").submit()

    async def states() -> list[str]:
        return [job["state"] for job in await alice.jobs() if job["name"].startswith("sleeper_")]

    async with asyncio.timeout(60):
        while await states() != ["RUNNING"]:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.1)
        future.cancel()
        while await states() != ["STOPPED"]:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.1)


async def test_a_sweep_is_one_job_that_keeps_the_order_and_goes_on_after_a_failure(
    on: Remote, alice: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    def invert(number: int, scale: int) -> float:
        return scale / number

    sweep = on(invert, name="sweep", storage_gb=2).map([1, 0, 4], [8, 8, 8])
    results = await asyncio.to_thread(sweep.results, return_exceptions=True)
    assert results[0] == 8
    assert isinstance(results[1], ZeroDivisionError)
    assert results[2] == 2
    assert sweep.values() == {0: 8, 2: 2}
    assert repr(sweep) == f"Sweep({sweep.job!r}, 2 of 3 done, 1 failed)"
    config = await alice.config("alice", sweep.job)
    assert config["taskRoles"][0]["taskNumber"] == 3
    assert config["taskRoles"][0]["storageGB"] == 2
    with pytest.raises(ZeroDivisionError):
        list(sweep)
    # the last look of the bar, as tqdm leaves it
    bar = capfd.readouterr().err.rstrip().rpartition("\r")[2]
    assert bar.startswith(f"{sweep.job}:  67%|")
    assert bar.endswith("1 failed]")
    assert " 2/3 [" in bar


def test_a_sweep_that_is_refused_shows_no_bar_and_is_not_done(
    on: Remote, capfd: pytest.CaptureFixture[str]
) -> None:
    sweep = on(lambda number: number, gpus=1000).map(range(40))
    with pytest.raises(CallError, match="Not submitted"):
        sweep.results()
    assert repr(sweep) == "Sweep('', 0 of 40 done, 40 failed)"
    assert capfd.readouterr().err == ""


def test_what_was_cancelled_is_among_the_results(on: Remote) -> None:
    def sleep(seconds: int) -> int:
        import time

        time.sleep(seconds)
        return seconds

    sweep = on(sleep).map([0, 3600])
    assert next(iter(sweep)) == 0
    sweep.cancel()
    first, second = sweep.results(return_exceptions=True)
    assert first == 0
    assert isinstance(second, CancelledError)
    with pytest.raises(CancelledError):
        sweep.results()


async def test_a_sweep_may_be_awaited_and_nothing_at_all_is_no_job(on: Remote) -> None:
    assert await on(lambda number: number + 1).map(range(3)) == [1, 2, 3]
    assert list(on(lambda number: number).map([])) == []


def test_an_option_that_is_none_is_refused_and_others_may_be_changed_later(on: Remote) -> None:
    with pytest.raises(TypeError, match="no option 'gpu'"):
        on(len, gpu=1)
    made = on(len).options(gpus=2, memory_mb=64)
    assert (made._demand.gpus, made._demand.memory_mb) == (2, 64)
    assert made._access == Access(made._access.url, "token-of-alice", "en")
    assert made.local("abc") == 3
