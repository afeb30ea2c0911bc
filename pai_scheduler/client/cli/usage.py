"""Shows what a task uses: a line per series with its course, drawn anew while the task runs."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Sequence

from pai_scheduler.client.rest import Client, UnreachableError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.models import TaskMetrics

from .logs import Patience
from .tables import table

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
