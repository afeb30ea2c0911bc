"""Puts the scheduler together, an object for each resource (jobs, queues, tasks …); starts and ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pai_scheduler.clock import Clock
from pai_scheduler.cluster.definition import Definition
from pai_scheduler.cluster.node import DiskSpace
from pai_scheduler.core.events import NodesChanged, Tick
from pai_scheduler.core.queries import NodeUse, node_uses
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.job.task import TaskRef
from pai_scheduler.monitoring.cluster_usage import UsageSampler
from pai_scheduler.monitoring.meters import Meters
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError, no_ssh_authorization, no_storage
from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.storage.files import Files
from pai_scheduler.store.store import Store, StoreError

from .admission import Admission, JobDependencies
from .context import ServiceContext
from .current_cluster import CurrentCluster
from .event_stream import Changes, JobEvents
from .health import DiskRoom, Health
from .input_identity import JobIdentities, storage_uris
from .inputs import JobInputs
from .jobs import Jobs, Tasks
from .launcher import Launcher
from .nodes import MaintenancePlan, Nodes
from .notifications import Notifications, Sender
from .queues import Queues
from .reader import Reader
from .schedules import FindUser, Schedules
from .ssh_access import SshAuthorization
from .ssh_key_storage import KeyFiles
from .virtual_clusters import VirtualClusters
from .writer import CommitObserver, Committed, Writer

_log = logging.getLogger(__name__)

#: Seconds between two looks, and ms by which the clock may have drifted from what is written down.
_LOOK_EVERY, _DRIFT_MS = 60.0, 500


class Timekeeper:
    """Keeps `clock` in the store, so that it goes on over a restart.

    It catches up where there is no job whose times that would move.
    """

    def __init__(self, clock: Clock, store: Store, writer: Writer) -> None:
        self._clock, self._store, self._writer = clock, store, writer
        self._kept = clock.mark()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Go on where the last life of the service was; StoreError."""
        mark, latest = await asyncio.to_thread(self._store.clock_mark)
        self._clock.take_up(mark, latest)
        self._kept = self._clock.mark()
        await asyncio.to_thread(self._store.keep_clock_mark, self._kept)
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Stop, and write down where the clock is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self.look()

    async def look(self) -> None:
        """Write down where the clock is, unless that is known."""
        if not self._writer.core.jobs:
            self._clock.catch_up()
        mark = self._clock.mark()
        if abs(mark.offset - self._kept.offset) < _DRIFT_MS:
            return
        try:
            await self._writer.keep(self._store.keep_clock_mark, mark)
        except RequestError as error:
            _log.warning("it cannot be written down what time it is: %s", error.message)
        else:
            self._kept = mark

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            await self.look()


class EngineEvents:
    """Reads the engine's events, of its nodes and of tasks, from `start` to `close`."""

    def __init__(
        self, engine: Engine, cluster: CurrentCluster, writer: Writer, meters: Meters, clock: Clock
    ) -> None:
        self._engine, self._cluster, self._writer = engine, cluster, writer
        self._meters, self._clock = meters, clock
        self._reading: asyncio.Task[None] | None = None

    @property
    def arrive(self) -> bool | None:
        """Return whether the engine still tells what happens; None before it is asked to."""
        return None if self._reading is None else not self._reading.done()

    def start(self) -> None:
        """Begin to read."""
        self._reading = asyncio.create_task(self._read())

    async def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async for event in self._engine.events():
                if isinstance(event, NodesChanged):
                    self._cluster.set_nodes(event.nodes)
                    self._meters.note_nodes(self._cluster.nodes)
                    self._writer.report(NodesChanged(self._clock(), self._cluster.nodes))
                else:
                    # an engine tells times by the machine's clock: so long ago it was by ours too
                    age = max(0, self._clock.wall() - event.time)
                    self._writer.report(replace(event, time=self._clock() - age))
        except Exception:
            _log.critical("the engine tells no more what happens; start the scheduler again", exc_info=True)
            raise


