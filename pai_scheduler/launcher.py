"""Carries out the core's instructions with an engine: what is durable now becomes real."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from .cluster.node import Gpu
from .core.events import EndCause, Ended, Event, Tick
from .core.instructions import Instruction, KillTask, LaunchAttempt, ReleaseAttempt, WakeAt
from .core.machine import Core
from .core.model import Attempt, Job, Task
from .engine.protocol import Engine, EngineError, Gang, Launch, Member
from .job.environment import task_environment
from .job.messages import Message, msg

_log = logging.getLogger(__name__)

#: launches of one gang under way at once
_PARALLEL_LAUNCHES = 16


class Launcher:
    """Runs each instruction as a task of its own, so that a slow image pull delays nobody else.

    `report` takes the events that follow; `now` gives ms since the epoch.
    """

    def __init__(
        self, engine: Engine, default_fs_uri: str, report: Callable[[Event], None], now: Callable[[], int]
    ) -> None:
        self._engine = engine
        self._default_fs_uri = default_fs_uri
        self._report = report
        self._now = now
        self._running: set[asyncio.Task[None]] = set()
        #: the gangs that were launched, so that they can be released after the core has forgotten them
        self._gangs: dict[tuple[str, int], Gang] = {}
        self._wake: asyncio.TimerHandle | None = None

    def carry_out(self, instruction: Instruction, core: Core) -> None:
        """Begin what an instruction says; returns at once."""
        match instruction:
            case LaunchAttempt(job_id=job_id):
                job = core.jobs.get(job_id)
                if job is not None and job.attempt is not None:
                    gang = _gang(job, job.attempt)
                    self._gangs[job_id, job.attempt.number] = gang
                    launches = [(task, self._gpus(core, task)) for task in job.attempt.tasks.values()]
                    self._begin(self._launch(job, launches, gang))
            case KillTask(task=ref, grace_seconds=grace):
                self._begin(self._engine.kill(ref, grace))
            case ReleaseAttempt(job_id=job_id, attempt=number):
                released = self._gangs.pop((job_id, number), None)
                self._begin(self._engine.release(released or Gang(job_id, number, ())))
            case WakeAt(time=time):
                self._wake_at(time)

    def remember(self, job: Job) -> None:
        """Know the gang of an attempt that was launched before a restart."""
        if job.attempt is not None and job.attempt.tasks:
            self._gangs[job.id, job.attempt.number] = _gang(job, job.attempt)

    async def close(self) -> None:
        """Stop what is under way here; what the engine has begun goes on."""
        if self._wake is not None:
            self._wake.cancel()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

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

    async def _launch(self, job: Job, tasks: list[tuple[Task, tuple[Gpu, ...]]], gang: Gang) -> None:
        pending = [(task, gpus) for task, gpus in tasks if not task.state.ended]
        try:
            addresses = await self._engine.prepare(gang)
        except (EngineError, OSError, TimeoutError) as error:
            _log.warning("job=%s attempt=%d could not be prepared: %s", gang.job_id, gang.attempt, error)
            for task, _ in pending:
                self._failed(task, _reason(error))
            return
        slots = asyncio.Semaphore(_PARALLEL_LAUNCHES)
        keyed = {(ref.role, ref.index): address for ref, address in addresses.items()}
        ports = {(member.task.role, member.task.index): member.ports for member in gang.members}
        hosts = {ref.hostname: address for ref, address in addresses.items()}

        async def launch(task: Task, gpus: tuple[Gpu, ...]) -> None:
            role = job.spec.role(task.ref.role)
            env = task_environment(
                job.spec,
                task.ref,
                user=job.user,
                addresses=keyed,
                ports=ports,
                gpus=gpus,
                default_fs_uri=self._default_fs_uri,
                work_dir=self._engine.work_dir(task.ref),
                container_id=task.ref.name,
            )
            async with slots:
                try:
                    await self._engine.launch(
                        Launch(
                            task=task.ref,
                            node=task.assignment.node,
                            user=job.user,
                            job_name=job.name,
                            image=job.spec.image,
                            command=role.command,
                            env=env,
                            cpus=role.cpu_number,
                            memory_mb=role.memory_mb,
                            shm_mb=role.shm_mb,
                            storage_gb=role.storage_gb,
                            gpus=gpus,
                            address=addresses[task.ref],
                            hosts=hosts,
                        )
                    )
                except (EngineError, OSError, TimeoutError) as error:
                    _log.warning("task=%s could not be launched: %s", task.ref.name, error)
                    self._failed(task, _reason(error))

        await asyncio.gather(*(launch(task, gpus) for task, gpus in pending))

    def _failed(self, task: Task, reason: Message) -> None:
        self._report(Ended(task.ref, self._now(), EndCause.LAUNCH_FAILED, None, reason))

    def _gpus(self, core: Core, task: Task) -> tuple[Gpu, ...]:
        use = core.cluster.uses.get(task.assignment.node)
        by_index = {gpu.index: gpu for gpu in use.node.gpus} if use is not None else {}
        return tuple(by_index[index] for index in task.assignment.gpus if index in by_index)


def _gang(job: Job, attempt: Attempt) -> Gang:
    members = tuple(
        Member(task.ref, task.assignment.node, task.assignment.ports) for task in attempt.tasks.values()
    )
    return Gang(job.id, attempt.number, members)


def _reason(error: Exception) -> Message:
    if isinstance(error, EngineError):
        return error.message
    return msg("The task could not be started: {error}.", error=str(error) or type(error).__name__)
