"""The launcher: carries out the core's instructions with an engine; what each task is launched with."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pai_scheduler.cluster.node import Gpu
from pai_scheduler.cluster.placement import PORT_RANGE
from pai_scheduler.core.events import EndCause, Ended, Event, PortsTaken, Progress, Tick
from pai_scheduler.core.instructions import Instruction, KillTask, LaunchAttempt, ReleaseAttempt, WakeAt
from pai_scheduler.core.model import Attempt, Job, SubState, Task
from pai_scheduler.core.state_machine import Core
from pai_scheduler.engine.protocol import Engine, EngineError, Gang, GangMember, Launch
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.environment import StorageAccess, gang_environment, task_environment
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.task import TaskRef
from pai_scheduler.logging_config import about
from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.ssh.task_files import Peer, own_port, ssh_files
from pai_scheduler.storage.paths import PASSING, Problem, StorageError

from .credentials import HDFSCLI, LAUNCHER, NETRC, access_files, launcher_files
from .inputs import Inputs, JobInputs, names_files
from .writer import Committed

# What the tasks of one attempt get: environment, files, keys, limits. Pure: everything is known already.


class Places(Protocol):
    """Folders of an engine's tasks: paths as a task sees them."""

    own_ssh_server: bool

    def work_dir(self, task: TaskRef) -> str:
        """Return the folder in which a task's command starts."""

    def private_dir(self, task: TaskRef) -> str:
        """Return the folder with the files that only the task may read."""

    def code_dir(self, code: Path) -> str:
        """Return where the job's code is."""


class GangLaunch:
    """Launch settings of an attempt: those that all its tasks share, and those of each task.

    `addresses` are the tasks' own; `inputs` was fetched for the job; `told` is its specification as the tasks
    are told of it. `keys`: None where nobody logs into tasks.
    """

    def __init__(
        self,
        job: Job,
        gang: Gang,
        addresses: Mapping[TaskRef, str],
        inputs: Inputs,
        places: Places,
        *,
        told: JobSpec,
        default_storage_gb: int,
        keys: JobKeys | None = None,
    ) -> None:
        self._job, self._told, self._inputs, self._places = job, told, inputs, places
        self._addresses, self._default_storage_gb = addresses, default_storage_gb
        self._has_ssh = keys is not None
        self._by_task = {(ref.role, ref.index): address for ref, address in addresses.items()}
        self._ports = {(member.task.role, member.task.index): member.ports for member in gang.members}
        self._hosts = {ref.hostname: address for ref, address in addresses.items()}
        self._shared = gang_environment(job.spec, self._by_task, self._ports)
        self._storage_files = dict[str, bytes]()
        if inputs.token:
            self._storage_files = access_files(job.user, inputs.token, inputs.default_fs_uri)
        if keys is None or places.own_ssh_server:
            self._ssh_files = dict[str, bytes]()
        else:
            self._ssh_files = _ssh_files(keys, gang, addresses)

    def of(self, task: Task, gpus: Sequence[Gpu]) -> Launch:
        """Return what one task gets; `gpus` are those that were chosen for it."""
        spec, inputs = self._job.spec, self._inputs
        role = spec.role(task.ref.role)
        port = _ssh_port(self._ports[task.ref.role, task.ref.index]) if self._has_ssh else None
        return Launch(
            task=task.ref,
            node=task.assignment.node,
            user=self._job.user,
            job_name=self._job.name,
            image=spec.image,
            command=role.command,
            env=self._environment(task, gpus),
            cpus=role.cpu_number,
            memory_mb=role.memory_mb,
            shm_mb=role.shm_mb,
            storage_gb=self._default_storage_gb if role.storage_gb is None else role.storage_gb,
            gpus=tuple(gpus),
            address=self._addresses[task.ref],
            hosts=self._hosts,
            hold_on_failure=spec.is_debug,
            login=inputs.login,
            code=inputs.code,
            mounts=inputs.mounts,
            shared=inputs.shared,
            home=spec.home,
            files={
                **self._storage_files,
                **self._ssh_files,
                **({} if port is None or self._places.own_ssh_server else own_port(port)),
                **launcher_files(role.command),
            },
            ssh_port=port,
        )

    def _environment(self, task: Task, gpus: Sequence[Gpu]) -> Mapping[str, str]:
        return task_environment(
            self._told,
            task.ref,
            user=self._job.user,
            addresses=self._by_task,
            ports=self._ports,
            gpus=tuple(gpus),
            default_fs_uri=self._inputs.default_fs_uri,
            work_dir=self._places.work_dir(task.ref),
            container_id=task.ref.name,
            shared=self._shared,
            access=self._storage_access(task.ref) if self._inputs.token else None,
            folders=[mount.target for mount in self._inputs.shared],
            launcher=self._launcher(task.ref),
        )

    def _launcher(self, task: TaskRef) -> str:
        wanted = launcher_files(self._job.spec.role(task.role).command)
        return f"{self._places.private_dir(task)}/{LAUNCHER}" if wanted else ""

    def _storage_access(self, task: TaskRef) -> StorageAccess:
        private, code = self._places.private_dir(task), self._inputs.code
        files = {name: f"{private}/{name}" for name in self._storage_files}
        return StorageAccess(
            self._inputs.token,
            files.get(NETRC, ""),
            files.get(HDFSCLI, ""),
            self._places.code_dir(code) if code is not None else "",
        )


