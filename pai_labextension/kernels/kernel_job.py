"""A kernel's job: submitted, followed to its end, and what is told of it meanwhile."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncssh

from pai_labextension.tasks.connections import TaskConnections, TaskName
from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError, SharedConnection, UnreachableGatewayError
from pai_scheduler.i18n import Message

from ..messages import msg
from .channels import PORTS, KernelChannels, RunnerError, RunnerLink, RunnerState, attach
from .job_spec import ROLE, KernelEnd, attach_command, died, ending_of, idle_ending, out_of_memory

if TYPE_CHECKING:
    from pai_scheduler.rest.models import JobStatus


# Where a kernel that is a job is on its way, as people are told.


class KernelPhase(StrEnum):
    """Lifecycle phase of a kernel."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    #: it runs on, but cannot be reached just now
    LOST = "lost"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class KernelProgress:
    """Status of a kernel for the user: `reason` why it is not running, or why it died the last time."""

    phase: KernelPhase
    reason: Message | str = ""
    place: int | None = None


# A kernel's job as the scheduler tells of it: waited for until it runs, asked after, stopped.

#: Seconds between two looks at a job of which nothing is heard, and between two tries to stop it.
_LOOK_EVERY, _AGAIN_SECONDS = 2.0, 0.5
#: Seconds for which a scheduler that is away is asked again to stop a job.
_STOP_PATIENCE = 600.0

#: Is told a sentence: what a task is at, or why nothing more is known.
HeardReason = Callable[[Message | str], None]
#: Is told that the job does not run: its sub-state, why, and its place in the queue.
HeardWaiting = Callable[[str, Message | str, int | None], None]


class JobFollower:
    """Follows one job with the person's own token; its sentences are in the language of who reads now."""

    def __init__(self, connections: TaskConnections, user: str, job: str) -> None:
        self._connections, self._user, self._job = connections, user, job
        self._client: Client | None = None
        self._locale = ""

    async def until_running(self, reason: HeardReason, waiting: HeardWaiting) -> KernelEnd | None:
        """Wait until the job runs, telling why it does not; return why it never will any more."""
        news = asyncio.Event()
        hearing = asyncio.create_task(self._hear_events(news, reason))
        try:
            while True:
                client = await self._ask()
                try:
                    detail = await client.job(self._user, self._job)
                except UnreachableError:
                    reason(msg("The scheduler does not answer; the kernel goes on when it is back."))
                except ApiError as error:
                    if error.status == 404:
                        return KernelEnd(msg("The job of this kernel was deleted."))
                    reason(error.message)
                else:
                    status = detail["jobStatus"]
                    if (ending := await ending_of(client, self._user, detail)) is not None:
                        return ending
                    if status["state"] == "RUNNING":
                        return None
                    waiting(status["subState"], status["waitingReason"], status["queuePlace"])
                news.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_EVERY):
                        await news.wait()
        finally:
            hearing.cancel()

    async def status(self) -> JobStatus:
        """Return how the job is; `ApiError`, `UnreachableError`."""
        return (await (await self._ask()).job(self._user, self._job))["jobStatus"]

    async def stop(self, after: float = 0.0) -> None:
        """Stop the job unless it ends by itself within so many seconds."""
        begun = _now()
        # it may go on when nobody follows the job any more
        async with self._connections.client() as client:
            while _now() < begun + _STOP_PATIENCE:
                try:
                    status = (await client.job(self._user, self._job))["jobStatus"]
                    if ends(status):
                        return
                    if _now() >= begun + after:
                        await client.stop(self._user, self._job)
                        return
                except UnreachableError:
                    pass
                except ApiError:
                    return
                await asyncio.sleep(_AGAIN_SECONDS)

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self) -> Client:
        if self._client is None or self._locale != self._connections.locale:
            await self.close()
            self._locale, self._client = self._connections.locale, self._connections.client()
        return self._client

    async def _hear_events(self, news: asyncio.Event, reason: HeardReason) -> None:
        last = 0
        while True:
            with suppress(UnreachableError, ApiError):
                async with self._connections.client() as client:
                    async for event in client.events(self._user, self._job, after=last):
                        last = event["id"]
                        if event["message"] and event["taskRole"] is not None:
                            reason(event["message"])
                        news.set()
                return
            await asyncio.sleep(_LOOK_EVERY)


