"""`pai logs` and `pai usage`: a task's log, followed over breaks, and what it uses."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Sequence
from typing import BinaryIO

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.log_position import STAMP_LENGTH, LogPart
from pai_scheduler.rest.models import TaskMetrics

from .session import table

# Prints a task's log, and goes on where it stopped when the connection breaks.

#: How long (seconds) a followed log waits for a scheduler that is being restarted, and how often it asks.
PATIENCE_SECONDS = 120.0
_AGAIN_SECONDS = 1.0


async def pick_task(client: Client, user: str, job: str, wanted: str | None, locale: str) -> tuple[str, int]:
    """Return role and index: as written (`worker-0`), else the task that decided the job, else the first."""
    if wanted is not None:
        role, _, number = wanted.rpartition("-")
        if role and number.isascii() and number.isdigit():
            return role, int(number)
        message = msg("{task} is no task; write role and index, for example worker-0.", task=wanted)
        raise ApiError(400, "InvalidParametersError", message.in_locale(locale))
    detail = await client.job(user, job)
    status = detail["jobStatus"]
    tasks = [
        (role, task["taskIndex"])
        for role, tasks in detail["taskRoles"].items()
        for task in tasks["taskStatuses"]
    ]
    trigger = (status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"])
    role, index = next((task for task in tasks if task == trigger), tasks[0])
    if len(tasks) > 1:
        text = msg(
            "This is {task}, one of {count} tasks; name another one to see that.",
            task=f"{role}-{index}",
            count=len(tasks),
        )
        print(text.in_locale(locale), file=sys.stderr)
    return role, index


async def copy_log(
    client: Client,
    user: str,
    job: str,
    role: str,
    index: int,
    stream: str,
    *,
    attempt: int | None,
    follow: bool,
    timestamps: bool,
    to: BinaryIO,
    locale: str,
) -> None:
    """Write a log to `to`; followed, until the task has ended."""

    def parts(offset: int) -> AsyncIterator[LogPart]:
        return client.log_stream(
            user,
            job,
            role,
            index,
            stream,
            attempt=attempt,
            offset=offset,
            follow=follow,
            timestamps=timestamps,
        )

    if not follow:
        async for part in parts(0):
            to.write(part.data)
        to.flush()
        return
    position, within_line = 0, False
    patience = Patience(locale)
    while True:
        try:
            # an answer begins with a time, which a line that goes on has already
            unwanted = STAMP_LENGTH if timestamps and within_line else 0
            async for part in parts(position):
                patience.renew()
                position = part.next_offset
                data, unwanted = part.data[unwanted:], max(0, unwanted - len(part.data))
                if data:
                    within_line = not data.endswith(b"\n")
                    to.write(data)
                    to.flush()
            return
        except UnreachableError as error:
            await patience.wait(error)


class Patience:
    """Waits for a scheduler that was there a moment ago: tasks run on while it is restarted."""

    def __init__(self, locale: str) -> None:
        self._locale = locale
        self._clock = asyncio.get_running_loop().time
        self._since: float | None = None
        self._answered = False

    def renew(self) -> None:
        """The scheduler has answered."""
        self._since, self._answered = None, True

    async def wait(self, error: UnreachableError) -> None:
        """Sleep before another try; raises `error` where there never was an answer, or none for too long."""
        if not self._answered:
            raise error
        if self._since is None:
            self._since = self._clock()
            text = msg("The scheduler does not answer; what runs goes on. Waiting for it to come back.")
            print(text.in_locale(self._locale), file=sys.stderr, flush=True)
        if self._clock() - self._since > PATIENCE_SECONDS:
            raise error
        await asyncio.sleep(_AGAIN_SECONDS)


# Shows what a task uses: a line per series with its course, drawn anew while the task runs.

#: columns of a sparkline
COLUMNS = 40
#: Seconds between two looks whether there is something new.
_PAUSE_SECONDS = 2.0
_BARS = "▁▂▃▄▅▆▇█"
_ALIVE = ("WAITING", "RUNNING")

Points = Sequence[tuple[int, float]]


async def show_usage(
    client: Client,
    user: str,
    job: str,
    role: str,
    index: int,
    *,
    attempt: int | None,
    follow: bool,
    as_json: bool,
    locale: str,
) -> None:
    """Print what a task has used; followed, again after each measurement, until the task has ended."""
    patience, drawn = Patience(locale), 0
    shown: TaskMetrics | None = None
    while True:
        try:
            ended = await _has_ended(client, user, job, role, index, attempt)
            metrics = await client.task_metrics(user, job, role, index, attempt=attempt)
        except UnreachableError as error:
            if not follow:
                raise
            await patience.wait(error)
            continue
        patience.renew()
        if metrics == shown:
            pass
        elif as_json:
            print(json.dumps(metrics, ensure_ascii=False), flush=True)
        else:
            text = usage_table(metrics, locale)
            over = f"\x1b[{drawn}A\x1b[J" if drawn and sys.stdout.isatty() else ""
            print(f"{over}{text}", flush=True)
            drawn = text.count("\n") + 1
        shown = metrics
        if ended or not follow:
            return
        await asyncio.sleep(_PAUSE_SECONDS)


def usage_table(metrics: TaskMetrics, locale: str) -> str:
    """Lay out the series that are known, or say that nothing is."""
    rows = []
    for title, points in _shown(metrics):
        if not points:
            continue
        values = [value for _, value in points]
        mean = sum(values) / len(values)
        numbers = [_number(value) for value in (values[-1], mean, max(values))]
        rows.append([title.in_locale(locale), *numbers, sparkline(points)])
    if not rows:
        return msg(
            "Nothing is measured yet: that begins half a second after the task has started."
        ).in_locale(locale)
    header = [msg("MEASURED"), msg("LAST"), msg("MEAN"), msg("HIGHEST"), msg("COURSE")]
    return table([title.in_locale(locale) for title in header], rows)


def sparkline(points: Points, columns: int = COLUMNS) -> str:
    """Draw values over time, from 0 to the highest; where nothing was measured, the value before stays."""
    begin, end = points[0][0], points[-1][0]
    columns = min(columns, len(points))
    cells: list[list[float]] = [[] for _ in range(columns)]
    for time, value in points:
        cells[min(columns - 1, (time - begin) * columns // max(1, end - begin))].append(value)
    highest = max(value for _, value in points)
    bars, level = "", 0
    for cell in cells:
        if cell and highest > 0:
            level = round(sum(cell) / len(cell) / highest * (len(_BARS) - 1))
        bars += _BARS[max(0, level)]
    return bars


def _shown(metrics: TaskMetrics) -> list[tuple[Message, Points]]:
    series, total = metrics["series"], metrics["gpuMemoryTotalMB"]
    gpu_memory = msg("GPU memory, MB") if total is None else msg("GPU memory, MB of {total}", total=total)
    return [
        (msg("CPU, per cent of one core"), series["cpuPercent"]),
        (msg("Memory, MB"), series["memoryMB"]),
        (msg("GPU, per cent"), series["gpuPercent"]),
        (gpu_memory, series["gpuMemoryMB"]),
        (msg("Disk, MB"), series["diskMB"]),
        (msg("Received, MB/s"), _per_second(series["netRxBytes"])),
        (msg("Sent, MB/s"), _per_second(series["netTxBytes"])),
    ]


def _per_second(points: Points) -> Points:
    """Make MB per second of bytes since the start."""
    return [
        (time, max(0.0, (value - before) / 1e6 / ((time - earlier) / 1000)))
        for (earlier, before), (time, value) in itertools.pairwise(points)
    ]


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 or value == 0 else f"{value:.2f}"


async def _has_ended(client: Client, user: str, job: str, role: str, index: int, attempt: int | None) -> bool:
    """Return whether a task measures no more; asked before its metrics, so that none is missed."""
    detail = await client.job(user, job)
    tasks = detail["taskRoles"].get(role, {"taskStatuses": []})["taskStatuses"]
    states = [task["taskState"] for task in tasks if task["taskIndex"] == index]
    status = detail["jobStatus"]
    if status["subState"] == "ENDED" or (status["state"] == "RUNNING" and states and states[0] not in _ALIVE):
        return True
    return attempt is not None and attempt < (await client.attempts(user, job))[-1]["attempt"]
