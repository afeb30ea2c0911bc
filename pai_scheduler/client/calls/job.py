"""One job that runs Python code: files go up, tasks are followed, what comes back is read and removed."""

from __future__ import annotations

import asyncio
import codecs
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.client.storage.code import CodeSettings, plan
from pai_scheduler.client.storage.errors import FilesError
from pai_scheduler.client.storage.transfer import side_by_side
from pai_scheduler.client.storage.upload import upload_files
from pai_scheduler.job.environment import storage_uris
from pai_scheduler.job.messages import msg
from pai_scheduler.job.parse import build_spec, config_of

from .demand import Demand, make_job
from .errors import CallError, JobFailedError, RemoteTraceback
from .outcome import Outcome, read_outcome
from .tracebacks import TracebackTaker

#: Seconds for which a scheduler that is being restarted is waited for, and between two tries.
PATIENCE, AGAIN = 120.0, 1.0
#: After so many ms the files of a job that has ended count as forgotten.
FORGOTTEN = 24 * 3600 * 1000
#: Which files of a folder go along with a job, where its settings do not say it.
_ALL_CODE = ("**/*.py", "**/*.sh", "**/*.json", "**/*.yaml", "**/*.yml", "**/*.toml", "**/*.txt")
_DEFAULT = "$PAI_DEFAULT_FS_URI"
#: How much of a log is shown with a task that failed.
_LAST_BYTES, _LAST_LINES = 8192, 20

