"""One job that runs Python code: files go up, tasks are followed, what comes back is read and removed."""

from __future__ import annotations

import asyncio
import codecs
import json
import pickle
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.storage.client import FilesError
from pai_scheduler.client.storage.code import CodeSettings, plan
from pai_scheduler.client.storage.transfer import amount
from pai_scheduler.client.storage.upload import upload_files
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.environment import storage_uris
from pai_scheduler.job.validation import build_spec, config_of

from .demand import CallDemand, make_job
from .errors import CallError, JobFailedError, RemoteTraceback
from .packing import PROGRAM, TracebackTaker
from .session import AGAIN, PATIENCE, Access, CallSession, opened

# Reads what a task that runs Python code has sent back.


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """Result of one task: a value, or an error with the traceback that it has there."""

    value: Any = None
    error: BaseException | None = None

    def get(self) -> Any:
        """Return the value, or raise the error."""
        __tracebackhide__ = True  # IPython then shows the user's own frames
        if self.error is not None:
            raise self.error
        return self.value


def read_outcome(data: bytes, task: str, locale: str = "en") -> CallOutcome:
    """Read a task's file. The pickle in it was written by the user's own code, with the user's own rights."""
    line, _, body = data.partition(b"\n")
    head: dict[str, Any] = json.loads(line)
    if "problem" in head:
        return CallOutcome(error=CallError(_problem(head, task), locale))
    found: Any = None
    reason: BaseException | None = None
    try:
        found = pickle.loads(body) if body else None  # noqa: S301 - see above
    except (
        Exception,
        SystemExit,
        KeyboardInterrupt,
    ) as error:
        # (what reading it runs is the user's, too)
        reason = error
    if head.get("ok"):
        if reason is None:
            return CallOutcome(found)
        unread = msg("What {task} returned cannot be read here: {reason}.", task=task, reason=repr(reason))
        return CallOutcome(error=CallError(unread, locale))
    if not isinstance(found, BaseException) or isinstance(found, StopIteration):
        # (a StopIteration ends whatever iterates, and no future may have one)
        # the exception itself cannot travel: its words do
        found = CallError(msg("{task}: {error}", task=task, error=head["error"]), locale)
    found.__cause__ = RemoteTraceback(head["traceback"], task)
    return CallOutcome(error=found)


def _problem(head: dict[str, Any], task: str) -> Message:
    match head["problem"]:
        case "python":
            return msg(
                "The job has Python {here}, but the code was sent by Python {there}, and functions cannot go "
                "from one to the other. Choose an image with Python {there} (image=…), or name that Python "
                "in it (python=…).",
                here=_version(head["here"]),
                there=_version(head["there"]),
            )
        case "import":
            return msg(
                "{reason}: the job has no module {module}. Choose an image that has it, or send the folder "
                "that it is in along (code=…).",
                reason=head["reason"],
                module=head["module"],
            )
        case "size":
            return msg(
                "What {task} returns has {length}, of {most} at most. Write it into the job's PAI_OUTPUT_DIR "
                "instead.",
                task=task,
                length=amount(head["length"]),
                most=amount(head["most"]),
            )
        case "value":
            return msg("What {task} returns cannot be sent back: {reason}.", task=task, reason=head["reason"])
        case "exit":
            return msg("{task} has ended by itself (sys.exit), so nothing came back.", task=task)
        case _:
            return msg(
                "What was sent to {task} cannot be read there: {reason}.", task=task, reason=head["reason"]
            )


def _version(version: list[int]) -> str:
    return ".".join(map(str, version))


# One job that runs Python code: files go up, tasks are followed, what comes back is read and removed.

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
class Change:
    """Something that happened: `kind` as of a job's events, or `name`, `waiting`, or `output` of a task.

    `traceback`: what a task has written of an exception that is its outcome; it is in no `output`.
    """

    kind: str
    message: str
    task: Task | None = None
    outcome: CallOutcome | None = None


#: Is told what happens, on the event loop.
Tell = Callable[[Change], None]


@dataclass(slots=True)
class Watching:
    """Cancellation option of a followed job: `leave` it running instead of stopping it."""

    leave: bool = False