#: From so many ended jobs is learned at a start.
_MOST_RUNS = 2000


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of a `Service`."""

    definition: Definition = field(default_factory=Definition)
    #: None: nobody watches whether its disk is full
    data_dir: Path | None = None
    #: where we listen, with the path that is ours
    address: str = ""
    #: PAI_DEFAULT_FS_URI of tasks; empty: our own WebHDFS, at `address` or where the engine lets tasks in
    default_fs_uri: str = ""

    @property
    def first_port(self) -> int:
        """Return where the choice of ports begins.

        Another scheduler on this machine has another folder: their tasks seldom want the same ports.
        """
        return zlib.crc32(os.fsencode(self.data_dir)) if self.data_dir is not None else 0


class Service:
    """The scheduler. Its resources check what their caller may do; refusals are `errors.RequestError`.

    Without `job_files` no job may name a file, without `keys` nobody logs into a task. `clock` is what all
    times here are told by. `find_user` says in whose name a schedule's jobs come; without it none do.
    `notifications` has the ways on which ends of jobs are told outside.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        settings: ServiceSettings,
        *,
        job_files: JobIdentities | None = None,
        keys: JobKeys | None = None,
        clock: Clock | None = None,
        find_user: FindUser | None = None,
        notifications: Notifications | None = None,
    ) -> None:
        self._engine, self._store, self._settings, self._job_files = engine, store, settings, job_files
        clock = self._clock = clock or Clock()
        definition, data_dir = settings.definition, settings.data_dir
        files = job_files.files if job_files is not None else None
        self._cluster = CurrentCluster(definition, engine, settings.first_port, clock)
        self._reader = Reader(store)
        self._writer = Writer(store, self._cluster.make_core, self._committed)
        self._inputs = (
            JobInputs(job_files, definition.max_mount_gb, definition.shared_folders)
            if job_files is not None
            else None
        )
        context = ServiceContext(store, self._reader, self._writer, self._cluster, clock)
        self._launcher = Launcher(
            engine, self._inputs, settings.default_fs_uri, self._writer.report, clock, keys
        )
        self._meters = Meters(engine, self._cluster, self._launcher.errors, self._writer)
        self._room = (
            DiskRoom(data_dir, definition.min_free_mb, engine, store, self._writer)
            if data_dir is not None
            else None
        )
        self._engine_events = EngineEvents(engine, self._cluster, self._writer, self._meters, clock)
        self._timekeeper = Timekeeper(clock, store, self._writer)
        self._key_files = KeyFiles(keys, files) if keys is not None and files is not None else None
        self._ssh_authorization = SshAuthorization(context, keys, engine) if keys is not None else None
        notifications = notifications or Notifications()
        self.dependencies = JobDependencies(context)
        self.admission = Admission(context, self.dependencies, engine, self._room, files, notifications)
        self.jobs = Jobs(context)
        self.schedules = Schedules(
            context, self.admission, find_user or _find_nobody, definition.schedules_per_user, files
        )
        self.queues = Queues(self._writer, clock)
        self.job_events = JobEvents(store, self._reader, lambda job_id: self._writer.core.jobs.get(job_id))
        self._sender = Sender(store, self._writer, notifications, self.job_events.tell, clock)
        self.changes = Changes(lambda: self._writer.core)
        self.tasks = Tasks(context, engine, self._meters.recorder, self.job_events, definition.logs)
        self.virtual_clusters = VirtualClusters(context, self.admission)
        self.nodes = Nodes(context, self._meters)
        self.maintenance = MaintenancePlan(context, self._meters)
        self.cluster_usage = UsageSampler(self._meters.gpus, data_dir, clock)
        self.health = Health(self._writer.check, store, self._engine_events, self._cluster, self._room)
        #: counts requests, and has everything that Prometheus may see
        self.monitor = self._meters.monitor
        self._observers: list[CommitObserver] = [
            self._cluster,
            self._meters,
            self._launcher,
            *([self._key_files] if self._key_files is not None else ()),
            self.job_events,
            self._sender,
            self.changes,
        ]
        self._learning: asyncio.Task[None] | None = None
        #: names what runs the tasks ("process", "docker")
        self.engine_name = engine.name

    async def start(self) -> None:
        """Take up what the store knows and what the engine runs, then schedule.

        EngineError: the engine cannot work at all.
        """
        await self._engine.start()
        if self._job_files is not None:
            uris = storage_uris(self._settings.default_fs_uri, self._settings.address, self._engine)
            await self._job_files.start(*uris)
        self._cluster.set_nodes(await self._engine.nodes())
        for name, gpus in self._cluster.unknown_gpu_links():
            _log.warning("gpuLinks in the cluster file name GPUs that %s does not have: %s", name, gpus)
        self._cluster.set_closings(await asyncio.to_thread(self._store.closed_nodes))
        # not requests: StoreError keeps it from starting
        await self._timekeeper.start()
        self._cluster.set_maintenance(await asyncio.to_thread(self._store.maintenance))
        await self.admission.start()
        # over those of the file; DefinitionError where both together are impossible
        self._cluster.restore(await asyncio.to_thread(self._store.virtual_clusters))
        outcome = await self._writer.start()
        core = self._writer.core
        jobs = core.jobs.values()
        self._meters.start(jobs, self._cluster.nodes)
        await self.cluster_usage.start()
        await self.tasks.start()
        if self._inputs is not None:
            await self._inputs.start({job.id for job in jobs})
        if self._key_files is not None:
            self._key_files.start(jobs)
        for job in jobs:
            self._launcher.remember(job)
        await self._engine.adopt(
            {
                task.ref: task.assignment.node
                for job in jobs
                for task in (job.attempt.tasks.values() if job.attempt else ())
                if not task.state.ended
            }
        )
        for instruction in outcome.instructions:
            self._launcher.carry_out(instruction, core)
        self._forget(await asyncio.to_thread(self._store.forgotten))
        self._engine_events.start()
        self._writer.report(Tick(self._clock()))
        self.admission.learn_names()
        await self._sender.start()
        if self._room is not None:
            await self._room.start()
        self.schedules.start()
        self.maintenance.start()
        self._learning = asyncio.create_task(self._learn())

    async def close(self) -> None:
        """Stop scheduling; tasks run on."""
        if self._learning is not None:
            await self._learning
        await self.maintenance.close()
        await self.schedules.close()
        await self.admission.close()
        await self._engine_events.close()
        await self._sender.close()
        if self._room is not None:
            await self._room.close()
        await self.cluster_usage.close()
        self.tasks.close()
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

    @property
    def front_door_url(self) -> str | None:
        """Return the address under which tasks reach the Hub's proxy; None: the one that browsers use."""
        return self._engine.front_door_url

    def node_uses(self) -> list[NodeUse]:
        """List the nodes and what is taken of them."""
        return node_uses(self._writer.core)

    def disk(self, node: str) -> DiskSpace | None:
        """Return the room on the disk that tasks fill on a node; None: it is not known."""
        return self._engine.disk(node)

    async def job_holder(self, token: str) -> Principal | None:
        """Return in whose name a job's token speaks; None: it is no token of a job that has not ended."""
        if self._job_files is None:
            return None
        return await self._job_files.holder(token, self._writer.core.jobs.get)

    async def _learn(self) -> None:
        """Learn how long jobs take from those that ended before this start; only estimates wait for it."""
        try:
            runs = await asyncio.to_thread(self._store.last_ended_runs, _MOST_RUNS)
        except StoreError as error:
            _log.warning("No durations are known of jobs that ended before this start: %s", error)
            return
        for run in runs:
            self._writer.core.learn(run.user, run.spec, run.ran_ms)

    def _committed(self, committed: Committed) -> None:
        for observer in self._observers:
            observer.committed(committed)
        self._forget(committed.deleted)

    def _forget(self, gone: Sequence[TaskRef]) -> None:
        """Remove the logs of deleted jobs; that they are to go is durable until they are gone."""
        if gone:
            self._launcher.forget(gone, partial(self._writer.forgot, gone))


async def _find_nobody(name: str) -> Principal | None:  # noqa: ARG001
    return None
