"""The only place where time, threads and the parts meet: takes requests and engine events, one at a time."""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from .administration import Administration, WantedShare
from .cluster.definition import Definition, LogKeeping, VirtualCluster, merge_nodes
from .cluster.node import Node
from .cluster.placement import Cluster
from .cluster.redistribution import overlay
from .core.events import NodesChanged, Reordered, SharesChanged, StopRequested, Submitted, Tick
from .core.machine import Core, Settings
from .core.model import Attempt, Job
from .core.outlook import (
    Forecast,
    Limits,
    NodeUse,
    QueuedJob,
    VirtualClusterUse,
    forecast,
    limit_errors,
    node_uses,
    queued_jobs,
    virtual_cluster_uses,
    waiting_reason,
)
from .engine.logs import TaskLog
from .engine.protocol import Engine
from .errors import (
    RequestError,
    conflict,
    forbidden,
    invalid_parameters,
    no_job,
    no_virtual_cluster,
    storage_unreadable,
    too_many_jobs,
)
from .health import Health, Readiness
from .job.messages import Message, msg
from .job.parse import InvalidJobError, config_of, parse_job
from .job.spec import JobSpec
from .job.task import TaskRef
from .job.validate import SpecError
from .launcher import Launcher
from .metrics.meters import Meters
from .metrics.monitor import Monitor
from .metrics.recorder import Recording
from .store.store import Store, StoredStory, StoreError
from .writer import Committed, Writer

__all__ = [
    "Caller",
    "Forecast",
    "Limits",
    "NodeUse",
    "QueuedJob",
    "Service",
    "Story",
    "VirtualClusterUse",
    "WantedShare",
]

Story = StoredStory
Result = TypeVar("Result")

_log = logging.getLogger(__name__)

