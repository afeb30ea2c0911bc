"""The life of one task's container, from the pull of its image to its end, and the verdict on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiodocker

from pai_scheduler.core.events import EndCause, Ended, HeldAfterFailure, Notice, Progress, Started
from pai_scheduler.engine.disk_usage import filled_the_disk, is_beyond, size_of
from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.protocol import Launch, log_lost, log_shortened, process_killed
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef

from .containers import ContainerNotCreatedError, has_run
from .context import EngineContext, KillMark
from .debug_hold import HoldReport
from .images import ImageError
from .logs import LogFollower
from .network import own_network
from .runtime import has_its_own
from .usage import ContainerProcess
from .volumes import storage_gb

# Judges how a task's container ended, from what was seen of it; no I/O.

#: What Docker records where it was not there to see how a container ended.
UNSEEN_EXIT = 255
_KILLED_EXIT = 137


@dataclass(frozen=True, slots=True)
class Observations:
    """Observations of a task until its container ended; times are ms since the epoch.

    `exit_code`: as Docker's events told it. `signalled`: the container ran when it was sent a signal.
    `no_room`: it is ended because a disk of its machine is full, not because of its own limit.
    """

    exit_code: int | None = None
    oom: bool = False
    signalled: bool = False
    killed_at: int | None = None
    disk_full_at: int | None = None
    no_room: bool = False
    held: HoldReport | None = None


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """Outcome of a task; `process_killed`: one of its processes was killed for memory, and it went on."""

    cause: EndCause
    exit_code: int | None
    time: int
    reason: Message | None = None
    process_killed: bool = False


def judge(seen: Observations, container: Mapping[str, Any] | None, now: int) -> ContainerEnd:
    """Return how a container ended that is described so (None: it is gone), noticed at `now` (ms)."""
    code, when, oom = seen.exit_code, now, seen.oom
    if container is not None:
        state = container["State"]
        code, oom = int(state["ExitCode"]), oom or bool(state["OOMKilled"])
        # Docker notes a start a moment after it, so a short task may seem to end before
        when = max(read_time(state["FinishedAt"]), read_time(state["StartedAt"]))
    if seen.signalled:  # whatever the clock was set to meanwhile
        when = max(when, seen.killed_at or 0, seen.disk_full_at or 0)
    process_killed = oom and not (code and seen.killed_at is None and seen.disk_full_at is None)
    if seen.held is not None:  # what ended later was the hold
        code, oom = seen.held.exit_code, seen.held.cause is EndCause.OOM
    killed_at = seen.killed_at if seen.killed_at is not None and seen.killed_at <= when else None
    reason: Message | None = None
    if seen.disk_full_at is not None and seen.disk_full_at <= min(when, killed_at or when):
        cause, code, reason = EndCause.DISK, _KILLED_EXIT, _disk_reason(seen, container)
    elif killed_at is not None:
        cause = EndCause.KILLED
    elif code is None:
        cause, reason = EndCause.LOST, msg("The container was removed by somebody else while it ran.")
    elif code and oom:
        cause = EndCause.OOM
    elif code == UNSEEN_EXIT and seen.exit_code is None and seen.held is None:
        cause, code = EndCause.LOST, None
        reason = msg("The machine or its Docker Engine went down while the task ran.")
    else:
        cause = EndCause.EXITED
    return ContainerEnd(cause, code, when, reason, process_killed)


def _disk_reason(seen: Observations, container: Mapping[str, Any] | None) -> Message | None:
    if seen.no_room:
        return filled_the_disk()
    limit = storage_gb(container) if container is not None else None
    if limit is None:
        return None
    return msg(
        "The task wrote more than its {storage} GB to its disk, and was ended. Ask for more with "
        "storageGB, or write less.",
        storage=limit,
    )


def read_time(text: str) -> int:
    """Return one of Docker's times (RFC 3339) as ms since the epoch."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


# The life of one task's container, from the pull of its image to its end.

_KILL_AGAIN_SECONDS = 10.0
#: How Docker's init ends, and what it says, where there is no shell to start.
_NOT_FOUND, _INIT_FAILED = 127, b"[FATAL tini"
_WITNESS_SECONDS = 2.0
#: How long after a process was killed for memory it is clear that the task goes on.
_OOM_SECONDS = 1.0

T = TypeVar("T")

_log = logging.getLogger(__name__)