def _ssh_files(keys: JobKeys, gang: Gang, addresses: Mapping[TaskRef, str]) -> dict[str, bytes]:
    peers = {
        member.task.hostname: Peer(addresses[member.task], port)
        for member in gang.members
        if (port := _ssh_port(member.ports)) is not None
    }
    return ssh_files(keys.identity(gang.job_id), keys.host(gang.job_id), peers)


def _ssh_port(ports: Mapping[str, Sequence[int]]) -> int | None:
    """Find the port of a task's own SSH server among its ports by label."""
    return next(iter(ports.get("ssh", ())), None)


# Carries out the core's instructions with an engine: what is durable now becomes real.

_log = logging.getLogger(__name__)

#: launches of one gang under way at once
_PARALLEL_LAUNCHES = 16
#: seconds until what failed and must not be left undone is tried again: doubled each time, up to the longest
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


@dataclass(slots=True)
class _Flight:
    """A gang that was launched and is not yet released."""

    gang: Gang
    #: whose end was asked for: they are launched no more
    killed: set[TaskRef] = field(default_factory=set)
    launching: asyncio.Task[None] | None = None
    fetching: asyncio.Task[Inputs] | None = None

    def kill(self, task: TaskRef) -> None:
        """Launch a task no more; when that is the last one, fetch nothing more either."""
        self.killed.add(task)
        if self.fetching is not None and self.is_killed:
            self.fetching.cancel()

    @property
    def is_killed(self) -> bool:
        """Return whether all of its tasks are to end."""
        return all(member.task in self.killed for member in self.gang.members)


