"""Where the parts meet: gives requests and the engine's events to those whom they concern."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nsmallest
from pathlib import Path
from typing import Any

from pai_scheduler.clock.clock import Clock
from pai_scheduler.cluster.definition import Definition, LogKeeping, VirtualCluster, merge_nodes
from pai_scheduler.cluster.node import Node
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.queue import QueuePosition
from pai_scheduler.cluster.redistribution import overlay
from pai_scheduler.core.events import NodesChanged, Reordered, SharesChanged, StopRequested, Tick
from pai_scheduler.core.machine import Core, CoreSettings
from pai_scheduler.core.model import Attempt, Job, SubState
from pai_scheduler.core.queries import (
    Forecast,
    Limits,
    NodeUse,
    QueuedJob,
    VirtualClusterUse,
    node_uses,
    positions_of,
    queued_job,
    queued_jobs,
    virtual_cluster_uses,
    waiting_reason,
)
from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.execution.launcher import Launcher
from pai_scheduler.execution.reader import Reader
from pai_scheduler.execution.writer import Committed, Writer
from pai_scheduler.inputs.identity import JobIdentities, storage_uris
from pai_scheduler.inputs.prepare import JobInputs
from pai_scheduler.job.messages import Message, msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.monitoring.meters import Meters
from pai_scheduler.monitoring.monitor import Monitor
from pai_scheduler.monitoring.recorder import Recording
from pai_scheduler.rest.errors import (
    forbidden,
    no_attempt,
    no_job,
    no_ssh_authorization,
    no_storage,
    no_task,
    no_virtual_cluster,
)
from pai_scheduler.security.principal import Principal
from pai_scheduler.ssh.authorization.authorization import SshAuthorization
from pai_scheduler.ssh.authorization.key_storage import KeyFiles
from pai_scheduler.ssh.keys.job_keys import JobKeys
from pai_scheduler.storage.files import Files
from pai_scheduler.store.store import JobPosition, Store, StoredJobEvent

from .admission import Accepted, Admission
from .clock_keeper import Timekeeper
from .disk_room import DiskRoom
from .health import Health, Readiness
from .job_events import JobEvents
from .virtual_clusters import Administration, WantedShare

__all__ = [
    "Forecast",
    "JobPosition",
    "Limits",
    "NodeUse",
    "Principal",
    "QueuePosition",
    "QueuedJob",
    "Service",
    "Story",
    "VirtualClusterUse",
    "WantedShare",
]

Story = StoredJobEvent

_log = logging.getLogger(__name__)

#: Jobs of the core that are gone through before others' requests come between.
_LOOKED_AT_ONCE = 2000


class Service:
    """The scheduler. Every method checks what its caller may do; refusals are `errors.RequestError`.

    `default_fs_uri` is what tasks get as PAI_DEFAULT_FS_URI; empty: our own WebHDFS, at `address` or where
    the engine lets tasks in. Without `job_files` no job may name a file, without `keys` nobody logs into a
    task; without `data_dir` nobody watches whether its disk is full. `clock` is
    what all times here are told by.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        cluster: Definition | None = None,
        *,
        data_dir: Path | None = None,
        default_fs_uri: str = "",
        address: str = "",
        job_files: JobIdentities | None = None,
        keys: JobKeys | None = None,
        kill_grace_seconds: float = 10.0,
        first_port: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self._engine = engine
        self._store = store
        self._definition = cluster or Definition()
        self._settings = CoreSettings(
            kill_grace_seconds,
            self._definition.default_storage_gb,
            self._definition.overtake_limit,
            self._definition.debug_hold_seconds,
        )
        self._first_port = first_port
        self._default_fs_uri, self._address, self._job_files = default_fs_uri, address, job_files
        clock = self._clock = self._now = clock or Clock()
        self._nodes: tuple[Node, ...] = ()
        self._reader = Reader(store)
        self._stories = JobEvents(store, self._reader)
        self._writer = Writer(store, self._make_core, self._committed)
        self._inputs = JobInputs(job_files, self._definition.max_mount_gb) if job_files is not None else None
        self._launcher = Launcher(engine, self._inputs, self._known_fs_uri, self._writer.report, clock, keys)
        self._meters = Meters(
            engine,
            lambda: self._definition.virtual_clusters.values(),
            lambda: (self._launcher.errors, self._writer.failures),
        )
        self._room = (
            DiskRoom(
                data_dir,
                self._definition.min_free_mb,
                engine,
                lambda least: self._writer.keep(store.keep_reserve, least),
            )
            if data_dir is not None
            else None
        )
        self._health = Health(
            self._writer.check,
            lambda: None if self._pump is None else not self._pump.done(),
            lambda: self._nodes,
            self._shortage,
            lambda: store.damage,
            lambda: store.checked,
        )
        self._admission = Admission(
            store,
            self._reader,
            self._writer,
            lambda: self._definition,
            lambda name: self._administration.is_leaving(name),
            engine.refuses_image,
            clock,
            self._shortage,
            lambda: None if job_files is None else job_files.files.names,
        )
        self._administration = Administration(
            lambda: self._definition.virtual_clusters, self._admission.jobs_in, self._writer.request, clock
        )
        self._ssh_authorization = (
            SshAuthorization(keys, engine, store, self._reader, self._writer, clock)
            if keys is not None
            else None
        )
        self._key_files = (
            KeyFiles(keys, lambda: job_files.files) if keys is not None and job_files is not None else None
        )
        self._timekeeper = Timekeeper(clock, store, self._writer, lambda: not self._core.jobs)
        self._pump: asyncio.Task[None] | None = None

    # -- life -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take up what the store knows and what the engine runs, then schedule.

        EngineError: the engine cannot work at all.
        """
        await self._engine.start()
        if self._job_files is not None:
            await self._job_files.start(*storage_uris(self._default_fs_uri, self._address, self._engine))
        self._nodes = merge_nodes(self._definition, await self._engine.nodes())
        # not requests: StoreError keeps it from starting
        await self._timekeeper.start()
        await self._admission.start()
        # over those of the file; DefinitionError where both together are impossible
        changes = await asyncio.to_thread(self._store.virtual_clusters)
        self._take_shares(overlay(self._definition.virtual_clusters, changes))
        outcome = await self._writer.start()
        jobs = self._core.jobs.values()
        self._meters.start(jobs, self._nodes)
        if self._inputs is not None:
            await self._inputs.start({job.id for job in jobs})
        if self._key_files is not None:
            self._key_files.start(jobs)
        for job in jobs:
            self._launcher.remember(job)
        await self._engine.adopt(
            [
                task.ref
                for job in jobs
                for task in (job.attempt.tasks.values() if job.attempt else ())
                if not task.state.ended
            ]
        )
        for instruction in outcome.instructions:
            self._launcher.carry_out(instruction, self._core)
        self._forget(await asyncio.to_thread(self._store.forgotten))
        self._pump = asyncio.create_task(self._take_engine_events())
        self._writer.report(Tick(self._now()))
        if self._room is not None:
            await self._room.start()

    async def close(self) -> None:
        """Stop scheduling; tasks run on."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        if self._room is not None:
            await self._room.close()
        await self._meters.close()
        await self._launcher.close()
        await self._timekeeper.close()
        await self._writer.close()
        await self._engine.close()
        if self._key_files is not None:
            await self._key_files.close()
        if self._job_files is not None:
            await self._job_files.close()
        self._reader.close()
        self._store.close()

    # -- what users do --------------------------------------------------------------------------------------

    async def submit(self, principal: Principal, owner: str, config: object) -> Accepted:
        """Accept a job durably.

        Refuses: invalid, name taken, no such virtual cluster or not open to the owner, not the caller's own.
        """
        return await self._admission.submit(principal, owner, config)

    async def stop_job(self, principal: Principal, owner: str, name: str) -> None:
        """Stop a job; no change where it has ended."""
        job = await self._reader.find(principal, owner, name)
        await self._writer.request(StopRequested(self._now(), job.id, principal.name))

    async def delete_job(self, principal: Principal, owner: str, name: str) -> None:
        """Forget a job and its logs, stopping it first."""
        job = await self._reader.find(principal, owner, name)
        await self._writer.request(StopRequested(self._now(), job.id, principal.name, delete=True))

    async def reorder(
        self,
        principal: Principal,
        owner: str,
        name: str,
        *,
        priority: int | None = None,
        place: int | None = None,
    ) -> None:
        """Return a job that has not ended another priority (0–100), or move it while it waits.

        `place` counts from 1 among the jobs of its virtual cluster with its priority; its owner moves it
        among their own, so that nobody else's job moves back. Beyond the last: the last.
        """
        job = await self._reader.find(principal, owner, name)
        owner_only = not principal.admin
        await self._writer.request(
            Reordered(self._now(), job.id, principal.name, priority, place, owner_only)
        )

    async def validate(self, principal: Principal, config: object) -> Forecast:
        """Return what submitting this would do."""
        return await self._admission.validate(principal, config)

    # -- what there is --------------------------------------------------------------------------------------

    async def jobs(
        self,
        principal: Principal,
        owner: str | None = None,
        *,
        after: JobPosition | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """List jobs, newest first: the caller's own, or (admins) everybody's or `owner`'s.

        `limit` of them (None: all), those that come after a position in that order.
        """
        if owner is not None and not principal.may_act_for(owner):
            raise forbidden(msg("Only an administrator may list the jobs of user {user}.", user=owner))
        user = owner if principal.admin else principal.name
        return await self._reader.read(self._store.jobs, user, after=after, limit=limit)

    async def job(self, principal: Principal, owner: str, name: str) -> Job:
        """Return a job with its last attempt."""
        return await self._reader.find(principal, owner, name)

    def queues(self, virtual_cluster: str | None = None) -> list[str]:
        """List the virtual clusters whose queue is meant (None: of all); refuses one that there is not."""
        names = self._core.dispatcher.quota_accounting.clusters
        if virtual_cluster is not None and virtual_cluster not in names:
            raise no_virtual_cluster(virtual_cluster, sorted(names))
        return list(names) if virtual_cluster is None else [virtual_cluster]

    def queue(
        self, virtual_cluster: str, *, after: QueuePosition | None = None, limit: int | None = None
    ) -> list[QueuedJob]:
        """List the waiting jobs of a virtual cluster, first come first: `limit` (None: all) after a position.

        Everybody may know how long the queue is: what is another user's business the presenter leaves out.
        """
        return queued_jobs(self._core, virtual_cluster, after, limit)

    async def own_queue(
        self, principal: Principal, virtual_cluster: str, after: QueuePosition, limit: int
    ) -> list[QueuePosition]:
        """Return where those of the caller's jobs stand that come after a position, the first `limit`."""
        found: list[QueuePosition] = []
        jobs = list(self._core.unended(principal.name))
        for begin in range(0, len(jobs), _LOOKED_AT_ONCE):
            found += positions_of(self._core, jobs[begin : begin + _LOOKED_AT_ONCE], virtual_cluster)
            await asyncio.sleep(0)  # others' requests come between
        return nsmallest(limit, (position for position in found if position > after))

    def queued(self, position: QueuePosition) -> QueuedJob | None:
        """Return the waiting job at a position; None where it is there no more."""
        return queued_job(self._core, position)

    def queue_place(self, job: Job) -> int | None:
        """Return a job's place in its queue, from 1; None where it is not in line."""
        queue = self._core.queue
        return queue.position(job.id) if job.id in queue else None

    def waiting_reason(self, job: Job) -> Message | None:
        """Return why a job waits now; None where it does not."""
        return waiting_reason(self._core, job, self._now())

    async def config(self, principal: Principal, owner: str, name: str) -> dict[str, Any]:
        """Return the job JSON as submitted."""
        job = await self._reader.find(principal, owner, name)
        try:
            return await self._reader.read(self._store.config, job.id)
        except KeyError:
            raise no_job(owner, name) from None

    async def attempts(self, principal: Principal, owner: str, name: str) -> list[Attempt]:
        """Return all attempts, oldest first."""
        job = await self._reader.find(principal, owner, name)
        return await self._reader.read(self._store.attempts, job.id)

    async def story(
        self, principal: Principal, owner: str | None, name: str | None, after: int = 0, limit: int = 10_000
    ) -> list[Story]:
        """Return what happened to a job (or to all jobs the caller may see) after story id `after`."""
        return await self._stories.read(principal, owner, name, after, limit)

    def follow(
        self, principal: Principal, owner: str | None, name: str | None, after: int = 0
    ) -> AsyncIterator[Story]:
        """Return the story from `after` on, and go on as it happens; of one job: until that job has ended."""
        return self._stories.follow(principal, owner, name, after)

    async def find_task(
        self, principal: Principal, owner: str, name: str, role: str, index: int, attempt: int | None = None
    ) -> TaskRef:
        """Find a task of a job (attempt None: the last)."""
        job = await self._reader.find(principal, owner, name)
        last = job.attempt.number if job.attempt else 0
        known = any(r.name == role and 0 <= index < r.task_number for r in job.spec.task_roles)
        if not known:
            raise no_task(job.spec, f"{role}-{index}")
        if attempt is not None and not 0 <= attempt <= last:
            raise no_attempt(name, attempt, last)
        return TaskRef(job.id, last if attempt is None else attempt, role, index)

    def task_log(self, task: TaskRef) -> TaskLog:
        """Return the log of a task that `find_task` found."""
        return self._engine.log(task)

    @property
    def log_keeping(self) -> LogKeeping:
        """Return how much of a log is kept, and for how long."""
        return self._definition.logs

    async def log_expired(self, task: TaskRef, log: TaskLog) -> bool:
        """Return whether a task had a log which was removed; one that never ran has had none."""
        if await asyncio.to_thread(lambda: log.exists):
            return False
        for attempt in await self._reader.read(self._store.attempts, task.job_id):
            ran = attempt.tasks.get((task.role, task.index))
            if attempt.number == task.attempt and ran is not None:
                return ran.started is not None and ran.state.ended
        return False

    def task_ended(self, task: TaskRef) -> bool:
        """Return whether a task will write no more; cheap, as every follower of a log asks often."""
        job = self._core.jobs.get(task.job_id)
        if job is None:
            return True
        if job.attempt is None:
            return False
        return job.attempt.number != task.attempt or job.attempt.tasks[task.role, task.index].state.ended

    async def usage(self, task: TaskRef, after: int = 0) -> Recording:
        """Return what a task that `find_task` found has used, later than `after` (ms since the epoch)."""
        return await self._meters.recorder.recording(task, after)

    async def readiness(self) -> Readiness:
        """Return whether the scheduler can do its work now."""
        return await self._health.look()

    @property
    def monitor(self) -> Monitor:
        """Return what counts requests, and has everything that Prometheus may see."""
        return self._meters.monitor

    def nodes(self) -> list[NodeUse]:
        """List the nodes and what is taken of them."""
        return node_uses(self._core)

    async def virtual_clusters(self) -> list[VirtualClusterUse]:
        """List the virtual clusters."""
        counts = await self._reader.read(self._store.count_by_virtual_cluster)
        return virtual_cluster_uses(self._core, self._definition.virtual_clusters.values(), counts)

    def clusters_open_to(self, user: Principal) -> list[str]:
        """Name the virtual clusters that a user may use, stopped ones too."""
        return [
            cluster.name for cluster in self._definition.virtual_clusters.values() if user.may_use(cluster)
        ]

    async def set_virtual_cluster(self, principal: Principal, name: str, wanted: WantedShare) -> bool:
        """Make or change a virtual cluster, durably; True: it is new."""
        _check_admin(principal)
        return await self._administration.set(name, wanted)

    async def delete_virtual_cluster(self, principal: Principal, name: str) -> None:
        """Delete a virtual cluster without jobs, durably."""
        _check_admin(principal)
        await self._administration.delete(name)

    async def stop_virtual_cluster(self, principal: Principal, name: str, stopped: bool) -> None:
        """Let nothing more of a virtual cluster start, or let it again; durable."""
        _check_admin(principal)
        await self._administration.set_stopped(name, stopped)

    @property
    def files(self) -> Files:
        """Return the cluster's files; RequestError where there are none."""
        if self._job_files is None:
            raise no_storage()
        return self._job_files.files

    @property
    def ssh_authorization(self) -> SshAuthorization:
        """Return who lets people into tasks; RequestError where nobody can log into any."""
        if self._ssh_authorization is None:
            raise no_ssh_authorization()
        return self._ssh_authorization

    async def job_holder(self, token: str) -> Principal | None:
        """Return in whose name a job's token speaks; None: it is no token of a job that has not ended."""
        return None if self._job_files is None else await self._job_files.holder(token, self._core.jobs.get)

    @property
    def front_door_url(self) -> str | None:
        """Return the address under which tasks reach the Hub's proxy; None: the one that browsers use."""
        return self._engine.front_door_url

    @property
    def engine_name(self) -> str:
        """Name what runs the tasks ("process", "docker")."""
        return self._engine.name

    # -- within ---------------------------------------------------------------------------------------------

    @property
    def _core(self) -> Core:
        return self._writer.core

    def _shortage(self) -> Message | None:
        return self._room.shortage() if self._room is not None else None

    def _known_fs_uri(self) -> str:
        return self._default_fs_uri if self._job_files is None else self._job_files.files.names.default

    def _make_core(self) -> Core:
        shares = self._engine.shares_host_ports
        cluster = Cluster(self._nodes, shares_host_ports=shares, first_port=self._first_port)
        return Core(cluster, self._settings, self._definition.virtual_clusters.values())

    async def _take_engine_events(self) -> None:
        try:
            async for event in self._engine.events():
                if isinstance(event, NodesChanged):
                    self._nodes = merge_nodes(self._definition, event.nodes)
                    self._meters.note_nodes(self._nodes)
                    self._writer.report(NodesChanged(self._now(), self._nodes))
                else:
                    # an engine tells times by the machine's clock
                    self._writer.report(replace(event, time=self._clock.of_wall(event.time)))
        except Exception:
            _log.critical("the engine tells no more what happens; start the scheduler again", exc_info=True)
            raise

    def _take_shares(self, clusters: Mapping[str, VirtualCluster]) -> None:
        self._definition = replace(self._definition, virtual_clusters=clusters)

    def _committed(self, committed: Committed) -> None:
        for event in committed.events:
            if isinstance(event, SharesChanged):
                self._take_shares({cluster.name: cluster for cluster in event.virtual_clusters})
        self._meters.committed(committed.outcome, committed.events, self._core.jobs.get)
        self._meters.monitor.wrote(len(committed.events), committed.handled_seconds, committed.commit_seconds)
        for instruction in committed.outcome.instructions:
            self._launcher.carry_out(instruction, self._core)
        for job in committed.outcome.jobs.values():
            if job.sub_state is SubState.ENDED:
                self._launcher.end(job)
        if self._key_files is not None:
            self._key_files.follow(committed.outcome.jobs.values())
        self._forget(committed.deleted)
        self._stories.wake(committed.outcome)

    def _forget(self, gone: Sequence[TaskRef]) -> None:
        """Remove the logs of deleted jobs; that they are to go is durable until they are gone."""
        if gone:
            self._launcher.forget(gone, partial(self._writer.forgot, gone))


def _check_admin(principal: Principal) -> None:
    if not principal.admin:
        raise forbidden(msg("Only an administrator may change virtual clusters."))
