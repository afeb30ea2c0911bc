"""JobMonitor: what a job does, why it waits, how it ended, and its output while it is written."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Literal

from pai_labextension.messages import msg
from pai_scheduler.client.blocking import start
from pai_scheduler.client.cli.show import show_job
from pai_scheduler.client.rest import Client, UnreachableError
from pai_scheduler.rest.models import JobDetail

from .base import TROUBLE, ConsoleWidget, name_of

#: Bytes of a log that are read unless somebody wants more or fewer.
KEPT = 1_000_000
#: Seconds before a scheduler that did not answer is asked again, at first and at most.
FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0
_ENDED = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
_INTERNAL = 500

Stream = Literal["all", "stdout", "stderr"]


class MonitorClosedError(RuntimeError):
    """Somebody waited for a job with a monitor that was closed meanwhile."""


class JobEnd(str):
    """The state in which a job ended: the text "SUCCEEDED", "FAILED" or "STOPPED", which knows why.

    `exit_code`: of the task that decided, None where none did; `reason`: a sentence, empty where there is
    nothing to say.
    """

    __slots__ = ("exit_code", "reason")

    exit_code: int | None
    reason: str

    def __new__(cls, state: str, exit_code: int | None = None, reason: str = "") -> JobEnd:
        """Make an end; a text is complete when it is made, so there is no `__init__`."""
        made = super().__new__(cls, state)
        made.exit_code, made.reason = exit_code, reason
        return made

    def __repr__(self) -> str:
        facts = [repr(str(self))]
        facts += [] if self.exit_code is None else [f"exit_code={self.exit_code}"]
        facts += [f"reason={self.reason!r}"] if self.reason else []
        return f"JobEnd({', '.join(facts)})"


class JobMonitor(ConsoleWidget):
    """Shows one job: its state, its tasks, its log while it is written.

    `user`: whose job (None: one's own).
    `client`: how to reach the scheduler; None: as the notebook's environment says.
    `locale`: "en", "zh_CN" or None for the person's own (see `locales.default_locale`).
    """

    def __init__(
        self, name: str, user: str | None = None, client: Client | None = None, locale: str | None = None
    ) -> None:
        self.name, self.user = name, user
        self._end: Future[JobEnd] | None = None
        super().__init__("job", client, locale, {"name": name, "user": user})

    @property
    def detail(self) -> JobDetail:
        """Return the job as the REST API has it now; ApiError, UnreachableError."""

        async def look(client: Client) -> JobDetail:
            return await client.job(await name_of(client, self.user), self.name)

        return self._ask_now(look)

    @property
    def state(self) -> str:
        """Return the job's state now; ApiError, UnreachableError."""
        return self.detail["jobStatus"]["state"]

    async def wait(self) -> JobEnd:
        """Wait until the job has ended; return how: its state, with `exit_code` and `reason`.

        ApiError where there is no such job, MonitorClosedError where this monitor is closed meanwhile.
        """
        if self._end is None:
            self._end = start(self._ask(self._until_ended))
        end = self._end
        try:
            # (who gives up waiting leaves others waiting)
            return await asyncio.shield(asyncio.wrap_future(end))
        except asyncio.CancelledError:
            if not end.cancelled():
                raise
        raise MonitorClosedError(self._say(msg("This monitor was closed before the job ended.")))

    def log(self, role: str, index: int = 0, stream: Stream = "all", *, last: int = KEPT) -> str:
        """Return what a task has written in its last attempt, `last` bytes of it at most.

        Raises ApiError where there is no such task, UnreachableError where the scheduler does not answer.
        """

        async def read(client: Client) -> bytes:
            user = await name_of(client, self.user)
            return await client.log(user, self.name, role, index, stream, offset=-last)

        return self._ask_now(read).decode(errors="replace")

    async def stop(self, *, now: bool = False) -> None:
        """Stop the job, without asking again; `now`: its tasks get no time to end by themselves.

        ApiError where it may not be stopped, UnreachableError where the scheduler does not answer.
        """

        async def stop(client: Client) -> None:
            await client.stop(await name_of(client, self.user), self.name, force=now)

        await asyncio.wrap_future(start(self._ask(stop)))

    def close(self) -> None:
        """Stop answering the browser, and remove the widget; the job runs on."""
        if (end := getattr(self, "_end", None)) is not None:
            end.cancel()
        super().close()

    def __repr__(self) -> str:
        return f"JobMonitor({self.name!r})"

    def as_text(self) -> str:
        """Return the job as `pai show` prints it."""
        return show_job(self.detail, self.locale)

    async def _until_ended(self, client: Client) -> JobEnd:
        delay, seen = FIRST_RETRY, 0
        while True:
            try:
                user = await name_of(client, self.user)
                async for event in client.events(user, self.name, after=seen):
                    seen, delay = max(seen, event["id"]), FIRST_RETRY
                status = (await client.job(user, self.name))["jobStatus"]
                if status["state"] in _ENDED:
                    return JobEnd(status["state"], status["appExitCode"], status["appExitDiagnostics"] or "")
            except TROUBLE as error:
                if not isinstance(error, UnreachableError) and error.status < _INTERNAL:
                    raise
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_RETRY)
