"""The embedded engine: tasks are processes of this machine, each with a supervisor that outlives the service.

Nothing to install, for one person on their own machine. A task's folder is the truth about it: the engine
looks there whenever the supervisor rings, and every few seconds in case it could not.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.cluster.node import DiskSpace, Node
from pai_scheduler.engine.cgroups import Cgroups
from pai_scheduler.engine.disk_usage import DiskMeter, is_beyond, size_of
from pai_scheduler.engine.hardware import GpuMeter, disk_space, free_disk_gb, taken_ports, this_machine
from pai_scheduler.engine.logs.cleanup import keep_clean
from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.logs.segment import is_shortened
from pai_scheduler.engine.protocol import (
    EndCause,
    Ended,
    EngineError,
    EngineEvent,
    Gang,
    HeldAfterFailure,
    Launch,
    NoSshEndpointError,
    SshEndpoint,
    Started,
    Usage,
    log_shortened,
    process_killed,
)
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.own_packages import OwnPackages

from . import folder_operations
from .environment import inherited, visible_gpus
from .folder_operations import TaskObservation, cause_and_reason
from .spawner import Spawner
from .ssh import SshFiles, no_ssh_files, open_way
from .task_folder import COOKIE, LaunchSpec, SpareFolders, TaskFolder, TaskPhase, TaskRecord
from .usage import TaskUsage

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

ADDRESS = "127.0.0.1"

#: Seconds that a task nobody expects has for its end.
_UNEXPECTED_GRACE = 5.0
#: Seconds after its start at which a task's folder and log are first looked at.
_FIRST_LOOK = 0.5
#: Seconds that a task has for its end to be told together with its start, in one look and one commit.
_TOGETHER = 0.01
#: Threads for the work on disk, which is short.
_THREADS = 4
#: Folders of tasks that are made ahead, and seconds without a start after which others follow.
_SPARE_FOLDERS, _SPARE_PAUSE = 8, 0.05
#: As many ports are looked at within 0.2 ms.
_FEW_PORTS = 8
#: The rescan takes at most this part of a processor.
_RESCAN_SHARE = 0.02


@dataclass(slots=True, eq=False)
class _Task:
    ref: TaskRef
    folder: TaskFolder
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: held while its SSH server is asked for
    ssh_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    launch: Launch | None = None
    #: seconds that it has for its end, once that was asked for
    kill_grace: float | None = None
    #: the fork server that was asked to supervise it
    generation: int = 0
    rung: bool = False
    #: set while it is waited whether it has ended already, when it has only rung once
    first_ring: asyncio.TimerHandle | None = None
    started: bool = False
    held: bool = False
    ended: bool = False
    said_killed: bool = False
    said_shortened: bool = False
    #: nobody expects it: it is ended, and its end is told to nobody
    unexpected: bool = False
    record: TaskRecord = field(default_factory=lambda: TaskRecord())
    usage: TaskUsage | None = None
    watch: asyncio.Task[None] | None = None

    @property
    def under_way(self) -> bool:
        """Return whether something may still happen to it by itself."""
        wanted = self.launch is not None or self.kill_grace is not None
        return not self.ended and (self.started or wanted or self.unexpected)


class ProcessEngine:
    """Runs tasks below `data_dir`. `logs`: how much is kept of what they print.

    `storage_host`: as in the protocol, an address of loopback at which this service listens too.
    `pids_limit`: most processes and threads of one task. `ssh_files` makes the files that the SSH server of a
    task reads, by name; it is asked when that server starts, as most tasks are never logged into.
    """

    name = "process"
    shares_host_ports = True
    one_machine = True
    own_ssh_server = True
    #: tasks reach what browsers reach
    front_door_url: str | None = None
    bridge_address: str | None = None

    def __init__(
        self,
        data_dir: Path,
        node_name: str | None = None,
        *,
        logs: LogKeeping | None = None,
        storage_host: str | None = None,
        ssh_files: SshFiles = no_ssh_files,
        pids_limit: int = 4096,
        rescan_seconds: float = 2.0,
    ) -> None:
        self._data_dir = data_dir.absolute()
        self.storage_host, self._ssh_files = storage_host, ssh_files
        #: of tasks that are not released, and of those that are
        self._folders, self._ended_folders = self._data_dir / "tasks", self._data_dir / "ended"
        self._spare_folders = SpareFolders(self._data_dir / "spare", _SPARE_FOLDERS)
        self._spare_timer: asyncio.TimerHandle | None = None
        self._packages = OwnPackages.below(self._data_dir / "packages")
        self._doorbell = self._data_dir / "doorbell"
        self._log_keeping = logs or LogKeeping()
        self._log_bytes = self._log_keeping.max_bytes_per_task
        self._node_name, self._pids_limit, self._rescan_seconds = node_name, pids_limit, rescan_seconds
        self._tasks: dict[TaskRef, _Task] = {}
        self._ports: dict[TaskRef, tuple[int, ...]] = {}
        self._events: asyncio.Queue[EngineEvent | None] = asyncio.Queue()
        self._background: set[asyncio.Task[None]] = set()
        self._spawner = Spawner(self._folders, self._doorbell, self._on_fork_server_death)
        self._cgroups = Cgroups(None, (), {}, "")
        self._shell = shutil.which("bash") or shutil.which("sh") or "/bin/sh"
        self._storage_gb = 0
        self._real_gpus = False
        self._threads = ThreadPoolExecutor(_THREADS, "process-engine")
        self._disk_meter, self._gpu_meter = DiskMeter(), GpuMeter()
        self._bell = -1
        self._bell_rest = b""
        self._closed = False

    @property
    def limits(self) -> Message | None:
        """Return which limits tasks run without, and why; None where all are kept."""
        return self._cgroups.unlimited

    async def start(self) -> None:
        """Begin to listen to supervisors; EngineError where the data folder cannot be used."""
        try:
            await self._in_thread(self._open)
        except OSError as error:
            raise EngineError(
                msg(
                    "The folder for tasks cannot be used ({file}): {problem}",
                    file=error.filename or str(self._data_dir),
                    problem=error.strerror or str(error),
                )
            ) from error
        if self.limits:
            _log.warning("%s", self.limits)
        await self._spawner.start()
        asyncio.get_running_loop().add_reader(self._bell, self._on_bell)
        self._spawn(self._rescan())
        self._make_spare_folders()
        self._spawn(keep_clean(self._ended_folders, self._log_keeping.keep_days, lambda _: False))

    async def close(self) -> None:
        """Stop watching; tasks and their supervisors run on. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._bell >= 0:
            asyncio.get_running_loop().remove_reader(self._bell)
            os.close(self._bell)
            self._bell = -1
        for timer in (self._spare_timer, *(task.first_ring for task in self._tasks.values())):
            if timer is not None:
                timer.cancel()
        for work in tuple(self._background):
            work.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._spawner.close()
        await self._in_thread(self._cgroups.remove)
        await self._in_thread(self._gpu_meter.close)
        self._disk_meter.close()
        self._threads.shutdown(wait=False)
        self._events.put_nowait(None)

    async def nodes(self) -> Sequence[Node]:
        """Return this machine. Its storage is what was free when the engine started."""
        node = await self._in_thread(this_machine, self._node_name, self._storage_gb)
        self._real_gpus = bool(node.gpus)
        return [node]

    def disk(self, node: str) -> DiskSpace | None:  # noqa: ARG002
        """Return the room on the disk of the tasks' folders, as it is now."""
        return disk_space([self._data_dir])

    async def refuses_image(self, image: str) -> Message | None:  # noqa: ARG002
        """Refuse none: an image is a name here, and nothing is pulled."""
        return None

    async def adopt(self, expected: Collection[TaskRef]) -> None:
        """Take up every expected task as its folder tells; end every other that still runs."""
        for ref in expected:
            self._task(ref)
        await asyncio.gather(*(self._follow(self._task(ref)) for ref in expected))
        wanted = {ref.name for ref in expected}
        for ref in await self._in_thread(self._unfinished, wanted):
            task = self._task(ref)
            if not task.ended and task.launch is None:
                task.unexpected = True
                await self.kill(ref, _UNEXPECTED_GRACE)
        keep = {task.ref.name for task in self._tasks.values()}
        await self._in_thread(self._clean_groups, keep)

    async def prepare(self, gang: Gang) -> Mapping[TaskRef, str]:
        """Remember the gang's ports; all are on this machine."""
        for member in gang.members:
            self._ports[member.task] = tuple(port for ports in member.ports.values() for port in ports)
        return {member.task: ADDRESS for member in gang.members}

    async def taken_ports(self, gang: Gang, ports: Collection[int]) -> Collection[int]:
        """Look at each, unless a task of the gang has a folder: it may have run already."""

        def look() -> Collection[int]:
            names = [member.task.name for member in gang.members]
            folders = (above / name for name in names for above in (self._folders, self._ended_folders))
            return () if any(_exists(folder) for folder in folders) else list(taken_ports(ports))

        # (to have a thread do it takes longer than a few)
        return look() if len(ports) <= _FEW_PORTS else await self._in_thread(look)

    async def launch(self, launch: Launch) -> None:
        """Start a task, unless it runs, has run, or was killed before."""
        task = self._task(launch.task)
        if task.launch is None:
            task.launch = launch
        await self._follow(task)

    async def kill(self, task: TaskRef, grace_seconds: float) -> None:
        """End a task and all its processes; one that was never launched never will be."""
        known = self._task(task)
        async with known.lock:
            if not known.ended:
                known.launch, known.kill_grace = None, grace_seconds
                self._report(
                    known, await self._in_thread(folder_operations.kill, known.folder, grace_seconds)
                )

    async def disk_use(self) -> Mapping[TaskRef, int]:
        """Return the bytes of each running task's working folder, as last measured, and of its log."""
        running = [task for task in self._tasks.values() if task.started and not task.ended]
        logs = await self._in_thread(lambda: [size_of(task.folder.log) for task in running])
        return {
            task.ref: log + ((task.usage.disk_bytes if task.usage is not None else None) or 0)
            for task, log in zip(running, logs, strict=True)
        }

    async def end_for_room(self, task: TaskRef) -> None:
        """End a running task because the disk is full."""
        if (known := self._tasks.get(task)) is not None and known.started and not known.ended:
            await self._in_thread(folder_operations.end_for_disk, known.folder, disk_is_full=True)

    async def release(self, gang: Gang) -> None:
        """Remove the working folders and cgroups of an ended gang; logs stay."""
        for member in gang.members:
            await self._release(member.task)

    async def events(self) -> AsyncIterator[EngineEvent]:
        """Return events as they come, until the engine is closed."""
        while (event := await self._events.get()) is not None:
            yield event

    def work_dir(self, task: TaskRef) -> str:
        """Return a task's working folder."""
        return str(TaskFolder(self._folders / task.name).work)

    def private_dir(self, task: TaskRef) -> str:
        """Return the folder of a task's own files."""
        return str(TaskFolder(self._folders / task.name).private)

    def code_dir(self, code: Path) -> str:
        """Return the folder itself: tasks see what this machine has."""
        return str(code)

    def log(self, task: TaskRef) -> TaskLog:
        """Return a task's log."""
        return TaskLog(*(folders / task.name / "log" for folders in (self._folders, self._ended_folders)))

    async def forget(self, task: TaskRef) -> None:
        """Remove an ended task's folder."""
        for folders in (self._folders, self._ended_folders):
            await self._in_thread(shutil.rmtree, folders / task.name, ignore_errors=True)

    async def reach(self, task: TaskRef, port: int) -> tuple[str, int] | None:  # noqa: ARG002
        """Return None: this machine reaches the task's own address."""
        return None

    async def ssh_endpoint(self, task: TaskRef) -> SshEndpoint:
        """Return where a running task's SSH server listens, started if need be; or NoSshEndpointError."""
        known = self._tasks.get(task)
        if known is None or not known.started or known.ended:
            raise NoSshEndpointError(msg("The task does not run."))
        async with known.ssh_lock:
            if known.ended:  # meanwhile: its folder is left alone from then on
                raise NoSshEndpointError(msg("The task does not run."))
            files = partial(self._ssh_files, task)
            return await open_way(known.folder, ADDRESS, files, self._in_thread)

    async def usage(self, task: TaskRef) -> Usage | None:
        """Measure a running task: processor time since the last measurement, memory without mere cache."""
        known = self._tasks.get(task)
        if known is None or not known.started or known.ended:
            return None
        return await self._in_thread((await self._measured(known)).measure, known.record)

    # how tasks go on

    def _task(self, ref: TaskRef) -> _Task:
        if ref not in self._tasks:
            released = self._ended_folders / ref.name
            folder = released if _exists(released) else self._folders / ref.name
            self._tasks[ref] = _Task(ref, TaskFolder(folder))
        return self._tasks[ref]

    async def _release(self, ref: TaskRef) -> None:
        folder = TaskFolder(self._folders / ref.name)
        known = self._tasks.get(ref)
        # keys that are just being written for its SSH server would stay
        async with known.ssh_lock if known is not None else contextlib.nullcontext():
            released = await self._in_thread(folder_operations.release, folder, self._ended_folders)
        if released:
            self._tasks.pop(ref, None)
            self._ports.pop(ref, None)
        else:
            _log.warning("%s still runs and is not released", ref.name)

    async def _measured(self, task: _Task) -> TaskUsage:
        """Return what measures a running task."""
        if task.usage is None:
            made = await self._in_thread(TaskUsage, task.folder, self._gpu_meter)
            task.usage = task.usage or made
        return task.usage

    async def _watch(self, task: _Task) -> None:
        """Look after a running task until its end.

        Its folder is measured, and it is ended when that is larger than it may be. That a process was killed
        for memory is said when the task goes on until the next look, that its log is not kept whole at once.
        Most tasks that are short end before anything is looked at.
        """
        await asyncio.sleep(_FIRST_LOOK)
        usage = await self._measured(task)
        killed = False
        async for size in self._disk_meter.follow(task.folder.work):
            if killed:
                self._say_killed(task, time.time_ns() // 1_000_000, usage.memory_mb)
            killed = not task.said_killed and await self._in_thread(usage.oom_kills) > 0
            if not task.said_shortened and await self._in_thread(is_shortened, task.folder.log):
                self._say_shortened(task, time.time_ns() // 1_000_000)
            usage.disk_bytes = size
            if usage.storage_gb is not None and is_beyond(size, usage.storage_gb):
                await self._in_thread(folder_operations.end_for_disk, task.folder)

    async def _follow(self, task: _Task) -> None:
        """Look how a task is and report what is new; start it where that is still to be done."""
        async with task.lock:
            task.rung = False
            if task.ended:
                return
            if task.launch is None or task.started:
                sight = await self._in_thread(folder_operations.look, task.folder)
                if task.kill_grace is not None and not sight.running and sight.phase <= TaskPhase.PREPARED:
                    # the supervisor that was asked for the end is gone before it had begun
                    sight = await self._in_thread(folder_operations.kill, task.folder, task.kill_grace)
                self._report(task, sight)
                return
            asked = task.generation == self._spawner.generation
            if asked:
                sight = await self._in_thread(folder_operations.look, task.folder)
            else:
                sight = await self._in_thread(self._prepare, task.folder, task.launch)
            self._report(task, sight)
            if asked or sight.running or sight.phase is not TaskPhase.PREPARED:
                return
            self._make_spare_folders()
            try:
                task.generation = await self._spawner.request(task.ref.name)
            except EngineError as error:
                detail = str(error.message)
                self._report(task, await self._in_thread(folder_operations.refuse, task.folder, detail))

    def _report(self, task: _Task, sight: TaskObservation) -> None:
        record = task.record = sight.record
        if "pid" in record and not task.started:
            task.started = True
            if not task.unexpected:
                event = Started(task.ref, record["started"], ADDRESS, str(record["pid"]))
                self._events.put_nowait(event)
                if sight.phase is TaskPhase.LAUNCHED:
                    task.watch = self._spawn(self._watch(task))
        if "held" in record and not task.held:
            task.held = True
            if not task.unexpected:
                cause, code = EndCause(record["held_cause"]), record.get("exit_code") or 0
                self._events.put_nowait(HeldAfterFailure(task.ref, record["held"], cause, code))
        if sight.phase is TaskPhase.ENDED and not task.ended:
            task.ended = True
            if task.watch is not None:
                task.watch.cancel()
            if task.unexpected:
                self._spawn(self._release(task.ref))
                return
            cause, reason = cause_and_reason(record)
            if record.get("oom_kills") and cause is not EndCause.OOM:
                self._say_killed(task, record["ended"], record["memory_mb"])
            if record.get("shortened"):
                self._say_shortened(task, record["ended"])
            self._events.put_nowait(Ended(task.ref, record["ended"], cause, record.get("exit_code"), reason))

    def _say_killed(self, task: _Task, when: int, memory_mb: int) -> None:
        if not task.said_killed and not task.unexpected:
            task.said_killed = True
            self._events.put_nowait(process_killed(task.ref, when, memory_mb))

    def _say_shortened(self, task: _Task, when: int) -> None:
        if not task.said_shortened and not task.unexpected:
            task.said_shortened = True
            self._events.put_nowait(log_shortened(task.ref, when, self._log_bytes))

    def _prepare(self, folder: TaskFolder, launch: Launch) -> TaskObservation:
        released = self._ended_folders / launch.task.name
        if _exists(released):
            # another service has had it run meanwhile: we were frozen
            return folder_operations.look(TaskFolder(released))
        self._spare_folders.give(folder.path)
        return folder_operations.prepare(folder, self._spec(launch), self._own_ports(launch), launch.files)

    def _own_ports(self, launch: Launch) -> list[int]:
        """List the ports that a task's command was given; that of its SSH server is nobody's failure."""
        return [port for port in self._ports.get(launch.task, ()) if port != launch.ssh_port]

    def _spec(self, launch: Launch) -> LaunchSpec:
        groups = self._cgroups.plan(
            launch.task.name, cpus=launch.cpus, memory_mb=launch.memory_mb, pids=self._pids_limit
        )
        folder = TaskFolder(self._folders / launch.task.name)
        taken = inherited(os.environ, self.storage_host)
        env = {
            **taken,
            # what tasks install is no business of the Python that runs this service
            **self._packages.variables(taken),
            "PWD": str(folder.work),
            **launch.env,
            **visible_gpus(launch.gpus, self._real_gpus),
            COOKIE: folder_operations.cookie(folder),
        }
        # `--`, or a command that begins with a dash would be the shell's own option
        return {
            "argv": [self._shell, "-c", "--", launch.command],
            "env": env,
            "groups": groups,
            "memory_mb": launch.memory_mb,
            "hold": launch.hold_on_failure,
            "log_bytes": self._log_bytes,
            "storage_gb": launch.storage_gb,
            "gpus": [gpu.uuid for gpu in launch.gpus if not gpu.simulated],
            "code": str(launch.code) if launch.code is not None else None,
            "mounts": [(str(mount.source), mount.target) for mount in launch.mounts],
            "home": launch.home,
            "ports": self._own_ports(launch),
            "ssh_port": launch.ssh_port,
        }

    # who tells that something happened

    def _on_bell(self) -> None:
        with contextlib.suppress(BlockingIOError):
            *lines, self._bell_rest = (self._bell_rest + os.read(self._bell, 65536)).split(b"\n")
            for line in lines:
                ref = TaskRef.parse(line.decode("utf-8", "replace"))
                if ref in self._tasks:
                    self._on_ring(self._tasks[ref])

    def _on_ring(self, task: _Task) -> None:
        """Look at once, but at the start of a task a moment later: it may be over with the next ring."""
        if task.started or task.ended or task.first_ring is not None:
            self._look_soon(task)
        else:
            task.first_ring = asyncio.get_running_loop().call_later(_TOGETHER, self._look_soon, task)

    def _look_soon(self, task: _Task) -> None:
        if task.first_ring is not None:
            task.first_ring.cancel()
        if not task.rung:
            task.rung = True
            self._spawn(self._follow(task))

    def _on_fork_server_death(self) -> None:
        for task in self._tasks.values():
            if task.launch is not None and not task.started and not task.ended:
                self._look_soon(task)

    async def _rescan(self) -> None:
        """Look now and then for what nobody rang for: a supervisor that was killed, a bell that was full."""
        pause = self._rescan_seconds
        while True:
            await asyncio.sleep(pause)
            begin = time.monotonic()
            tasks = [task for task in self._tasks.values() if task.under_way]
            folders = [task.folder for task in tasks]
            for number in await self._in_thread(folder_operations.without_supervisor, folders):
                self._look_soon(tasks[number])
            pause = max(self._rescan_seconds, (time.monotonic() - begin) / _RESCAN_SHARE)

    def _make_spare_folders(self) -> None:
        """Make folders for the next tasks once nothing has started for a moment: no start waits for them."""

        async def make() -> None:
            await self._in_thread(self._spare_folders.fill)

        if self._spare_timer is not None:
            self._spare_timer.cancel()
        loop = asyncio.get_running_loop()
        self._spare_timer = loop.call_later(_SPARE_PAUSE, lambda: self._spawn(make()))

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background_done)
        return task

    def _background_done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("the process engine failed", exc_info=error)

    # blocking steps

    async def _in_thread(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: step(*args, **kwargs))

    def _open(self) -> None:
        for folders in (self._folders, self._ended_folders, self._packages.folder.parent):
            folders.mkdir(parents=True, exist_ok=True)
            folders.chmod(0o700)
        self._packages.make()
        self._spare_folders.open()
        fresh = self._data_dir / f"doorbell-{os.getpid()}"
        fresh.unlink(missing_ok=True)
        os.mkfifo(fresh, 0o600)
        # for reading and writing: with no supervisor at the other end it is not at its end
        self._bell = os.open(fresh, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fresh.rename(self._doorbell)
        self._storage_gb = free_disk_gb(self._data_dir)
        self._cgroups = Cgroups.find(self._data_dir)

    def _unfinished(self, but: Collection[str]) -> list[TaskRef]:
        """List the tasks that are not over; release those whose release a kill of the service came before."""
        refs = []
        for name in os.listdir(self._folders):  # noqa: PTH208 (names are all that is asked)
            ref = None if name in but else TaskRef.parse(name)
            if ref is None:
                continue
            folder = TaskFolder(self._folders / name)
            if folder.read()[0] is not TaskPhase.ENDED:
                refs.append(ref)
            else:
                folder_operations.release(folder, self._ended_folders)
        return refs

    def _clean_groups(self, keep: Collection[str]) -> None:
        for group in self._cgroups.leftovers(keep):
            group.end(patience=1.0)
            group.remove()


def _exists(folder: Path) -> bool:
    try:
        return folder.exists()
    except OSError:  # a name that is too long for a folder
        return False