class CallJob:
    """A job of Python code; `name` and `user` are known when it is submitted."""

    def __init__(self, session: CallSession) -> None:
        self.session, self.client, self.files = session, session.client, session.files
        self.locale = session.locale
        self.name = self.user = ""
        self.outcomes: dict[Task, CallOutcome] = {}
        self._tasks: list[Task] = []
        self._folder = ""

    async def submit(
        self,
        demand: CallDemand,
        name: str,
        roles: Mapping[str, int],
        program: bytes,
        tell: Tell | None,
        *,
        together: bool,
    ) -> None:
        """Send the program, then the job; nothing stays of it where it is refused."""

        def waiting(why: str) -> None:
            if tell is not None:
                tell(Change("waiting", why))

        async with self.session.submitting:
            place = await self.session.place()
            job = make_job(demand, place, name, roles, self.locale, together=together)
            await self.session.check(job)
            self.user = place.user
            code = self.files.resolve(storage_uris(build_spec(config_of(job)), self.user, _DEFAULT).code_dir)
            self._folder = code.rpartition("/")[0]
            if not self.session.tidied:
                self.session.tidied = True
                await self._remove_forgotten(self._folder.rpartition("/")[0])
            try:
                await self.session.patiently(self._upload, code, demand, program)
                self.name = job["jobName"]
                await self.session.submit(job, waiting)
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError):
                    # (it may have been accepted)
                    await self.stop()
                await self.remove()
                raise
        self._tasks = [(role, index) for role, count in roles.items() for index in range(count)]

    async def follow(self, tell: Tell | None, *, output: bool = False) -> dict[Task, CallOutcome]:
        """Tell what happens until the job has ended, and with `output` what its tasks write.

        Return what came of each task, in the order in which they ended.
        """
        over = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as logs:
                await self._follow(tell, logs if output else None, over)
                over.set()
        except BaseExceptionGroup as errors:
            # they are of the same kind: the caller handles one
            raise errors.exceptions[0] from None
        for task in self._tasks:
            await self.session.patiently(self._collect, task)
        await self.session.patiently(self._explain)
        return self.outcomes

    async def _follow(self, tell: Tell | None, logs: asyncio.TaskGroup | None, over: asyncio.Event) -> None:
        async for event in self.session.events(self.name):
            role, index = event["taskRole"], event["taskIndex"]
            task = None if role is None or index is None else (role, index)
            if task is not None and event["type"] == "task-ended":
                await self.session.patiently(self._collect, task)
            if tell is None:
                continue
            if task is not None and event["type"] == "task-started" and logs is not None:
                logs.create_task(self._tell_output(task, event["attempt"], tell, over))
            outcome = None if task is None else self.outcomes.get(task)
            tell(Change(event["type"], event["message"], task, outcome))
            if event["type"] == "submitted" and (why := await self.session.patiently(self.waiting_reason)):
                tell(Change("waiting", why))

    async def _tell_output(self, task: Task, attempt: int | None, tell: Tell, over: asyncio.Event) -> None:
        """Tell what a task writes, until it has ended."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        taker = TracebackTaker(lambda: self._traceback(task))
        async with aclosing(self._log_parts(task, attempt, over)) as parts:
            async for data in parts:
                if text := await taker.pass_on(decoder.decode(data)):
                    tell(Change("output", text, task))
        if rest := taker.rest():
            tell(Change("output", rest, task))
        if taker.taken:
            tell(Change("traceback", taker.taken, task))

    async def _log_parts(
        self, task: Task, attempt: int | None, over: asyncio.Event
    ) -> AsyncGenerator[bytes, None]:
        """Read a log to its end; a connection that breaks is made again.

        Where the user follows as much as one may, it waits for room; when the job is `over` it needs none.
        """
        position, tries = 0, 0
        while True:
            ended = over.is_set()
            if ended or not self.session.following.locked():
                try:
                    async with nullcontext() if ended else self.session.following:
                        parts = self.client.log_stream(
                            self.user, self.name, *task, attempt=attempt, offset=position, follow=not ended
                        )
                        async with aclosing(parts):
                            async for part in parts:
                                position, tries = part.next_offset, 0
                                yield part.data
                    return
                except ApiError as error:
                    if error.code != "TooManyStreamsError":
                        # the job is gone
                        return
                except UnreachableError:
                    tries += 1
                    if tries > PATIENCE / AGAIN:
                        return
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.sleep(AGAIN) if ended else over.wait(), AGAIN)

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
                async with self.session.reading:
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

    async def _upload(self, code: str, demand: CallDemand, program: bytes) -> None:
        if demand.code is not None:
            chosen = await asyncio.to_thread(plan, demand.code, CodeSettings(include=_ALL_CODE))
            for item in chosen.left_out:
                raise CallError(msg("{reason} Nothing was submitted.", reason=item.reason), self.locale)
            await upload_files(self.files, chosen.files, code)
        await self.files.write(f"{code}/{PROGRAM}", program, overwrite=True)

    async def _collect(self, task: Task) -> None:
        """Read what a task has sent back, where it has and that is not known yet."""
        if task in self.outcomes:
            return
        name = f"{task[0]}-{task[1]}"
        async with self.session.reading:
            try:
                async with self.files.read(f"{self._folder}/results/{name}") as pieces:
                    data = b"".join([piece async for piece in pieces])
            except FilesError as error:
                if error.status == 404:
                    return
                raise
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
                self.outcomes[task] = CallOutcome(error=error)

    async def _last_lines(self, role: str, index: int | None) -> str:
        if not role or index is None:
            return ""
        try:
            data = await self.client.log(self.user, self.name, role, index, offset=-_LAST_BYTES)
        except (ApiError, UnreachableError):
            return ""
        return "\n".join(data.decode(errors="replace").rstrip().splitlines()[-_LAST_LINES:])


async def run_job(
    access: Access,
    demand: CallDemand,
    name: str,
    roles: Mapping[str, int],
    program: bytes,
    tell: Tell | None,
    *,
    together: bool,
    output: bool = False,
    watching: Watching | None = None,
) -> dict[Task, CallOutcome]:
    """Submit a job of code, follow it to its end and remove its files.

    `together`: a task that fails ends the others. `output`: what the tasks write is told too. Cancelled, it
    stops the job, unless `watching` says to leave it; then it runs on, and its files stay.
    """
    async with opened(access) as session:
        job = CallJob(session)
        await job.submit(demand, name, roles, program, tell, together=together)
        if tell is not None:
            tell(Change("name", job.name))
        try:
            outcomes = await job.follow(tell, output=output)
        except asyncio.CancelledError:
            if watching is None or not watching.leave:
                await job.stop()
                await job.remove()
            raise
        finally:
            session.forget(job.name)
        await job.remove()
        return outcomes