class Launcher:
    """Runs each instruction as a task of its own, so that a slow image pull delays nobody else.

    `inputs` fetches what jobs name in the storage; None: there is none, and tasks get `default_fs_uri` as its
    URI. `keys` are those with which tasks are logged into (None: they are not). `report` takes the
    events that follow; `now` gives ms since the epoch.
    """

    def __init__(
        self,
        engine: Engine,
        inputs: JobInputs | None,
        default_fs_uri: str,
        report: Callable[[Event], None],
        now: Callable[[], int],
        keys: JobKeys | None = None,
    ) -> None:
        self._engine = engine
        self._keys = keys
        self._inputs = inputs
        self._default_fs_uri = default_fs_uri
        self._report = report
        self._now = now
        self._running: set[asyncio.Task[None]] = set()
        #: by job and attempt; needed for the release, when the core has forgotten them
        self._flights: dict[tuple[str, int], _Flight] = {}
        self._releasing: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._wake: asyncio.TimerHandle | None = None
        self._closed = False
        #: calls of the engine that failed, by call
        self.errors: Counter[str] = Counter()

    def carry_out(self, instruction: Instruction, core: Core) -> None:
        """Begin what an instruction says; returns at once.

        After `close` it begins nothing: what became durable then is carried out at the next start.
        """
        if self._closed:
            return
        match instruction:
            case LaunchAttempt(job_id=job_id):
                job = core.jobs.get(job_id)
                if job is not None and job.attempt is not None:
                    flight = self._flights[job_id, job.attempt.number] = _Flight(_gang(job, job.attempt))
                    pending = [
                        (task, self._gpus(core, task))
                        for task in job.attempt.tasks.values()
                        if task.started is None and not task.state.ended
                    ]
                    with about(job=job_id, jobName=job.name, user=job.user, attempt=job.attempt.number):
                        flight.launching = self._begin(
                            self._launch(job, pending, flight, core.settings.default_storage_gb)
                        )
            case KillTask(task=ref, until=until):
                if (ref.job_id, ref.attempt) in self._flights:
                    self._flights[ref.job_id, ref.attempt].kill(ref)
                with about(ref):
                    self._begin(self._insist("kill", lambda: self._engine.kill(ref, self._seconds_to(until))))
            case ReleaseAttempt(job_id=job_id, attempt=number):
                with about(job=job_id, attempt=number):
                    release = self._begin(self._release(self._flights.pop((job_id, number))))
                self._releasing[job_id, number] = release
                release.add_done_callback(lambda _: self._releasing.pop((job_id, number)))
            case WakeAt(time=time):
                self._wake_at(time)

    def committed(self, committed: Committed) -> None:
        """Begin what became durable, and the removal of what ended jobs had."""
        for instruction in committed.outcome.instructions:
            self.carry_out(instruction, committed.core)
        for job in committed.outcome.jobs.values():
            if job.sub_state is SubState.ENDED:
                self.end(job)

    def remember(self, job: Job) -> None:
        """Know the gang of an attempt that was launched before a restart."""
        if job.attempt is not None and job.attempt.tasks:
            self._flights[job.id, job.attempt.number] = _Flight(_gang(job, job.attempt))

    def end(self, job: Job) -> None:
        """Begin to remove what was fetched for a job that has ended."""
        if not self._closed and self._inputs is not None and self._inputs.keeps(job.id):
            with about(job=job.id):
                self._begin(self._end(self._inputs, job.id))

    def forget(self, tasks: Collection[TaskRef], then: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin to remove what the engine keeps of the ended tasks of deleted jobs; `then` follows."""
        if not self._closed:
            self._begin(self._forget(tasks, then))

    async def close(self) -> None:
        """Stop what is under way here, for good; what the engine has begun goes on."""
        self._closed = True
        if self._wake is not None:
            self._wake.cancel()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("an instruction could not be carried out", exc_info=error)

    def _wake_at(self, time: int) -> None:
        loop = asyncio.get_running_loop()
        when = loop.time() + max(0, time - self._now()) / 1000
        if self._wake is None or when < self._wake.when():
            if self._wake is not None:
                self._wake.cancel()
            self._wake = loop.call_at(when, self._tick)

    def _tick(self) -> None:
        self._wake = None
        self._report(Tick(self._now()))

    async def _release(self, flight: _Flight) -> None:
        # a launch that is still under way would bring back what the release removes
        if flight.launching is not None:
            await asyncio.wait([flight.launching])
        await self._insist("release", lambda: self._engine.release(flight.gang))

    async def _end(self, inputs: JobInputs, job_id: str) -> None:
        # its containers have it mounted until they are gone
        if releasing := [task for (of, _), task in self._releasing.items() if of == job_id]:
            await asyncio.wait(releasing)
        await inputs.forget(job_id)

    async def _forget(
        self, tasks: Collection[TaskRef], then: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        # a release that is still under way would bring back what this removes
        gangs = {(task.job_id, task.attempt) for task in tasks}
        if releasing := [self._releasing[gang] for gang in gangs & self._releasing.keys()]:
            await asyncio.wait(releasing)
        for task in tasks:
            with about(task):
                await self._insist("forget", partial(self._engine.forget, task))
        await then()

    async def _launch(
        self,
        job: Job,
        pending: list[tuple[Task, tuple[Gpu, ...]]],
        flight: _Flight,
        default_storage_gb: int,
    ) -> None:
        gang = flight.gang
        if flight.is_killed:
            return
        try:
            if await self._find_ports_taken(job, gang):
                return
            inputs, addresses = await self._make_ready(job, flight, [task for task, _ in pending])
        except asyncio.CancelledError:
            # (all are to end, so nobody waits for the storage any more; or we are to close)
            if not flight.is_killed:
                raise
            return
        except Exception as error:
            self.errors["prepare"] += 1
            _log.warning("the tasks cannot be prepared", exc_info=error)
            await asyncio.gather(*(self._give_up(task, error) for task, _ in pending))
            return
        slots = asyncio.Semaphore(_PARALLEL_LAUNCHES)
        given = GangLaunch(
            job,
            gang,
            addresses,
            inputs,
            self._engine,
            told=job.spec if self._inputs is None else self._inputs.told(job.spec),
            default_storage_gb=default_storage_gb,
            keys=self._keys,
        )

        async def launch(task: Task, gpus: tuple[Gpu, ...]) -> None:
            async with slots:
                if task.ref in flight.killed:
                    return
                with about(task.ref, node=task.assignment.node):
                    try:
                        await self._engine.launch(given.of(task, gpus))
                    except Exception as error:
                        self.errors["launch"] += 1
                        _log.warning("the task cannot be launched", exc_info=error)
                        await self._give_up(task, error)

        await asyncio.gather(*(launch(task, gpus) for task, gpus in pending))

    async def _find_ports_taken(self, job: Job, gang: Gang) -> bool:
        """Report ports that were chosen and that other programs have: the launch comes again with others.

        All are looked at before the first task starts, as every task is told the ports of all.
        """
        chosen = [
            port
            for member in gang.members
            for request in job.spec.role(member.task.role).all_ports
            if not request.begin_at
            for port in member.ports.get(request.label, ())
        ]
        taken = await self._engine.taken_ports(gang, chosen)
        if not taken:
            return False
        _log.info("%d ports that were chosen are taken by other programs", len(taken))
        everywhere = await self._engine.taken_ports(gang, PORT_RANGE)
        number = gang.members[0].task.attempt
        self._report(PortsTaken(self._now(), job.id, number, frozenset(taken) | frozenset(everywhere)))
        return True

    async def _make_ready(
        self, job: Job, flight: _Flight, tasks: Sequence[Task]
    ) -> tuple[Inputs, Mapping[TaskRef, str]]:
        """Fetch what the job names and make its network, the one beside the other."""
        flight.fetching = asyncio.create_task(self._fetch(job, tasks))
        # both are waited for: a release must not come before the network is there
        network = asyncio.create_task(self._engine.prepare(flight.gang))
        try:
            await asyncio.wait([flight.fetching, network])
        finally:
            flight.fetching.cancel()
            network.cancel()
        return await flight.fetching, await network

    async def _fetch(self, job: Job, tasks: Sequence[Task]) -> Inputs:
        """Fetch what a job names in the storage; StorageError."""
        if self._inputs is None:
            if names_files(job.spec):
                raise StorageError(Problem.INVALID, msg("This scheduler has no storage for files."))
            return Inputs(self._default_fs_uri)

        def waiting(message: Message) -> None:
            self._report(Progress(tasks[0].ref, self._now(), message))

        return await self._inputs.fetch(job, waiting)

    async def _give_up(self, task: Task, error: Exception) -> None:
        """Report that a task could not be started, and make sure that it was not started all the same."""
        # with a file that is of no use nothing goes better the next time
        refused = isinstance(error, StorageError) and error.problem not in PASSING
        cause = EndCause.REFUSED if refused else EndCause.LAUNCH_FAILED
        self._report(Ended(task.ref, self._now(), cause, None, _reason(error)))
        await self._insist("kill", lambda: self._engine.kill(task.ref, 0))

    async def _insist(self, call: str, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do what must not be left undone, whatever it takes: a task's end, the release of what it held."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await step()
            except Exception as error:
                self.errors[call] += 1
                _log.warning("%s failed; trying again in %g s", call, pause, exc_info=error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _seconds_to(self, time: int) -> float:
        return max(0, time - self._now()) / 1000

    def _gpus(self, core: Core, task: Task) -> tuple[Gpu, ...]:
        use = core.cluster.uses.get(task.assignment.node)
        by_index = {gpu.index: gpu for gpu in use.node.gpus} if use is not None else {}
        return tuple(by_index[index] for index in task.assignment.gpus if index in by_index)


def _gang(job: Job, attempt: Attempt) -> Gang:
    members = tuple(
        GangMember(task.ref, task.assignment.node, task.assignment.ports) for task in attempt.tasks.values()
    )
    return Gang(job.id, attempt.number, members)


def _reason(error: Exception) -> Message:
    if isinstance(error, EngineError | StorageError):
        return error.message
    return msg("The task could not be started: {error}.", error=str(error) or type(error).__name__)