_READERS = 4
_FEW_ROLES = 8
#: characters of a user's name, as in JupyterHub's own database
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a user of the Hub or of the tokens file, or a service that acts for users."""

    name: str
    admin: bool = False
    groups: tuple[str, ...] = ()


class Service:
    """The scheduler. Every method checks what its caller may do; refusals are `errors.RequestError`.

    `default_fs_uri` is what tasks get as PAI_DEFAULT_FS_URI. `clock` gives ms since the epoch.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        cluster: Definition | None = None,
        *,
        default_fs_uri: str = "",
        kill_grace_seconds: float = 10.0,
        first_port: int = 0,
        clock: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self._engine = engine
        self._store = store
        self._definition = cluster or Definition()
        self._settings = Settings(
            kill_grace_seconds,
            self._definition.default_storage_gb,
            self._definition.overtake_limit,
            self._definition.debug_hold_seconds,
        )
        self._first_port = first_port
        self._now = clock
        self._nodes: tuple[Node, ...] = ()
        self._readers = ThreadPoolExecutor(_READERS, "store-reader")
        self._writer = Writer(store, self._make_core, self._committed)
        self._launcher = Launcher(engine, default_fs_uri, self._writer.report, clock)
        self._meters = Meters(
            engine,
            lambda: self._definition.virtual_clusters.values(),
            lambda: (self._launcher.errors, self._writer.failures),
        )
        self._health = Health(
            self._writer.check,
            lambda: None if self._pump is None else not self._pump.done(),
            lambda: self._nodes,
        )
        self._watchers: dict[str | None, set[asyncio.Event]] = defaultdict(set)
        #: who submits what, and to which virtual cluster
        self._submitting: dict[tuple[str, str], str] = {}
        self._administration = Administration(
            lambda: self._definition.virtual_clusters, self._jobs_in, self._writer.request, clock
        )
        self._last_order = 0
        self._pump: asyncio.Task[None] | None = None

    # -- life -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take up what the store knows and what the engine runs, then schedule.

        EngineError: the engine cannot work at all.
        """
        await self._engine.start()
        self._nodes = merge_nodes(self._definition, await self._engine.nodes())
        # not a request: StoreError keeps it from starting
        self._last_order = await asyncio.to_thread(self._store.last_order)
        # over those of the file; DefinitionError where both together are impossible
        changes = await asyncio.to_thread(self._store.virtual_clusters)
        self._take_shares(overlay(self._definition.virtual_clusters, changes))
        outcome = await self._writer.start()
        jobs = self._core.jobs.values()
        self._meters.start(jobs, self._nodes)
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

    async def close(self) -> None:
        """Stop scheduling; tasks run on."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        await self._meters.close()
        await self._launcher.close()
        await self._writer.close()
        await self._engine.close()
        self._readers.shutdown()
        self._store.close()

    # -- what users do --------------------------------------------------------------------------------------

    async def submit(self, caller: Caller, owner: str, config: object) -> str:
        """Accept a job durably; give its name.

        Refuses: invalid, name taken, no such virtual cluster or not open to the owner, not the caller's own.
        """
        self._check_owner(caller, owner)
        if "\0" in owner or len(owner) > _LONGEST_NAME:
            raise invalid_parameters(msg("There can be no user with the name {name}.", name=owner))
        try:
            spec = await self._parse(config)
        except InvalidJobError as error:
            raise invalid_parameters(_summary(error.errors), error.errors) from None
        assert isinstance(config, Mapping)  # noqa: S101 - parse_job takes nothing else
        self._check_virtual_cluster(caller, spec.virtual_cluster)
        errors = limit_errors(self._core, spec)
        if errors:
            raise invalid_parameters(_summary(errors), errors)
        # a caller who goes away does not undo what is being written, nor free the name before it is
        await asyncio.shield(self._accept(owner, spec, config_of(config)))
        return spec.name

    async def stop_job(self, caller: Caller, owner: str, name: str) -> None:
        """Stop a job; no change where it has ended."""
        job = await self._find(caller, owner, name)
        await self._writer.request(StopRequested(self._now(), job.id, caller.name))

    async def delete_job(self, caller: Caller, owner: str, name: str) -> None:
        """Forget a job and its logs, stopping it first."""
        job = await self._find(caller, owner, name)
        await self._writer.request(StopRequested(self._now(), job.id, caller.name, delete=True))

    async def reorder(
        self,
        caller: Caller,
        owner: str,
        name: str,
        *,
        priority: int | None = None,
        place: int | None = None,
    ) -> None:
        """Give a job that has not ended another priority (0–100), or move it while it waits.

        `place` counts from 1 among the jobs of its virtual cluster with its priority; its owner moves it
        among their own, so that nobody else's job moves back. Beyond the last: the last.
        """
        job = await self._find(caller, owner, name)
        owner_only = not caller.admin
        await self._writer.request(Reordered(self._now(), job.id, caller.name, priority, place, owner_only))

    async def validate(self, caller: Caller, config: object) -> Forecast:
        """Say what submitting this would do."""
        try:
            spec = await self._parse(config)
        except InvalidJobError as error:
            return Forecast(error.errors, "never", _summary(error.errors))
        try:
            self._check_virtual_cluster(caller, spec.virtual_cluster)
        except RequestError as refusal:
            # who writes a job sees it beside the field, like everything else that is wrong
            return Forecast([SpecError("$.virtualCluster", refusal.message)], "never", refusal.message)
        errors = limit_errors(self._core, spec)
        if errors:
            return Forecast(errors, "never", _summary(errors))
        return forecast(self._core, caller.name, spec)

    # -- what there is --------------------------------------------------------------------------------------

    async def jobs(self, caller: Caller, owner: str | None = None) -> list[Job]:
        """List jobs, newest first: the caller's own, or (admins) everybody's or `owner`'s."""
        if owner is not None and owner != caller.name and not caller.admin:
            raise forbidden(msg("Only an administrator may list the jobs of user {user}.", user=owner))
        return await self._read(self._store.jobs, owner if caller.admin else caller.name)

    async def job(self, caller: Caller, owner: str, name: str) -> Job:
        """Give a job with its last attempt."""
        return await self._find(caller, owner, name)

    def queue(self, virtual_cluster: str | None = None) -> dict[str, list[QueuedJob]]:
        """List the waiting jobs by virtual cluster (None: of all), first come first.

        Everybody may know how long the queue is: what is another user's business the presenter leaves out.
        """
        names = self._core.dispatcher.ledger.clusters
        if virtual_cluster is not None and virtual_cluster not in names:
            raise no_virtual_cluster(virtual_cluster, sorted(names))
        chosen = names if virtual_cluster is None else [virtual_cluster]
        return {name: queued_jobs(self._core, name) for name in chosen}

    def queue_place(self, job: Job) -> int | None:
        """Give a job's place in its queue, from 1; None where it is not in line."""
        queue = self._core.queue
        return queue.position(job.id) if job.id in queue else None

    def waiting_reason(self, job: Job) -> Message | None:
        """Say why a job waits now; None where it does not."""
        return waiting_reason(self._core, job, self._now())

    async def config(self, caller: Caller, owner: str, name: str) -> dict[str, Any]:
        """Give the job JSON as submitted."""
        job = await self._find(caller, owner, name)
        try:
            return await self._read(self._store.config, job.id)
        except KeyError:
            raise no_job(owner, name) from None

    async def attempts(self, caller: Caller, owner: str, name: str) -> list[Attempt]:
        """Give all attempts, oldest first."""
        job = await self._find(caller, owner, name)
        return await self._read(self._store.attempts, job.id)

    async def story(
        self, caller: Caller, owner: str | None, name: str | None, after: int = 0, limit: int = 10_000
    ) -> list[Story]:
        """Give what happened to a job (or to all jobs the caller may see) after story id `after`."""
        job_id = None
        if owner is not None and name is not None:
            job_id = (await self._find(caller, owner, name)).id
        return await self._read_story(caller, job_id, after, limit)

    async def follow(
        self, caller: Caller, owner: str | None, name: str | None, after: int = 0
    ) -> AsyncIterator[Story]:
        """Give the story from `after` on, and go on as it happens; of one job: until that job has ended."""
        job_id = None
        if owner is not None and name is not None:
            job_id = (await self._find(caller, owner, name)).id
        news = asyncio.Event()
        self._watchers[job_id].add(news)
        try:
            while True:
                news.clear()
                # asked before reading, and of what is durable: nothing is missed at the end
                over = job_id is not None and await self._read(self._store.is_over, job_id)
                entries = await self._read_story(caller, job_id, after, 1000)
                for entry in entries:
                    after = entry.id
                    yield entry
                if over and not entries:
                    return
                if not entries:
                    await news.wait()
        finally:
            self._watchers[job_id].discard(news)
            if not self._watchers[job_id]:
                del self._watchers[job_id]

    async def find_task(
        self, caller: Caller, owner: str, name: str, role: str, index: int, attempt: int | None = None
    ) -> TaskRef:
        """Find a task of a job (attempt None: the last)."""
        job = await self._find(caller, owner, name)
        last = job.attempt.number if job.attempt else 0
        known = any(r.name == role and 0 <= index < r.task_number for r in job.spec.task_roles)
        if not known or (attempt is not None and not 0 <= attempt <= last):
            raise no_job(owner, f"{name}/{role}-{index}")
        return TaskRef(job.id, last if attempt is None else attempt, role, index)

    def task_log(self, task: TaskRef) -> TaskLog:
        """Give the log of a task that `find_task` found."""
        return self._engine.log(task)

    @property
    def log_keeping(self) -> LogKeeping:
        """Tell how much of a log is kept, and for how long."""
        return self._definition.logs

    async def log_expired(self, task: TaskRef, log: TaskLog) -> bool:
        """Tell whether a task had a log which was removed; one that never ran has had none."""
        if await asyncio.to_thread(lambda: log.exists):
            return False
        for attempt in await self._read(self._store.attempts, task.job_id):
            ran = attempt.tasks.get((task.role, task.index))
            if attempt.number == task.attempt and ran is not None:
                return ran.started is not None and ran.state.ended
        return False

    def task_ended(self, task: TaskRef) -> bool:
        """Tell whether a task will write no more; cheap, as every follower of a log asks often."""
        job = self._core.jobs.get(task.job_id)
        if job is None:
            return True
        if job.attempt is None:
            return False
        return job.attempt.number != task.attempt or job.attempt.tasks[task.role, task.index].state.ended

    async def usage(self, task: TaskRef, after: int = 0) -> Recording:
        """Give what a task that `find_task` found has used, later than `after` (ms since the epoch)."""
        return await self._meters.recorder.recording(task, after)

    async def readiness(self) -> Readiness:
        """Tell whether the scheduler can do its work now."""
        return await self._health.look()

    @property
    def monitor(self) -> Monitor:
        """Give what counts requests, and has everything that Prometheus may see."""
        return self._meters.monitor

    def nodes(self) -> list[NodeUse]:
        """List the nodes and what is taken of them."""
        return node_uses(self._core)

    async def virtual_clusters(self) -> list[VirtualClusterUse]:
        """List the virtual clusters."""
        counts = await self._read(self._store.count_by_virtual_cluster)
        return virtual_cluster_uses(self._core, self._definition.virtual_clusters.values(), counts)

    async def set_virtual_cluster(self, caller: Caller, name: str, wanted: WantedShare) -> bool:
        """Make or change a virtual cluster, durably; True: it is new."""
        _check_admin(caller)
        return await self._administration.set(name, wanted)

    async def delete_virtual_cluster(self, caller: Caller, name: str) -> None:
        """Delete a virtual cluster without jobs, durably."""
        _check_admin(caller)
        await self._administration.delete(name)

    async def stop_virtual_cluster(self, caller: Caller, name: str, stopped: bool) -> None:
        """Let nothing more of a virtual cluster start, or let it again; durable."""
        _check_admin(caller)
        await self._administration.set_stopped(name, stopped)

    @property
    def front_door_url(self) -> str | None:
        """Give the address under which tasks reach the Hub's proxy; None: the one that browsers use."""
        return self._engine.front_door_url

    @property
    def engine_name(self) -> str:
        """Name what runs the tasks ("process", "docker")."""
        return self._engine.name

    async def _accept(self, owner: str, spec: JobSpec, config: Mapping[str, Any]) -> None:
        key = (owner, spec.name)
        taken = conflict(msg("There is a job named {name} already. Choose another name.", name=spec.name))
        if key in self._submitting:
            raise taken
        self._submitting[key] = spec.virtual_cluster
        try:
            if await self._read(self._store.job, owner, spec.name) is not None:
                raise taken
            known = self._definition.virtual_clusters
            if spec.virtual_cluster not in known or self._administration.is_leaving(spec.virtual_cluster):
                # deleted since it was found
                raise no_virtual_cluster(spec.virtual_cluster, sorted(known))
            if self._jobs_of(owner) > self._definition.jobs_per_user:
                raise too_many_jobs(owner, self._definition.jobs_per_user)
            self._last_order += 1
            event = Submitted(self._now(), _new_id(), owner, spec, self._last_order)
            await self._writer.request(event, config)
        finally:
            del self._submitting[key]

    # -- within ---------------------------------------------------------------------------------------------

    @property
    def _core(self) -> Core:
        return self._writer.core

    def _make_core(self) -> Core:
        shares = self._engine.shares_host_ports
        cluster = Cluster(self._nodes, shares_host_ports=shares, first_port=self._first_port)
        return Core(cluster, self._settings, self._definition.virtual_clusters.values())

    async def _parse(self, config: object) -> JobSpec:
        """Parse a job; a large one, which takes up to a second, beside everybody else's requests."""
        if _takes_long(config):
            return await asyncio.to_thread(parse_job, config)
        return parse_job(config)

    async def _read(self, function: Callable[..., Result], *args: Any) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, function, *args)
        except StoreError as error:
            message = msg(
                "The scheduler cannot read its database ({error}). What runs goes on.", error=error.reason
            )
            raise storage_unreadable(message) from error

    async def _read_story(self, caller: Caller, job_id: str | None, after: int, limit: int) -> list[Story]:
        user = None if caller.admin or job_id is not None else caller.name
        read = partial(self._store.story, job_id=job_id, user=user, after=after, limit=limit)
        return await self._read(read)

    async def _take_engine_events(self) -> None:
        try:
            async for event in self._engine.events():
                if isinstance(event, NodesChanged):
                    self._nodes = merge_nodes(self._definition, event.nodes)
                    self._meters.note_nodes(self._nodes)
                    self._writer.report(NodesChanged(event.time, self._nodes))
                else:
                    self._writer.report(event)
        except Exception:
            _log.critical("the engine tells no more what happens; start the scheduler again", exc_info=True)
            raise

    def _jobs_of(self, user: str) -> int:
        """Count a user's jobs that have not ended, and those on their way."""
        return self._core.unended[user] + sum(name == user for name, _ in self._submitting)

    def _jobs_in(self, virtual_cluster: str) -> int:
        """Count the jobs of a virtual cluster that have not ended, and those on their way to it."""
        under_way = sum(name == virtual_cluster for name in self._submitting.values())
        return under_way + sum(
            job.spec.virtual_cluster == virtual_cluster and not job.state.ended
            for job in self._core.jobs.values()
        )

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
        self._forget(committed.deleted)
        changed = {entry.job_id for entry in committed.outcome.story} | set(committed.outcome.jobs)
        for job_id in changed:
            for news in self._watchers.get(job_id, ()):
                news.set()
        for news in self._watchers.get(None, ()):
            news.set()

    def _forget(self, gone: Sequence[TaskRef]) -> None:
        """Remove the logs of deleted jobs; that they are to go is durable until they are gone."""
        if gone:
            self._launcher.forget(gone, partial(self._writer.forgot, gone))

    def _check_owner(self, caller: Caller, owner: str) -> None:
        if caller.name != owner and not caller.admin:
            raise forbidden(msg("Only an administrator may act for user {user}.", user=owner))

    def _check_virtual_cluster(self, caller: Caller, name: str) -> None:
        clusters = self._definition.virtual_clusters
        cluster = clusters.get(name)
        if cluster is None:
            raise no_virtual_cluster(name, sorted(clusters))
        if not _open_to(caller, cluster):
            known = ", ".join(other.name for other in clusters.values() if _open_to(caller, other))
            raise forbidden(
                msg(
                    "Virtual cluster {name} is not open to you. Open to you are: {known}.",
                    name=name,
                    known=known or "–",
                )
            )
        if cluster.stopped:
            raise forbidden(
                msg(
                    "Virtual cluster {name} is stopped: it takes no jobs until an administrator starts it.",
                    name=name,
                )
            )

    async def _find(self, caller: Caller, owner: str, name: str) -> Job:
        job = None
        if caller.name == owner or caller.admin:
            job = await self._read(self._store.job, owner, name)
        if job is None:
            raise no_job(owner, name)
        return job


