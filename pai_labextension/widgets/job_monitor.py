"""JobMonitor: what a job does, why it waits, how it ended, and its output while it is written."""

from __future__ import annotations

import asyncio

import ipywidgets as widgets

from pai_scheduler.client.cli.show import show_job
from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.client.storage.client import FilesError
from pai_scheduler.job.environment import storage_uris
from pai_scheduler.job.validation import build_spec
from pai_scheduler.rest.models import AttemptInfo, JobDetail, JobEvent

from . import attempts_view, job_view
from .explorer.paths import VARIABLE
from .explorer.view import ExplorerView
from .explorer.words import reason
from .job_end import JobEnd, end_of
from .links import port_link, server_prefix
from .log_follow import LogChoice, Stream
from .log_panel import LogPanel
from .log_text import KEPT, LogText
from .look import button, notice, show
from .top import TopWidget
from .usage_panel import UsageChoice, UsagePanel
from .watch import ENDED, JobWatch, Pace

#: How much of a failed task's output is shown beside its exit code.
_LAST_BYTES, _LAST_LINES = 8192, 8


class MonitorClosedError(RuntimeError):
    """Somebody waited for a job with a monitor that was closed meanwhile."""


class JobMonitor(TopWidget):
    """Shows one job until it has ended.

    `user`: whose job (None: one's own).
    `client`: how to reach the scheduler; None: as the notebook's environment says.
    `locale`: "en", "zh_CN" or None for the person's own (see `language.default_locale`).
    Needs a running asyncio loop, as every notebook has (`NoEventLoopError`).
    """

    def __init__(
        self,
        name: str,
        user: str | None = None,
        client: Client | None = None,
        locale: str | None = None,
        *,
        pace: Pace | None = None,
    ) -> None:
        super().__init__(client, locale)
        say = self.say
        self.name, self.user = name, user
        self._pace = pace or Pace()
        #: Whether the viewer may open its ports; False until that is known.
        self._is_mine = False
        self.detail: JobDetail | None = None
        self._attempts: list[AttemptInfo] = []
        #: When the first container goes that is kept for debugging, by attempt; ms since the epoch.
        self._held_until: dict[int, int] = {}
        self._watch: JobWatch | None = None
        self._over: asyncio.Future[JobEnd] = asyncio.get_running_loop().create_future()

        self.head = widgets.HTML(notice(say("Looking for the job {name} …", name=name)))
        self.activity = widgets.HTML()
        self.trouble = widgets.HTML()
        self.ending = widgets.HTML()
        self.tasks = widgets.HTML()
        self.history = widgets.HTML()
        self.usage = UsagePanel(self.client, name, say, self._background)
        self.logs = LogPanel(self.client, name, say, self._background, self._show_usage)
        self.stop_button = button(
            say("Stop job"), icon="stop", style="danger", on_click=lambda: self._ask_to_stop(True)
        )
        self.stop_yes = button(say("Yes, stop it"), style="danger", on_click=self._start_stop)
        self.kill_button = button(
            say("Kill now"),
            icon="bolt",
            style="danger",
            tooltip=say("Its tasks are being stopped: give them no more time to end by themselves"),
            on_click=self._start_kill,
        )
        stop_no = button(say("Let it run"), on_click=lambda: self._ask_to_stop(False))
        question = widgets.Label(say("Stop this job and all its tasks?"))
        self._confirm = widgets.HBox([question, self.stop_yes, stop_no])
        self._stop_row = widgets.HBox([self.stop_button, self._confirm])
        self.results_button = button(
            say("Results"),
            icon="folder-open",
            tooltip=say("Show the job's outputDir in the storage"),
            on_click=self._start_results,
        )
        #: The explorer at the job's outputDir, once it was asked for.
        self.results: ExplorerView | None = None
        self._results_place = widgets.VBox()
        for part in (
            self.activity,
            self.trouble,
            self.ending,
            self.tasks,
            self.history,
            self._stop_row,
            self._confirm,
            self.kill_button,
            self.results_button,
        ):
            show(part, False)
        self._fill(
            [
                self.head,
                self.activity,
                self.trouble,
                self.outcome,
                self.ending,
                self.tasks,
                self.history,
                widgets.HBox([self.results_button, self._stop_row, self.kill_button]),
                self._results_place,
                self.logs,
                self.usage,
            ]
        )
        self._background.spawn(self._run(), "pai-job-monitor")

    @property
    def state(self) -> str | None:
        """Return the job's state as last seen; None before the first answer."""
        return self.detail["jobStatus"]["state"] if self.detail else None

    async def wait(self) -> JobEnd:
        """Wait until the job has ended; return how: its state, with `exit_code` and `reason`.

        ApiError where there is no such job.
        """
        return await asyncio.shield(self._over)

    def log(self, role: str, index: int = 0, stream: Stream = "all", *, last: int = KEPT) -> str:
        """Return what a task has written in its last attempt, `last` bytes of it at most.

        Raises ApiError where there is no such task, UnreachableError where the scheduler does not answer.
        """

        async def read(client: Client) -> bytes:
            user = self.user or (await client.whoami())["username"]
            return await client.log(user, self.name, role, index, stream, offset=-last)

        return self._ask_now(read).decode(errors="replace")

    def __repr__(self) -> str:
        return f"JobMonitor({self.name!r}, state={self.state!r})"

    def as_text(self) -> str:
        """Return the job as `pai show` prints it."""
        if self.detail is None:
            return self.say("Looking for the job {name} …", name=self.name)
        return show_job(self.detail, self.say.locale)

    async def stop(self, *, now: bool = False) -> None:
        """Stop the job, without asking again; `now`: its tasks get no time to end by themselves."""
        self._ask_to_stop(False)
        try:
            await self.client.stop(await self._owner(), self.name, force=now)
        except (ApiError, UnreachableError) as error:
            self._tell(notice(self.say("Not stopped: {error}", error=error), "error"))
            return
        self._tell("")
        if self._watch is not None:
            self._watch.look()

    async def show_results(self) -> None:
        """Show what is in the job's outputDir."""
        user = await self._owner()
        try:
            spec = build_spec(await self.client.config(user, self.name))
            path = self.storage.resolve(storage_uris(spec, user, VARIABLE).output_dir)
        except (ApiError, FilesError, UnreachableError) as error:
            text = self.say("The results cannot be shown: {error}", error=reason(self.say, error))
            self._tell(notice(text, "error"))
            return
        if self.results is None:
            self.results = ExplorerView(self.storage, self.say, self._background, path)
            self._results_place.children = (self.results,)
        else:
            self.results.go(path)

    def close(self) -> None:
        """Stop everything this widget does in the background, and remove it; the job runs on."""
        super().close()
        if self._made:
            self._finish(error=MonitorClosedError(self.say("This monitor was closed before the job ended.")))

    async def _run(self) -> None:
        try:
            user = await self._patient_owner()
            self._watch = JobWatch(
                self.client,
                user,
                self.name,
                on_job=self._show_job,
                on_event=self._show_event,
                on_trouble=self._show_trouble,
                pace=self._pace,
            )
            await self._watch.run()
            await self._explain_failure()
        except ApiError as error:
            self.head.value = notice(
                self.say("The job {name} cannot be shown: {error}", name=self.name, error=error.message),
                "error",
            )
            show(self.trouble, False)
            self._finish(error=error)
        except Exception as error:
            self._finish(error=error)
            raise
        else:
            self._finish()

    def _finish(self, error: Exception | None = None) -> None:
        """Wake those who wait for the job."""
        if self._over.done():
            return
        if error is None:
            assert self.detail is not None  # noqa: S101 - the watch has shown it at least once
            self._over.set_result(end_of(self.detail))
        else:
            self._over.set_exception(error)
            self._over.exception()  # it is shown: no warning where nobody waits

    def _start_stop(self) -> None:
        self._background.spawn(self.stop(), "pai-stop")

    def _start_kill(self) -> None:
        self._background.spawn(self.stop(now=True), "pai-kill")

    def _start_results(self) -> None:
        self._background.spawn(self.show_results(), "pai-results")

    async def _owner(self) -> str:
        if self.user is None:
            self.user = (await self.client.whoami())["username"]
        return self.user

    async def _patient_owner(self) -> str:
        delay = self._pace.first_retry
        while True:
            try:
                me = (await self.client.whoami())["username"]
                self.user = self.user or me
                self._is_mine = self.user == me
                return self.user
            except UnreachableError as error:
                self._show_trouble(str(error))
            await asyncio.sleep(delay)
            delay = min(2 * delay, self._pace.longest_retry)

    async def _explain_failure(self) -> None:
        """Fetch the last lines of the task that decided."""
        assert self.detail is not None  # noqa: S101 - the watch has shown it at least once
        status = self.detail["jobStatus"]
        role, index = status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"]
        if status["state"] != "FAILED" or not role or index is None:
            return
        try:
            output = await self.client.log(await self._owner(), self.name, role, index, offset=-_LAST_BYTES)
        except (ApiError, UnreachableError) as error:
            self._show_trouble(str(error))
            return
        self._show(self.ending, job_view.ending(self.say, self.detail, last_lines(output)))

    def _show_job(self, detail: JobDetail, attempts: list[AttemptInfo]) -> None:
        self.detail, self._attempts = detail, attempts
        ended = detail["jobStatus"]["state"] in ENDED
        self._show_head()
        # only the attempts know on which machine a task is
        roles = attempts[-1]["taskRoles"] if attempts else detail["taskRoles"]
        self._show(self.tasks, job_view.tasks(self.say, roles, self._port_link))
        self._show(self.history, attempts_view.history(self.say, attempts, ended))
        self._show(self.ending, job_view.ending(self.say, detail, ""))
        ending = detail["jobStatus"]["subState"] == "ENDING"
        show(self._stop_row, not ended and not ending)
        show(self.kill_button, ending)
        show(self.results_button, True)
        if ended:
            show(self.activity, False)
        self.logs.load(detail["jobStatus"]["username"], attempts)

    def _port_link(self, role: str, index: int, label: str) -> str | None:
        prefix = server_prefix() if self._is_mine and self.user is not None else None
        return (
            None if prefix is None else port_link(prefix, str(self.user), self.name, f"{role}-{index}", label)
        )

    def _show_head(self) -> None:
        if self.detail is not None:
            held_until = self._held_until.get(len(self._attempts) - 1)
            self.head.value = job_view.head(self.say, self.detail, self._attempts, held_until)

    def _show_usage(self, choice: LogChoice) -> None:
        """Show what the task uses whose log is shown."""
        detail = self.detail
        if detail is None:
            return
        found = next((a for a in self._attempts if a["attempt"] == choice.attempt), None)
        role = found["taskRoles"].get(choice.role) if found is not None else None
        states = [
            status["taskState"]
            for status in (role["taskStatuses"] if role is not None else [])
            if status["taskIndex"] == choice.index
        ]
        alive = choice.live and not any(state in ENDED for state in states)
        user = detail["jobStatus"]["username"]
        self.usage.choose(UsageChoice(user, choice.role, choice.index, choice.attempt, alive))

    def _show_event(self, event: JobEvent) -> None:
        until = event["data"].get("until")
        if event["type"] == "held" and isinstance(until, int):
            attempt = event["attempt"] or 0
            self._held_until[attempt] = min(until, self._held_until.get(attempt, until))
            self._show_head()
        # who came and went is among the job events; here it would stand for what the job itself is at
        if event["message"] and event["type"] != "access" and self.state not in ENDED:
            self._show(self.activity, notice(event["message"]))

    def _show_trouble(self, sentence: str | None) -> None:
        self._show(self.trouble, notice(sentence, "warning") if sentence else "")

    def _ask_to_stop(self, asking: bool) -> None:
        show(self.stop_button, not asking)
        show(self._confirm, asking)

    def _show(self, part: widgets.HTML, markup: str) -> None:
        part.value = markup
        show(part, bool(markup))


def last_lines(output: bytes) -> str:
    """Return the last lines of an output as a terminal would show them."""
    text = LogText()
    text.feed(output)
    shown = "".join(block for _, block in text.take_changes())
    return "\n".join(shown.rstrip().split("\n")[-_LAST_LINES:])