class DockerTask:
    """One task. Its events come in order: `Progress`…, `Started`, `HeldAfterFailure` where it is, `Ended`
    (the last two at most once)."""

    def __init__(self, ref: TaskRef, around: EngineContext) -> None:
        self.ref, self._around, self._api = ref, around, around.api
        self._launch: Launch | None = None
        self._lifecycle: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._log_folder = around.data_dir / "logs" / ref.name
        self._container = ""
        #: what was heard of containers before it was known which one is ours
        self._heard_early: list[tuple[str, Callable[[], None]]] = []
        self._seen_exit: int | None = None
        self._died = self._started = self._ended = False
        self._oom_heard, self._said_killed = asyncio.Event(), False
        self._memory_mb = 0
        self._held: HoldReport | None = None
        self._killed_at = around.fated_at(KillMark.KILLED, ref)
        self._disk_full_at = around.fated_at(KillMark.DISK, ref)
        self._no_room = around.fated_at(KillMark.NO_ROOM, ref) is not None
        #: what its disk takes, where it was measured
        self.disk_bytes: int | None = None
        #: NVIDIA's names of the GPUs that it has
        self.gpu_uuids: tuple[str, ...] = ()
        #: where its use can be read without Docker
        self.process: ContainerProcess | None = None
        #: it ran when it was signalled
        self._signalled = around.fated_at(KillMark.TERMINATED, ref) is not None
        #: Loop time of the next SIGKILL.
        self._kill_by: float | None = None

    def launch(self, launch: Launch) -> None:
        """Start it, unless it runs or has run."""
        self._launch = launch
        self._begin()

    def take_up(self) -> None:
        """Go on with what is there already."""
        self._begin()

    def kill(self, grace_seconds: float) -> None:
        """End it: SIGTERM, and SIGKILL after the grace; a second call may only shorten the grace."""
        if self._ended:
            return
        self._killed_at = self._around.remember(KillMark.KILLED, self.ref)
        by = asyncio.get_running_loop().time() + grace_seconds
        self._kill_by = by if self._kill_by is None else min(by, self._kill_by)
        self._changed.set()
        self._begin()

    def end_for_room(self) -> None:
        """End it at once because a disk of its machine is full."""
        if self._started and not self._ended:
            self._around.remember(KillMark.NO_ROOM, self.ref)
            self._no_room = True
            self._end_for_disk()

    @property
    def runs(self) -> bool:
        """Return whether its container runs, as far as is known."""
        return self._started and not self._ended

    def disk_use(self, docker_folder: Path | None, *, counts_container: bool) -> int:
        """Return the bytes of its log, of its container's files, and of what is in Docker's own folder."""
        size = size_of(self._log_folder)
        if counts_container:
            size += self.disk_bytes or 0
        if docker_folder is not None:
            size += size_of(docker_folder / "containers" / self._container)
        return size

    def container_died(self, container: str, exit_code: int | None = None) -> None:
        """Hear that a container of this name ended (with an exit code, where Docker saw it) or is gone."""
        self._hear(container, partial(self._note_death, exit_code))

    def ran_out_of_memory(self, container: str) -> None:
        """Hear that the kernel ended one of the processes for its memory limit."""
        self._hear(container, self._note_oom)

    def list_running(self, running: Collection[str]) -> None:
        """Hear which containers run, after events may have been missed."""
        if self._started and self._container not in running:
            self.container_died(self._container)

    def forget(self) -> None:
        """Drop what was kept for the case that it is launched after all."""
        self._around.forget(self.ref)

    async def let_go(self) -> None:
        """Stop following it; the container is left as it is."""
        if self._lifecycle is not None:
            self._lifecycle.cancel()
            await asyncio.gather(self._lifecycle, return_exceptions=True)

    def _hear(self, container: str, note: Callable[[], None]) -> None:
        """Note what happened to our container; where we only ask for it yet, once we know it.

        The answer to that question may be older than what is heard while it is on its way.
        """
        if not self._container:
            self._heard_early.append((container, note))
        elif container == self._container:
            note()

    def _know(self, container: str) -> None:
        """Know which container is ours, and what was heard of it before."""
        self._container = container
        early, self._heard_early = self._heard_early, []
        for other, note in early:
            if other == container:
                note()

    def _note_death(self, exit_code: int | None) -> None:
        self._died = True
        self._seen_exit = exit_code if exit_code is not None else self._seen_exit
        self._changed.set()

    def _note_oom(self) -> None:
        self._oom_heard.set()

    def _begin(self) -> None:
        if self._lifecycle is None:
            self._lifecycle = asyncio.create_task(self._tell(), name=self.ref.name)

    async def _tell(self) -> None:
        try:
            state = await self._find() if self._launch is None else None
            if state is None and self._launch is None and self._killed_at is None:
                self._lifecycle = None  # nothing is there: it may be launched yet
                return
            await self._attend(state or await self._make())
        except ContainerNotCreatedError as over:
            self._end(over.cause, None, over.reason)
        except Exception as error:
            _log.exception("task %s", self.ref.name)
            cause = EndCause.LOST if self._started else EndCause.LAUNCH_FAILED
            self._end(cause, None, msg("Docker answered what was not expected: {error}", error=str(error)))

    async def _find(self) -> dict[str, Any] | None:
        """Look for a container that was made before; one that never ran is removed."""
        found = await self._api.inspect(self.ref.name)
        if found is None or has_run(found):
            return found
        await self._api.remove(self.ref.name)
        return None

    async def _make(self) -> dict[str, Any]:
        """Get the image, make the container and start it; return its description."""
        launch = self._launch
        if launch is None:
            raise ContainerNotCreatedError(EndCause.KILLED)
        try:
            image = await self._unless_killed(
                self._around.images.ensure(launch.image, self._progress, launch.login)
            )
        except ImageError as error:
            raise ContainerNotCreatedError(error.cause, error.reason) from error
        hold = self._around.holds.make(self.ref) if launch.hold_on_failure else None
        private = await asyncio.to_thread(self._around.keep_private, launch)
        if private is None and launch.mounts:
            elsewhere = msg("Docker runs on another machine, where the storage's folders cannot be mounted.")
            raise ContainerNotCreatedError(EndCause.REFUSED, elsewhere)
        found = await self._around.maker.make(launch, hold, private, await self._runtime(launch, image))
        if has_run(found):
            return found
        await self._unless_killed(self._around.maker.fill(launch, image, private))
        if self._killed_at is not None:
            raise ContainerNotCreatedError(EndCause.KILLED)
        self._know(str(found["Id"]))
        return await self._around.maker.start(self.ref.name)

    async def _runtime(self, launch: Launch, image: dict[str, Any]) -> str | None:
        """Name the volume of the runtime that the task is to have; None where it is to have none."""
        if launch.ssh_port is None or has_its_own(image):
            return None
        return await self._around.runtime.volume()

    async def _attend(self, found: dict[str, Any]) -> None:
        """Follow a container that was started, to its end."""
        self._started = True
        container = str(found["Id"])
        self._know(container)
        self._around.emit(
            Started(self.ref, read_time(found["State"]["StartedAt"]), self._address(found), container)
        )
        if not found["State"]["Running"]:
            self.container_died(container)
        log = LogFollower(
            self._api,
            container,
            self._log_folder,
            self._around.log_bytes,
            self._log_noticed,
            on_output=partial(self._around.on_output, self.ref),
            files=self._around.docker_files,
        )
        following = asyncio.create_task(log.follow())
        self.gpu_uuids = gpus_of(found)
        if self._around.is_local:
            self.process = ContainerProcess(container, int(found["State"].get("Pid") or 0))
        self._memory_mb = int(found["HostConfig"]["Memory"]) // 2**20
        if found["State"]["OOMKilled"]:  # while nobody listened
            self._note_oom()
        watching = [
            asyncio.create_task(self._hold(read_time(found["State"]["StartedAt"]))),
            asyncio.create_task(self._watch_disk(found)),
            asyncio.create_task(self._watch_memory()),
        ]
        try:
            ended = await self._death(container)
            following.cancel()
            await asyncio.wait({following})
            # Docker closes a container's log before it says that the container has ended
            await log.drain()
        finally:
            following.cancel()
            for watch in watching:
                watch.cancel()
            for result in await asyncio.gather(following, *watching, return_exceptions=True):
                if isinstance(result, Exception):
                    _log.error("task %s is not watched as it should be", self.ref.name, exc_info=result)
            log.close()
        if ended is not None and ended["State"]["ExitCode"] == UNSEEN_EXIT:
            await self._wait_for_witness()
        self._judge(ended)

    async def _hold(self, started: int) -> None:
        """Hear that the command of a task that is to be held has failed."""
        if not self._around.holds.may_hold(self.ref):
            return
        report = await self._around.holds.heard(self.ref)
        self._held = HoldReport(max(report.time, started), report.cause, report.exit_code)
        if self._killed_at is None or self._held.time < self._killed_at:
            self._around.emit(
                HeldAfterFailure(self.ref, self._held.time, self._held.cause, self._held.exit_code)
            )
        else:  # it was to end, and did: there is nothing to wait for
            self._kill_by = asyncio.get_running_loop().time()
            self._changed.set()

    async def _watch_disk(self, found: dict[str, Any]) -> None:
        """Measure the container's disk, and end it when that is larger than it may be."""
        limit = storage_gb(found)
        async for size in self._around.disks.follow(found):
            self.disk_bytes = size
            if limit is not None and (self._disk_full_at is not None or is_beyond(size, limit)):
                self._end_for_disk()

    def _end_for_disk(self) -> None:
        self._disk_full_at = self._around.remember(KillMark.DISK, self.ref)
        self._kill_by = asyncio.get_running_loop().time()
        self._changed.set()

    async def _death(self, container: str) -> dict[str, Any] | None:
        """Wait until the container has ended, and see to it where it is to; describe it (None: gone)."""
        while True:
            await self._hear_of_death(container)
            found = await self._api.inspect(container)
            if found is None or not found["State"]["Running"]:
                return found
            self._died, self._seen_exit = False, None  # what was heard was old: it was started meanwhile

    async def _wait_for_witness(self) -> None:
        """Wait a moment for the event of the end: this exit code may be the command's own."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WITNESS_SECONDS):
                while self._seen_exit is None:
                    self._changed.clear()
                    await self._changed.wait()

    async def _hear_of_death(self, container: str) -> None:
        clock = asyncio.get_running_loop().time
        terminated = self._signalled
        while not self._died:
            self._changed.clear()
            if self._kill_by is not None and clock() >= self._kill_by:
                self._kill_by = clock() + _KILL_AGAIN_SECONDS
                await self._signal(container, "SIGKILL")
            elif self._kill_by is not None and not terminated:
                terminated = True
                await self._signal(container, "SIGTERM")
            pause = None if self._kill_by is None else max(0.0, self._kill_by - clock())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()

    async def _signal(self, container: str, signal: str) -> None:
        try:
            await self._api.persist(
                lambda: self._api.docker.containers.container(container).kill(signal=signal)
            )
            self._signalled = True
            if signal == "SIGTERM":
                self._around.remember(KillMark.TERMINATED, self.ref)
        except aiodocker.DockerError as error:
            if error.status not in (404, 409):  # it is gone, or does not run
                raise
            self.container_died(container)

    def _judge(self, found: dict[str, Any] | None) -> None:
        """Report how the container ended."""
        verdict = judge(
            Observations(
                exit_code=self._seen_exit,
                oom=self._oom_heard.is_set(),
                signalled=self._signalled,
                killed_at=self._killed_at,
                disk_full_at=self._disk_full_at,
                no_room=self._no_room,
                held=self._held,
            ),
            found,
            _now(),
        )
        if verdict.process_killed:
            self._say_killed(verdict.time)
        reason = verdict.reason
        if verdict.cause is EndCause.EXITED and verdict.exit_code == _NOT_FOUND:
            reason = self._no_shell()
        self._end(verdict.cause, verdict.exit_code, reason, verdict.time)

    def _no_shell(self) -> Message | None:
        if TaskLog(self._log_folder).read("stderr", 0, len(_INIT_FAILED)) != _INIT_FAILED:
            return None  # the shell is there, and said itself what it did not find
        return msg("The image has no /bin/sh, which is needed to run a job's command.")

    def _end(
        self, cause: EndCause, code: int | None, reason: Message | None, when: int | None = None
    ) -> None:
        self._ended = True
        self._around.emit(Ended(self.ref, when or _now(), cause, code, reason))

    def _progress(self, message: Message, percent: int | None) -> None:
        self._around.emit(Progress(self.ref, _now(), message, percent))

    def _log_noticed(self, notice: Notice) -> None:
        lost = notice is Notice.LOG_LOST
        now = _now()
        self._around.emit(
            log_lost(self.ref, now) if lost else log_shortened(self.ref, now, self._around.log_bytes)
        )

    async def _watch_memory(self) -> None:
        """Report that a process was killed for memory, where that was not the task's end."""
        await self._oom_heard.wait()
        await asyncio.sleep(_OOM_SECONDS)
        self._say_killed(_now())

    def _say_killed(self, when: int) -> None:
        if not self._said_killed:
            self._said_killed = True
            self._around.emit(process_killed(self.ref, when, self._memory_mb))

    def _address(self, found: dict[str, Any]) -> str:
        network = own_network(found)
        return str(network.get("IPAddress") or (network.get("IPAMConfig") or {}).get("IPv4Address") or "")

    async def _unless_killed(self, work: Coroutine[Any, Any, T]) -> T:
        """Await what may take long; ContainerNotCreatedError as soon as the task is to end."""
        doing = asyncio.create_task(work)
        killed = asyncio.create_task(self._until_killed())
        try:
            await asyncio.wait({doing, killed}, return_when=asyncio.FIRST_COMPLETED)
            if self._killed_at is not None:
                raise ContainerNotCreatedError(EndCause.KILLED)
            return await doing
        finally:
            doing.cancel()
            killed.cancel()
            await asyncio.gather(doing, killed, return_exceptions=True)

    async def _until_killed(self) -> None:
        while self._killed_at is None:
            self._changed.clear()
            await self._changed.wait()


def gpus_of(found: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the GPUs that a container was given."""
    requests = found["HostConfig"].get("DeviceRequests") or ()
    return tuple(name for request in requests for name in request.get("DeviceIDs") or ())


def _now() -> int:
    return time.time_ns() // 10**6
