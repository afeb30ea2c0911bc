"""Measuring the running tasks, with an engine whose answers the test gives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.protocol import Engine, Usage
from pai_scheduler.job.task import TaskRef
from pai_scheduler.monitoring import recorder as module
from pai_scheduler.monitoring.recorder import Recorder, Recording
from pai_scheduler.monitoring.series import FILE, SERIES

ONE, TWO = TaskRef("j", 0, "main", 0), TaskRef("j", 0, "main", 1)


class Meter:
    """What the recorder asks of an engine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[TaskRef] = []
        self.times = 0
        self.broken: set[TaskRef] = set()
        self.hanging: set[TaskRef] = set()
        self.under_way = 0

    def log(self, task: TaskRef) -> TaskLog:
        return TaskLog(self.folder / task.name)

    async def usage(self, task: TaskRef) -> Usage | None:
        self.asked.append(task)
        assert self.under_way == 0, "one at a time"
        self.under_way += 1
        try:
            await asyncio.sleep(10 if task in self.hanging else 0)
        finally:
            self.under_way -= 1
        if task in self.broken:
            raise OSError("no such process")
        self.times += 1
        return Usage(self.times * 10_000, cpu_percent=self.times, memory_mb=5, net_rx_bytes=self.times)


@pytest.fixture
def meter(tmp_path: Path) -> Meter:
    for task in (ONE, TWO):
        (tmp_path / task.name).mkdir()
    return Meter(tmp_path)


@pytest.fixture
async def recorder(meter: Meter) -> AsyncIterator[Recorder]:
    failures: list[None] = []
    made = Recorder(cast(Engine, meter), lambda: failures.append(None), 0.02)
    made.failures = failures  # type: ignore[attr-defined]
    made.start()
    yield made
    await made.close()


async def until_recorded(recorder: Recorder, task: TaskRef, points: int) -> Recording:
    for _ in range(1000):
        recording = await recorder.recording(task)
        if len(recording.series["cpuPercent"]) >= points:
            return recording
        await asyncio.sleep(0.01)
    pytest.fail(f"there never were {points} points of {task}")


async def test_a_running_task_is_measured_again_and_again(recorder: Recorder) -> None:
    recorder.begin(ONE)
    recording = await until_recorded(recorder, ONE, 3)
    assert tuple(recording.series) == SERIES
    assert recording.series["cpuPercent"][:3] == [(10_000, 1), (20_000, 2), (30_000, 3)]
    assert recording.series["netRxBytes"][0] == (10_000, 1)
    assert recording.series["gpuPercent"] == []
    assert recording.interval == 10.0
    assert recorder.latest[ONE] is not None


async def test_only_what_came_later_is_given_where_that_is_asked(recorder: Recorder) -> None:
    recorder.begin(ONE)
    await until_recorded(recorder, ONE, 3)
    later = await recorder.recording(ONE, after=20_000)
    assert later.series["cpuPercent"][0] == (30_000, 3)


async def test_a_task_that_has_ended_is_asked_no_more_and_its_record_stays(
    recorder: Recorder, meter: Meter
) -> None:
    recorder.begin(ONE)
    recorder.begin(TWO)
    before = await until_recorded(recorder, ONE, 1)
    recorder.end(ONE)
    meter.asked.clear()
    await until_recorded(recorder, TWO, 5)
    assert meter.asked.count(ONE) <= 1, "one may have been under way"
    assert ONE not in recorder.latest
    assert (await recorder.recording(ONE)).series["cpuPercent"][:1] == before.series["cpuPercent"][:1]


async def test_a_task_that_is_begun_twice_is_measured_once_at_a_time(
    recorder: Recorder, meter: Meter
) -> None:
    recorder.begin(ONE)
    recorder.begin(ONE)
    recorder.begin(TWO)
    await until_recorded(recorder, TWO, 10)
    assert abs(meter.asked.count(ONE) - meter.asked.count(TWO)) <= 2


async def test_a_task_that_cannot_be_measured_is_counted_and_hinders_no_other(
    recorder: Recorder, meter: Meter
) -> None:
    meter.broken.add(ONE)
    recorder.begin(ONE)
    recorder.begin(TWO)
    await until_recorded(recorder, TWO, 3)
    assert recorder.failures  # type: ignore[attr-defined]
    assert (await recorder.recording(ONE)).series["cpuPercent"] == []


async def test_an_engine_that_does_not_answer_is_not_waited_for(
    recorder: Recorder, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(module, "_SHARE", 0.5)
    meter.hanging.add(ONE)
    recorder.begin(ONE)
    recorder.begin(TWO)
    await until_recorded(recorder, TWO, 2)


async def test_a_restarted_service_goes_on_in_the_same_record(recorder: Recorder, meter: Meter) -> None:
    recorder.begin(ONE)
    before = await until_recorded(recorder, ONE, 2)
    await recorder.close()
    next_one = Recorder(cast(Engine, meter), lambda: None, 0.02)
    next_one.start()
    next_one.begin(ONE)
    after = await until_recorded(next_one, ONE, len(before.series["cpuPercent"]) + 2)
    await next_one.close()
    assert after.series["cpuPercent"][:2] == before.series["cpuPercent"][:2]


async def test_the_more_a_measurement_costs_the_rarer_they_become(meter: Meter) -> None:
    pauses: list[float] = []

    async def costly(task: TaskRef) -> Usage:
        loop_begin = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() - loop_begin < 0.02:
            pass
        meter.asked.append(task)
        pauses.append(loop_begin)
        return Usage(1, 1, 1)

    meter.usage = costly  # type: ignore[method-assign]
    recorder = Recorder(cast(Engine, meter), lambda: None, 0.001)
    recorder.start()
    recorder.begin(ONE)
    for _ in range(1000):
        if len(pauses) >= 2:
            break
        await asyncio.sleep(0.01)
    await recorder.close()
    # 20 ms of work, and no more than 2 % of the time: about a second lies between two
    assert pauses[1] - pauses[0] >= 0.9


async def test_tasks_come_to_be_measured_in_one_go_and_one_that_cannot_be_recorded_hinders_no_other(
    recorder: Recorder, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TOGETHER", 0.9)
    goes: list[list[TaskRef]] = []
    append = recorder._append

    def note(found: Sequence[tuple[TaskRef, Usage]]) -> list[tuple[TaskRef, Exception]]:
        goes.append([task for task, _ in found])
        return append(found)

    monkeypatch.setattr(recorder, "_append", note)
    (meter.folder / ONE.name / FILE).mkdir()  # in the way of its record
    recorder.begin(ONE)
    async with asyncio.timeout(30):
        while not goes:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    recorder.begin(TWO)
    await until_recorded(recorder, TWO, 3)
    assert {ONE, TWO} in map(set, goes)
    assert recorder.failures  # type: ignore[attr-defined]
