"""JobTable: a table of one's jobs that stays up to date."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape

import ipywidgets as widgets

from pai_scheduler.client.cli.show import jobs_table
from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.rest.models import JobSummary

from .cluster_watch import GAP, watch_cluster
from .job_view import duration, state_word
from .language import Language
from .look import notice, show
from .times import when
from .top import TopWidget

#: Jobs that are shown unless somebody asks for more.
SHOWN = 20


class JobTable(TopWidget):
    """Shows the newest jobs, and each change of them.

    `states`: only those in these, for example `["RUNNING", "WAITING"]`.
    `user`: whose jobs (None: one's own; "": everybody's, for administrators).
    `limit`: so many, the newest first.
    `client`, `locale`: as of JobMonitor.
    Needs a running asyncio loop, as every notebook has (`NoEventLoopError`).
    """

    def __init__(
        self,
        states: Sequence[str] = (),
        user: str | None = None,
        client: Client | None = None,
        locale: str | None = None,
        *,
        limit: int = SHOWN,
        gap: float = GAP,
    ) -> None:
        super().__init__(client, locale)
        self._states = [state.upper() for state in ([states] if isinstance(states, str) else states)]
        self._user, self._limit = user, limit
        #: One more than is shown, so that it is known whether there are more; None before the first answer.
        self._jobs: list[JobSummary] | None = None
        self.trouble = widgets.HTML()
        self.table = widgets.HTML(notice(self.say("Looking for jobs …")))
        show(self.trouble, False)
        self._fill([self.trouble, self.outcome, self.table])
        self._background.spawn(
            watch_cluster(self.client, self._look, self._show_trouble, gap), "pai-job-table"
        )

    @property
    def jobs(self) -> list[JobSummary]:
        """Return the jobs that are shown, as the REST API has them.

        Raises ApiError, UnreachableError where they are not known yet and cannot be asked for.
        """
        if self._jobs is None:
            self._take(self._ask_now(self._ask))
        return (self._jobs or [])[: self._limit]

    def __repr__(self) -> str:
        return f"JobTable({', '.join(repr(job['name']) for job in (self._jobs or [])[: self._limit])})"

    def as_text(self) -> str:
        """Return the table as `pai jobs` prints it."""
        try:
            jobs = self.jobs
        except (ApiError, UnreachableError) as error:
            return str(error)
        table = jobs_table(jobs, self.say.locale) if jobs else self.say("There are no jobs.")
        return "\n".join(filter(None, (table, self._rest())))

    async def _look(self) -> None:
        self._take(await self._ask(self.client))

    async def _ask(self, client: Client) -> list[JobSummary]:
        user = (await client.whoami())["username"] if self._user is None else self._user
        return await client.jobs(user, states=self._states, limit=self._limit + 1)

    def _take(self, jobs: list[JobSummary]) -> None:
        self._jobs = jobs
        shown = markup(self.say, self.jobs, int(time.time() * 1000))
        self.table.value = shown + (notice(rest) if (rest := self._rest()) else "")

    def _rest(self) -> str:
        """Say that there are more than are shown."""
        if self._jobs is None or len(self._jobs) <= self._limit:
            return ""
        return self.say(
            "These are the newest {count}, and there are more: JobTable(limit={more}) shows twice as many.",
            count=self._limit,
            more=2 * self._limit,
        )

    def _show_trouble(self, sentence: str | None) -> None:
        self.trouble.value = notice(sentence, "warning") if sentence else ""
        show(self.trouble, bool(sentence))


def markup(say: Language, jobs: Sequence[JobSummary], now: int) -> str:
    """Lay the jobs out; `now` (ms since the epoch) counts for those that have not ended."""
    if not jobs:
        return notice(say("There are no jobs."))
    several = len({job["username"] for job in jobs}) > 1
    columns = [
        say("Name"),
        *([say("User")] if several else []),
        say("State"),
        say("Virtual cluster"),
        say("Tasks"),
        say("GPUs"),
        say("Submitted"),
        say("Took"),
        say("Exit code"),
    ]
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    rows = "".join(_row(say, job, now, several=several) for job in jobs)
    return f'<table class="pai-tasks"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _row(say: Language, job: JobSummary, now: int, *, several: bool) -> str:
    state = (
        f'<span class="pai-state pai-state-{escape(job["state"])}">'
        f"{escape(state_word(say, job['state']))}</span>"
    )
    if job["queuePlace"] is not None:
        state += " " + escape(say("Place {place} in the queue", place=job["queuePlace"]))
    ended = job["completedTime"] if job["completedTime"] is not None else now
    cells = [
        escape(job["name"]),
        *([escape(job["username"])] if several else []),
        state,
        escape(job["virtualCluster"]),
        str(job["totalTaskNumber"]),
        str(job["totalGpuNumber"]),
        when(job["createdTime"]),
        escape(duration(say, ended - job["createdTime"])),
        "" if job["appExitCode"] is None else str(job["appExitCode"]),
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
