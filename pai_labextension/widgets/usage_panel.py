"""Usage of one task, as charts that go on while it runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from html import escape
from typing import Any

import ipywidgets as widgets

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.rest.models import TaskMetrics

from .background import Background
from .charts import charts_of, draw
from .language import Language
from .look import show

#: Seconds between two questions at least; the scheduler says itself how often it measures.
SHORTEST_PAUSE = 2.0
#: After so many points of a series all are asked for anew: the scheduler has merged the old ones by then.
MOST_POINTS = 1500


@dataclass(frozen=True, slots=True)
class UsageChoice:
    """Of which task the use is shown; `alive`: it is still measured."""

    user: str
    role: str
    index: int
    attempt: int
    alive: bool


class UsagePanel(widgets.VBox):
    """The charts of one task; hidden where nothing is known about it."""

    def __init__(
        self,
        client: Client,
        job: str,
        say: Language,
        background: Background,
        shortest_pause: float = SHORTEST_PAUSE,
    ) -> None:
        self._client, self._job, self._say, self._background = client, job, say, background
        self._shortest_pause = shortest_pause
        self._choice: UsageChoice | None = None
        self._asking: asyncio.Task[Any] | None = None
        self._series: dict[str, list[tuple[int, float]]] = {}
        self._gpu_memory_mb: int | None = None
        self.charts = widgets.HTML()
        super().__init__([self.charts])
        show(self, False)

    def choose(self, choice: UsageChoice) -> None:
        """Show another task, or the same one now that it has ended."""
        before = self._choice
        if choice == before:
            return
        self._choice = choice
        if self._asking is not None:
            self._asking.cancel()
        if before is None or (before.role, before.index, before.attempt) != (
            choice.role,
            choice.index,
            choice.attempt,
        ):
            self._series = {}
            self._paint()
        self._asking = self._background.spawn(self._ask(choice), "pai-usage")

    async def _ask(self, choice: UsageChoice) -> None:
        """Ask until the task has ended, and once after that."""
        while True:
            pause = self._shortest_pause
            try:
                answer = await self._client.task_metrics(
                    choice.user,
                    self._job,
                    choice.role,
                    choice.index,
                    attempt=choice.attempt,
                    after=self._newest(),
                )
                self._take(answer)
                if self.charts.value:  # the first measurement is worth asking for more often
                    pause = max(pause, answer["interval"])
            except ApiError as error:
                if error.status < 500 and not choice.alive:
                    return
            except UnreachableError:
                pass  # the job's own line says so
            else:
                if not choice.alive:
                    return
            await asyncio.sleep(pause)

    def _newest(self) -> int:
        if any(len(points) > MOST_POINTS for points in self._series.values()):
            self._series = {}
        return max((points[-1][0] for points in self._series.values() if points), default=0)

    def _take(self, answer: TaskMetrics) -> None:
        self._gpu_memory_mb = answer["gpuMemoryTotalMB"]
        for name, points in answer["series"].items():
            self._series.setdefault(name, []).extend((time, value) for time, value in points)
        self._paint()

    def _paint(self) -> None:
        charts = charts_of(self._say, self._series, self._gpu_memory_mb)
        choice = self._choice
        if charts and choice is not None:
            title = self._say("What {task} uses", task=f"{choice.role} {choice.index}")
            drawn = "".join(draw(self._say, chart) for chart in charts)
            markup = f'<div class="pai-title">{escape(title)}</div><div class="pai-charts">{drawn}</div>'
        else:
            markup = ""
        if self.charts.value != markup:
            self.charts.value = markup
        show(self, bool(markup))