def _check_admin(caller: Caller) -> None:
    if not caller.admin:
        raise forbidden(msg("Only an administrator may change virtual clusters."))


def _open_to(caller: Caller, cluster: VirtualCluster) -> bool:
    """Tell whether a virtual cluster may be used by somebody."""
    if caller.admin or not (cluster.users or cluster.groups):
        return True
    return caller.name in cluster.users or not set(caller.groups).isdisjoint(cluster.groups)


def _new_id() -> str:
    """Make a job id: 80 random bits, in letters and digits that stand in every kind of name."""
    return base64.b32encode(secrets.token_bytes(10)).decode("ascii").lower()


def _takes_long(config: object) -> bool:
    """Tell whether a job JSON may take more than a few ms to validate: many ports, large `extras`."""
    if not isinstance(config, Mapping):
        return False
    roles = config.get("taskRoles")
    return bool(config.get("extras")) or (isinstance(roles, list) and len(roles) > _FEW_ROLES)


def _summary(errors: Sequence[SpecError]) -> Message:
    first = errors[0]
    if len(errors) == 1:
        return msg("The job is not valid: {path}: {error}", path=first.path, error=first.message)
    return msg(
        "The job is not valid, {count} errors. The first: {path}: {error}",
        count=len(errors),
        path=first.path,
        error=first.message,
    )