#: A task: its role and its index.
Task = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Access:
    """How the scheduler is reached: as `Client` has it; None: as the environment says."""

    url: str | None = None
    token: str | None = None
    locale: str = "en"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened: `kind` as of a job's events, or `name`, `waiting`, or `output` of a task.

    `traceback`: what a task has written of an exception that is its outcome; it is in no `output`.
    """

    kind: str
    message: str
    task: Task | None = None
    outcome: Outcome | None = None


#: Is told what happens, on the event loop.
Tell = Callable[[Change], None]


@dataclass(slots=True)
class Watching:
    """Whether the job is only watched no longer when its following is cancelled, instead of stopped."""

    leave: bool = False


class CallJob:
    """A job of Python code. Use it within `opened`; `name` and `user` are known when it is submitted."""

    def __init__(self, client: Client, files: FilesClient, locale: str) -> None:
        self.client, self.files, self.locale = client, files, locale
        self.name = self.user = ""
        self.outcomes: dict[Task, Outcome] = {}
        self._tasks: list[Task] = []
        self._folder = ""

    async def submit(
        self,
        demand: Demand,
        name: str,
        roles: Mapping[str, int],
        payload: Mapping[str, bytes],
        *,
        together: bool,
    ) -> None:
        """Send the files, then the job; nothing stays of it where it is refused."""
        job = await make_job(self.client, demand, name, roles, self.locale, together=together)
        checked = await self.client.validate(job)
        if checked["errors"]:
            first = checked["errors"][0]
            raise CallError(
                msg("Not submitted: {path}: {error}", path=first["path"], error=first["message"]), self.locale
            )
        if checked["fits"] == "never":
            raise CallError(msg("Not submitted: {reason}", reason=checked["reason"]), self.locale)
        self.user = (await self.client.whoami())["username"]
        code = self.files.resolve(storage_uris(build_spec(config_of(job)), self.user, _DEFAULT).code_dir)
        self._folder = code.rpartition("/")[0]
        await self._remove_forgotten(self._folder.rpartition("/")[0])
        try:
            await self._upload(code, demand, payload)
            self.name = await self.client.submit(job)
        except BaseException:
            await self.remove()
            raise
        self._tasks = [(role, index) for role, count in roles.items() for index in range(count)]

    async def follow(self, tell: Tell, *, output: bool = False) -> dict[Task, Outcome]:
        """Tell what happens until the job has ended, and with `output` what its tasks write.

        Return what came of each task, in the order in which they ended.
        """
        async with asyncio.TaskGroup() as logs:
            await self._follow(tell, logs if output else None)
        for task in self._tasks:
            await _patiently(self._collect, task)
        await _patiently(self._explain)
        return self.outcomes

    async def _follow(self, tell: Tell, logs: asyncio.TaskGroup | None) -> None:
        seen, waited = 0, 0.0
        while True:
            try:
                async for event in self.client.events(self.user, self.name, after=seen):
                    seen, waited = event["id"], 0.0
                    role, index = event["taskRole"], event["taskIndex"]
                    task = None if role is None or index is None else (role, index)
                    if task is not None and event["type"] == "task-ended":
                        await self._collect(task)
                    if task is not None and event["type"] == "task-started" and logs is not None:
                        logs.create_task(self._tell_output(task, event["attempt"], tell))
                    outcome = None if task is None else self.outcomes.get(task)
                    tell(Change(event["type"], event["message"], task, outcome))
                    if event["type"] == "submitted" and (why := await self.waiting_reason()):
                        tell(Change("waiting", why))
                return
            except (UnreachableError, FilesError) as error:
                if waited > PATIENCE or not _may_pass(error):
                    raise
                waited += AGAIN
                await asyncio.sleep(AGAIN)

    async def _tell_output(self, task: Task, attempt: int | None, tell: Tell) -> None:
        """Tell what a task writes, until it has ended."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        taker = TracebackTaker(lambda: self._traceback(task))
        async with aclosing(self._log_parts(task, attempt)) as parts:
            async for data in parts:
                if text := await taker.pass_on(decoder.decode(data)):
                    tell(Change("output", text, task))
        if rest := taker.rest():
            tell(Change("output", rest, task))
        if taker.taken:
            tell(Change("traceback", taker.taken, task))

    async def _log_parts(self, task: Task, attempt: int | None) -> AsyncGenerator[bytes, None]:
        """Read a log to its end; a connection that breaks is made again."""
        position, tries = 0, 0
        while True:
            try:
                parts = self.client.log_stream(
                    self.user, self.name, *task, attempt=attempt, offset=position, follow=True
                )
                async with aclosing(parts):
                    async for part in parts:
                        position, tries = part.next_offset, 0
                        yield part.data
                return
            except ApiError:
                # the job is gone, or too many logs are read at once: the rest is in `pai logs`
                return
            except UnreachableError:
                tries += 1
                if tries > PATIENCE / AGAIN:
                    return
                await asyncio.sleep(AGAIN)

    async def _traceback(self, task: Task) -> str:
        """Return the traceback that a task has sent back; empty where it has not."""
        # (a storage that does not answer now: the traceback is then told twice)
        with suppress(FilesError, UnreachableError):
            await self._collect(task)
        outcome = self.outcomes.get(task)
        cause = outcome.error.__cause__ if outcome is not None and outcome.error is not None else None
        return cause.text if isinstance(cause, RemoteTraceback) else ""

    async def waiting_reason(self) -> str:
        """Return why the job waits in the queue; empty where it does not."""
        status = (await self.client.job(self.user, self.name))["jobStatus"]
        return status["waitingReason"] if status["subState"] == "QUEUED" else ""

    async def stop(self) -> None:
        """Stop the job; one that has ended, or is gone, is no error."""
        if self.name:
            with suppress(ApiError):
                await self.client.stop(self.user, self.name)

    async def remove(self) -> None:
        """Remove the files of the job from the storage; the job and its logs stay."""
        if self._folder:
            with suppress(FilesError, UnreachableError):
                await self.files.delete(self._folder, recursive=True)

    async def _remove_forgotten(self, calls: str) -> None:
        """Remove what nobody fetched: the files of jobs that have ended, or are gone, after a day."""
        latest = int(time.time() * 1000) - FORGOTTEN
        with suppress(FilesError):  # there were no calls before, or the storage is busy: the next one does it
            old = [
                entry
                async for entry in self.files.iterate(calls)
                if entry.is_folder and entry.modified < latest
            ]
            for entry in old:
                if await self._ended_before(entry.name, latest):
                    await self.files.delete(entry.path, recursive=True)

    async def _ended_before(self, job: str, moment: int) -> bool:
        """Return whether a job ended before a time (ms since the epoch), or is not there any more."""
        try:
            completed = (await self.client.job(self.user, job))["jobStatus"]["completedTime"]
        except ApiError as error:
            return error.status == 404
        # one that ended just now may be waited for elsewhere
        return completed is not None and completed < moment

    async def _upload(self, code: str, demand: Demand, payload: Mapping[str, bytes]) -> None:
        await self.files.mkdirs(f"{self._folder}/results")
        if demand.code is not None:
            chosen = await asyncio.to_thread(plan, demand.code, CodeSettings(include=_ALL_CODE))
            for item in chosen.left_out:
                raise CallError(msg("{reason} Nothing was submitted.", reason=item.reason), self.locale)
            await upload_files(self.files, chosen.files, code)

        async def write(name: str) -> None:
            await self.files.write(f"{code}/{name}", payload[name])

        for folder in {name.rpartition("/")[0] for name in payload}:
            await self.files.mkdirs(f"{code}/{folder}")
        await side_by_side(payload, write)

    async def _collect(self, task: Task) -> None:
        """Read what a task has sent back, where it has and that is not known yet."""
        if task in self.outcomes:
            return
        name = f"{task[0]}-{task[1]}"
        path = f"{self._folder}/results/{name}"
        if await self.files.find(path) is None:
            return
        async with self.files.read(path) as pieces:
            data = b"".join([piece async for piece in pieces])
        outcome = await asyncio.to_thread(read_outcome, data, name, self.locale)
        # (who follows the log may have read it meanwhile)
        self.outcomes.setdefault(task, outcome)

    async def _explain(self) -> None:
        """Give the tasks that sent nothing back the reason why."""
        if all(task in self.outcomes for task in self._tasks):
            return
        detail = await self.client.job(self.user, self.name)
        status = detail["jobStatus"]
        log = await self._last_lines(status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"])
        reason = status["appExitDiagnostics"] or status["state"]
        message = (
            msg("Job {name}: {reason}\n{log}", name=self.name, reason=reason, log=log)
            if log
            else msg("Job {name}: {reason}", name=self.name, reason=reason)
        )
        for task in self._tasks:
            if task not in self.outcomes:
                error = JobFailedError(
                    message,
                    self.locale,
                    job=self.name,
                    state=status["state"],
                    exit_code=status["appExitCode"],
                )
                self.outcomes[task] = Outcome(error=error)

    async def _last_lines(self, role: str, index: int | None) -> str:
        if not role or index is None:
            return ""
        try:
            data = await self.client.log(self.user, self.name, role, index, offset=-_LAST_BYTES)
        except (ApiError, UnreachableError):
            return ""
        return "\n".join(data.decode(errors="replace").rstrip().splitlines()[-_LAST_LINES:])


async def _patiently(work: Callable[..., Awaitable[None]], *arguments: Any) -> None:
    """Do some work, again while the scheduler is being restarted."""
    waited = 0.0
    while True:
        try:
            return await work(*arguments)
        except (UnreachableError, FilesError) as error:
            if waited > PATIENCE or not _may_pass(error):
                raise
        waited += AGAIN
        await asyncio.sleep(AGAIN)


def _may_pass(error: UnreachableError | FilesError) -> bool:
    return isinstance(error, UnreachableError) or error.may_pass


@asynccontextmanager
async def opened(access: Access) -> AsyncIterator[CallJob]:
    """Open the ways to the scheduler and the storage for one job."""
    client = Client(access.url, access.token, locale=access.locale)
    files = FilesClient(client.url, client.token, locale=access.locale)
    async with client, files:
        yield CallJob(client, files, access.locale)


async def run_job(
    access: Access,
    demand: Demand,
    name: str,
    roles: Mapping[str, int],
    payload: Mapping[str, bytes],
    tell: Tell,
    *,
    together: bool,
    output: bool = False,
    watching: Watching | None = None,
) -> dict[Task, Outcome]:
    """Submit a job of code, follow it to its end and remove its files.

    `together`: a task that fails ends the others. `output`: what the tasks write is told too. Cancelled, it
    stops the job, unless `watching` says to leave it; then it runs on, and its files stay.
    """
    async with opened(access) as job:
        await job.submit(demand, name, roles, payload, together=together)
        tell(Change("name", job.name))
        try:
            outcomes = await job.follow(tell, output=output)
        except asyncio.CancelledError:
            if watching is None or not watching.leave:
                await job.stop()
                await job.remove()
            raise
        await job.remove()
        return outcomes