def ends(status: JobStatus) -> bool:
    """Return whether nothing new begins in the job."""
    return status["subState"] in ("ENDING", "ENDED")


def _now() -> float:
    return asyncio.get_running_loop().time()


# The life of a kernel's job, seen from the notebook server: it waits, runs, is lost and found, ends.

#: Seconds between two tries to reach the task.
_AGAIN = 0.5
#: Seconds for which a task that runs may refuse to be entered before the kernel is given up.
_PATIENCE = 90.0
#: Seconds within which a runner that was told to end has ended; then the job is stopped.
_END_SECONDS = 15.0
#: The exit code of a kernel of which nobody can say more: as of one that was killed.
_LOST = -9

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KernelStart:
    """Process to start in the task: the command with `{connection_file}` in it, and its working directory."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    name: str


class KernelJob:
    """One kernel that is a job. `begin` follows it; `start`, `signal` and `finish` are its kernel's life."""

    def __init__(
        self,
        connections: TaskConnections,
        user: str,
        job: str,
        *,
        kernel_id: str,
        python: str,
        memory_mb: int,
    ) -> None:
        self.user, self.job = user, job
        self.progress = KernelProgress(KernelPhase.WAITING)
        #: how the kernel ended that was started last; None: it runs, or is about to
        self.code: int | None = None
        #: why there will never be another one in this job
        self.ending: KernelEnd | None = None
        #: set while there is a kernel that can be talked to
        self.reachable = asyncio.Event()
        #: how often its kernel, or another one, could be talked to anew
        self.times_reached = 0
        self.channels = KernelChannels()
        self.key = b""
        self._memory_mb = memory_mb
        self._follower = JobFollower(connections, user, job)
        self._command = attach_command(kernel_id, python)
        #: of notebooks that keep cells until there is a kernel: what they do when those are called off
        self.keepers: set[Callable[[], None]] = set()
        self._shared = SharedConnection(partial(connections.open, TaskName(user, job, ROLE, 0)))
        self._link: RunnerLink | None = None
        self._wanted: KernelStart | None = None
        self._was_started = self._idle_end = self._end_expected = self._queued = False
        self._let_go = False
        self._state: RunnerState | None = None
        self._heard_at = 0.0
        self._changed = asyncio.Event()
        #: why the last kernel died, and how often one did
        self.death: Message | None = None
        self.deaths = 0
        self._attached_once = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self._helpers: set[asyncio.Task[Any]] = set()

    # ── what others ask ───────────────────────────────────────────────────────────────────────────

    @property
    def idle_left(self) -> float | None:
        """Return the seconds after which it ends if nobody uses it; None: it is at work, or may be idle."""
        state = self._state
        if state is None or not state.limit or state.busy or self.code is not None:
            return None
        return max(0.0, state.limit - state.idle - (_now() - self._heard_at))

    @property
    def busy(self) -> bool:
        """Return whether the kernel is at work, as was heard last."""
        return self._state is not None and self._state.busy

    @property
    def idle_limit(self) -> float:
        """Return after how many seconds without use it ends; 0: never, or not known yet."""
        return self._state.limit if self._state is not None else 0.0

    async def settled(self) -> bool:
        """Wait until there is a kernel that can be talked to, or there never will be one; return which."""
        while self.ending is None and not self._let_go and not self.reachable.is_set():
            await self._changed.wait()
        return self.reachable.is_set()

    def begin(self) -> None:
        """Follow the job from now on."""
        self._life = asyncio.create_task(self._live())

    def start(self, wanted: KernelStart, key: bytes) -> None:
        """Start a kernel as soon as the task runs; the one before has ended."""
        self._wanted, self.key, self.code, self._end_expected = wanted, key, None, False
        if self._link is not None:
            self._help(self._start(self._link))

    async def attached(self) -> bool:
        """Wait until it is known whether a kernel runs in the task; return that. None runs in the queue."""
        while self.ending is None and not self._attached_once.is_set() and not self._queued:
            await self._changed.wait()
        return self.reachable.is_set()

    async def ended(self) -> int:
        """Wait for the end of the kernel; return its exit code."""
        while self.code is None:
            await self._changed.wait()
        return self.code

    async def signal(self, number: int) -> None:
        """Send the kernel a signal; where there is none yet, nothing happens."""
        if number == signal.SIGINT and not self.reachable.is_set():
            return  # one that only just starts would die of it
        if self._link is not None:
            with suppress(ConnectionError, TimeoutError, RunnerError):
                await self._link.ask("signal", number=number)

    def call_off(self) -> None:
        """Tell those who keep cells for the kernel that nobody wants them any more."""
        for called_off in tuple(self.keepers):
            called_off()

    async def keep(self) -> None:
        """Count its idleness from now."""
        if self._link is not None:
            await self._link.ask("keep")

    def expect_end(self) -> None:
        """Know that the kernel is to end, so that nobody is told that it died; one that waits is given up."""
        self._end_expected = True
        if not self.reachable.is_set() and self.code is None:
            self._wanted = None
            self._set_code(_LOST)

    async def finish(self) -> None:
        """End the job and what runs in it, and follow it no longer."""
        link, self._wanted = self._link, None
        told = False
        if link is not None:
            with suppress(ConnectionError, TimeoutError, RunnerError):
                await link.ask("end")
                told = True
        await self.leave()
        if self.ending is None:
            # outlives us: nobody waits for it
            _background(self._follower.stop(after=_END_SECONDS if told else 0.0))

    async def leave(self) -> None:
        """Follow it no longer; it runs on."""
        self._let_go = True
        self.reachable.clear()
        self._tell()
        for task in (self._life, *self._helpers):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task
        self._link = None
        await self.channels.close()
        await self._shared.close()

    # ── following ─────────────────────────────────────────────────────────────────────────────────

    async def _live(self) -> None:
        try:
            while (ending := await self._until_running()) is None:
                await self._while_attached()
                await asyncio.sleep(_AGAIN)
        except Exception:
            _log.exception("kernel job %s is followed no longer", self.job)
            ending = KernelEnd(msg("The notebook server lost this kernel; its log says why."))
        finally:
            await self._follower.close()
        self._end(ending)

    def _end(self, ending: KernelEnd) -> None:
        if self._idle_end and self._state is not None:
            ending = idle_ending(self._state.limit)
        self.ending = ending
        self.progress = KernelProgress(KernelPhase.ENDED, ending.message)
        self._attached_once.set()
        self._set_code(_LOST if self.code is None else self.code)

    async def _until_running(self) -> KernelEnd | None:
        ending = await self._follower.until_running(self._tell_reason, self._tell_waiting)
        if ending is None and self.progress.phase is not KernelPhase.LOST:
            self.progress = KernelProgress(KernelPhase.STARTING, msg("The task runs; the kernel starts."))
        return ending

    def _tell_reason(self, reason: Message | str) -> None:
        self.progress = replace(self.progress, reason=reason)

    def _tell_waiting(self, sub_state: str, reason: Message | str, place: int | None) -> None:
        if self._was_started and self.code is None:
            # the machine was lost: the job begins anew, without what the kernel knew
            self._set_code(_LOST)
        if sub_state == "STARTING":
            told = self.progress.reason if self.progress.phase is KernelPhase.STARTING else ""
            self.progress = KernelProgress(KernelPhase.STARTING, told or reason)
        else:
            self.progress = KernelProgress(KernelPhase.WAITING, reason, place)
            self._queued = True
            self._tell()

    async def _while_attached(self) -> None:
        """Talk to the runner until the way to it breaks."""
        begun = _now()
        while True:
            try:
                async with self._shared.use() as connection:
                    link = await attach(connection, self._command, self._hear)
                    self._through = partial(connection.open_connection, encoding=None)
                    self._link = link
                    try:
                        await link.run()
                    finally:
                        self._link = None
                        self._unreachable()
                return
            except (UnreachableGatewayError, UnreachableError, OSError, asyncssh.Error, ApiError) as error:
                _log.debug("kernel job %s cannot be reached: %s", self.job, error)
                return
            except (RemoteError, RunnerError) as error:
                _log.info("kernel job %s cannot be entered: %s", self.job, error)
                if self._attached_once.is_set() or _now() - begun < _PATIENCE:
                    if (await self._follower.status())["state"] != "RUNNING":
                        return
                    self._tell_reason(getattr(error, "message", str(error)))
                    await asyncio.sleep(_AGAIN)
                    continue
                await self._follower.stop()
                return

    def _unreachable(self) -> None:
        self.reachable.clear()
        self.channels.shut()
        if self.progress.phase is KernelPhase.RUNNING:
            reason = msg("The connection to the kernel broke. It runs on, and is connected again.")
            self.progress = KernelProgress(KernelPhase.LOST, reason)

    # ── the runner ────────────────────────────────────────────────────────────────────────────────

    def _hear(self, event: str, state: RunnerState) -> None:
        self._state, self._heard_at = state, _now()
        if event == "idle":
            self._idle_end = True
        if event == "hello":
            self._greet(state)
        elif event == "exited" and state.code is not None:
            self._note_exit(state)

    def _greet(self, state: RunnerState) -> None:
        if not state.connection:
            if self._was_started and self.code is None and self._wanted is None:
                self._set_code(_LOST)  # another task than the one in which it ran
        elif state.code is not None:
            if self._wanted is None:
                self._note_exit(state)
        else:
            self._wanted = None
            self.code = None
            self._connect(state.connection)
        if self._wanted is not None and self._link is not None:
            self._help(self._start(self._link))
        self._attached_once.set()
        self._tell()

    async def _start(self, link: RunnerLink) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            return
        try:
            answer = await link.ask(
                "start",
                argv=list(wanted.argv),
                env=dict(wanted.env),
                cwd=wanted.cwd,
                name=wanted.name,
                key=self.key.decode("ascii"),
            )
        except RunnerError as error:
            reason = msg("The kernel cannot be started: {reason}", reason=str(error))
            self.progress = KernelProgress(KernelPhase.STARTING, reason)
            self._set_code(127)
        except (ConnectionError, TimeoutError):
            self._wanted = wanted  # tried again when the task is reached again
        else:
            self._connect(answer["connection"])

    def _connect(self, connection: Mapping[str, Any]) -> None:
        self._was_started = True
        self.key = str(connection["key"]).encode("ascii")
        self.channels.open({name: int(connection[name]) for name in PORTS}, self._through)
        self.progress = KernelProgress(KernelPhase.RUNNING)
        self.times_reached += 1
        self.reachable.set()
        self._tell()

    def _note_exit(self, state: RunnerState) -> None:
        self.reachable.clear()
        self.channels.shut()
        if self._idle_end:
            return  # its whole job ends, which says why: nothing is started again
        code = state.code or 0
        self.progress = KernelProgress(KernelPhase.STARTING, msg("The task runs; the kernel starts."))
        if self._end_expected:
            self._set_code(code)
        else:
            self._help(self._note_death(code, oom=state.oom))

    async def _note_death(self, code: int, *, oom: bool) -> None:
        """Tell that the kernel died, unless that is because its whole job ends: then that is told."""
        with suppress(UnreachableError, ApiError):
            if ends(await self._follower.status()):
                return
        self.death = out_of_memory(self._memory_mb) if oom else died(code)
        self.deaths += 1
        self._set_code(code)

    def _set_code(self, code: int) -> None:
        self.code = code
        self._tell()

    def _tell(self) -> None:
        """Wake those who wait for something to change."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _help(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._helpers.add(task)
        task.add_done_callback(self._helpers.discard)


_running: set[asyncio.Task[None]] = set()


def _background(work: Any) -> None:
    task = asyncio.create_task(work)
    _running.add(task)
    task.add_done_callback(_running.discard)
