"""Questions to the present state: who holds what, whether a job would fit, why one waits; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.feasibility import Feasibility, Fits, feasibility, never_fits, obstacle
from pai_scheduler.cluster.node import Node
from pai_scheduler.cluster.preemption import JobHolding
from pai_scheduler.cluster.resources import Demand, gang_of
from pai_scheduler.cluster.scheduler_state import Shape
from pai_scheduler.cluster.sort_key import KeyedJob, SortKey, level_of
from pai_scheduler.cluster.start_estimate import MOST_AHEAD, estimate_start, those_ahead
from pai_scheduler.i18n import Message, counted, msg
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validation import SpecError

from .dependencies import waits_for
from .model import Job, State, SubState, Task
from .queue_policies import GPU_HOUR
from .state_machine import Core

#: a submission behind every job's
_LAST = 1 << 62
#: Of so many other virtual clusters is said whether a job would start there: each takes a search.
_MOST_OTHERS = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """Order and limits that a job would have. `queue_position`: from 1, if it had to wait.

    `run_seconds`: its time limit; `gpus_per_user`: the quota of its user, who holds `gpus_held`; None: none.
    """

    priority: int
    queue_position: int
    run_seconds: int | None
    gpus_per_user: int | None
    gpus_held: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predicted effect of submitting a job. `fits`: now, later, never; `limits` None: it is not valid.

    `reason`: why its resources keep it from starting now; beside errors, from ever starting.
    `starts_within`: seconds, an estimate; None: nobody knows. `starts_now_in`: other virtual clusters open to
    its user in which it would start at once. `warnings`: what is no error, and its user had better know.
    """

    errors: Sequence[SpecError]
    fits: str
    reason: Message | None
    borrows: bool = False
    limits: Limits | None = None
    starts_within: int | None = None
    starts_now_in: Sequence[str] = ()
    warnings: Sequence[SpecError] = ()


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A waiting job in the order of its virtual cluster. `reserved`: things are kept for it.

    `queue_position`: from 1; `overtaken`: how often a job that came later has started before it; `keyed`: for
    whoever goes on from here.
    """

    job: Job
    queue_position: int
    keyed: KeyedJob
    overtaken: int
    reserved: bool


@dataclass(frozen=True, slots=True)
class NodeUse:
    """A node and what is taken of it; `gpu_jobs` gives the job that holds a GPU index."""

    node: Node
    cpus: int
    memory_mb: int
    storage_gb: int
    gpu_jobs: Mapping[int, Job]


@dataclass(frozen=True, slots=True)
class VirtualClusterUse:
    """A virtual cluster and what its jobs hold. Capacities in per cent; memory in MB, CPUs, GPUs."""

    name: str
    capacity: float
    max_capacity: float
    used_capacity: float
    active_jobs: int
    pending_jobs: int
    total_jobs: int
    used: tuple[int, int, int]
    total: tuple[int, int, int]
    nodes: tuple[str, ...]
    stopped: bool
    #: as `VirtualCluster.shorter_first`
    shorter_first: int
    #: as `VirtualCluster.fair_share_hours`
    fair_share_hours: int
    #: as `LeastAttained.gpu_hours`; empty: no levels
    level_gpu_hours: tuple[float, ...]
    #: whether who needs least to its end comes first
    shortest_remaining: bool
    #: as `VirtualCluster.spreads`
    spreads: bool


def forecast(core: Core, user: str, spec: JobSpec, now: int, others: Iterable[str] = ()) -> Forecast:
    """Return what submitting a valid job would do now (ms since the epoch).

    `others`: the other virtual clusters that are open to the user.
    """
    gang = gang_of(spec, core.settings.storage_request_gb)
    core.state.now = max(core.state.now, now)
    found = _feasibility(core, user, spec, gang)
    reason = found.reason
    if found.fits is Fits.NOW and found.borrows:
        reason = msg(
            "It would hold more than virtual cluster {vc} is guaranteed: it may be stopped for others, "
            "and is queued again then.",
            vc=spec.virtual_cluster,
        )
    scheduler_state = core.state
    cluster = scheduler_state.quota_accounting.clusters.get(spec.virtual_cluster)
    limits = Limits(
        spec.priority,
        scheduler_state.queue.queue_position_for(spec.virtual_cluster, _sort_key_now(core, user, spec, now)),
        core.run_seconds(spec),
        cluster.gpus_per_user if cluster is not None else None,
        scheduler_state.quota_accounting.user_gpus(spec.virtual_cluster, user),
    )
    return Forecast(
        (),
        found.fits.value,
        reason,
        found.borrows,
        limits,
        _starts_within(core, user, spec, gang, found, now),
        () if found.fits is Fits.NOW else _starts_now_in(core, user, spec, gang, others),
    )


def never_fits_reason(core: Core, user: str, spec: JobSpec) -> Message | None:
    """Return why a job that is submitted now could never start; None where it could.

    In a virtual cluster that is not there, it is only the nodes that keep it from that.
    """
    gang = gang_of(spec, core.settings.storage_request_gb)
    if spec.virtual_cluster not in core.state.quota_accounting.clusters:
        return never_fits(core.state.cluster, gang)
    found = _feasibility(core, user, spec, gang)
    return found.reason if found.fits is Fits.NEVER else None


def _feasibility(core: Core, user: str, spec: JobSpec, gang: Sequence[Demand]) -> Feasibility:
    return feasibility(
        core.state,
        user,
        spec.virtual_cluster,
        gang,
        preemptible=spec.preemptible,
        run_ms=core.run_ms(spec),
    )


def _sort_key_now(core: Core, user: str, spec: JobSpec, now: int) -> SortKey:
    """Return the sort key of a job that is submitted now."""
    own = SortKey.of(spec.priority, core.policy_key(user, spec, now), _LAST)
    return core.queue.with_user_key(spec.virtual_cluster, user, own)


def _starts_within(
    core: Core, user: str, spec: JobSpec, gang: Sequence[Demand], found: Feasibility, now: int
) -> int | None:
    """Estimate in how many seconds a job would start; None: nobody knows."""
    if found.fits is not Fits.LATER:
        return 0 if found.fits is Fits.NOW else None
    if found.awaits:
        return seconds_until(max(_ended_by(core, holding, now) for holding in found.awaits), now)
    limit = core.run_ms(spec)
    shape = core.state.shape(user, spec.virtual_cluster, gang, spec.preemptible, limit)
    start = _estimated_start(
        core, user, spec.virtual_cluster, shape, _sort_key_now(core, user, spec, now), now
    )
    return None if start is None else seconds_until(start, now)


def start_of_waiting(core: Core, job_id: str, now: int) -> int | None:
    """Estimate when a job starts that waits (ms since the epoch), as `forecast` does for one that is not
    submitted yet; None: nobody knows, or it does not wait."""
    state = core.state
    state.now = max(state.now, now)
    job = core.jobs.get(job_id)
    if job is not None and job.sub_state is SubState.RETRY_WAIT:
        return _start_of_retry(core, job)
    # (of most jobs of a long list that is the answer: first what is looked up)
    if job_id not in state.queue or state.queue.queue_position(job_id) > MOST_AHEAD + 1:
        return None
    if obstacle(state, job_id).fits is Fits.NEVER:
        return None
    user, cluster = state.whose(job_id)
    shape, sort_key = state.queue.shape(job_id), state.queue.sort_key(job_id)
    return _estimated_start(core, user, cluster, shape, sort_key, now, job_id)


def _start_of_retry(core: Core, job: Job) -> int | None:
    """Return when the next attempt of a job begins, if it would start at once then; None: who knows."""
    spec = job.spec
    found = _feasibility(core, job.user, spec, gang_of(spec, core.settings.storage_request_gb))
    return job.not_before if found.fits is Fits.NOW else None


def seconds_until(time: int, now: int) -> int:
    """Return in how many seconds something is expected that has not happened yet: 1 at least."""
    return max(1, -(-(time - now) // 1000))


def latest_end(core: Core, job: Job) -> int | None:
    """Return when its time limit ends a job that runs (ms since the epoch); None: nothing is known to."""
    attempt, seconds = job.attempt, core.run_seconds(job.spec)
    if attempt is None or attempt.launched is None or attempt.verdict is not None or seconds is None:
        return None
    return attempt.launched + 1000 * seconds


def _ended_by(core: Core, holding: JobHolding, now: int) -> int:
    """Return when a job that is being stopped, or stopped now, will have ended at the latest (ms)."""
    if holding.ending and holding.expected_end is not None:
        return holding.expected_end
    return now + core.grace_ms(core.jobs[holding.job_id].spec)


def _estimated_start(
    core: Core, user: str, cluster: str, shape: Shape, sort_key: SortKey, now: int, job_id: str | None = None
) -> int | None:
    def run_ms(other: str) -> int | None:
        return core.likely_run_ms(core.jobs[other].user, core.jobs[other].spec)

    def end(holding: JobHolding) -> int | None:
        job, latest = core.jobs[holding.job_id], holding.expected_end
        if holding.ending:
            return latest
        # (who looks at what has failed takes the time that it takes)
        held = job.sub_state is SubState.DEBUG_HELD
        run = None if held else core.likely_run_ms(job.user, job.spec, now - holding.since)
        known = [] if latest is None else [latest]
        if run is not None:
            known.append(holding.since + run)
        if holding.virtual_cluster == cluster and job.attempt is not None:
            # (by those who come before it, or by it)
            stopped = core.services.stopped_for(job, job.attempt, sort_key, now)
            known += [] if stopped is None else [stopped + core.grace_ms(job.spec)]
        return min(known, default=None)

    ahead = those_ahead(core.state, cluster, sort_key)
    return estimate_start(core.state, user, cluster, shape, ahead, now, run_ms, job_id, end)


def _starts_now_in(
    core: Core, user: str, spec: JobSpec, gang: Sequence[Demand], others: Iterable[str]
) -> list[str]:
    """Find in which of some virtual clusters a job would start now, without being in danger of a stop."""
    found = []
    for name in islice((name for name in others if name != spec.virtual_cluster), _MOST_OTHERS):
        there = replace(spec, virtual_cluster=name)
        answer = _feasibility(core, user, there, gang)
        starts = answer.fits is Fits.NOW and not answer.borrows
        if starts and not limit_errors(core, there):
            found.append(name)
    return found


def limit_errors(core: Core, spec: JobSpec) -> list[SpecError]:
    """Find what a valid job asks for that its virtual cluster, or the whole one, does not allow."""
    return [*_run_limit_errors(core, spec), *_grace_errors(core, spec)]


def _grace_errors(core: Core, spec: JobSpec) -> list[SpecError]:
    asked, most = spec.termination_grace_seconds, core.settings.max_grace_seconds
    if asked is None or asked <= most:
        return []
    text = msg(
        "A task may take {limit} s at most to end (limits.terminationGraceSeconds of the cluster): ask for "
        "less than {asked}.",
        limit=most,
        asked=asked,
    )
    return [SpecError("$.extras.terminationGraceSeconds", text)]


def _run_limit_errors(core: Core, spec: JobSpec) -> list[SpecError]:
    cluster = core.state.quota_accounting.clusters.get(spec.virtual_cluster)
    asked, limit = spec.max_run_seconds, cluster.max_run_seconds if cluster is not None else None
    if asked is None or limit is None or asked <= limit:
        return []
    text = msg(
        "A job of virtual cluster {vc} may run for {limit} s at most: ask for less than {asked}.",
        vc=spec.virtual_cluster,
        limit=limit,
        asked=asked,
    )
    return [SpecError("$.extras.maxRunSeconds", text)]


def queued_jobs(
    core: Core, virtual_cluster: str, after: KeyedJob | None = None, limit: int | None = None
) -> list[QueuedJob]:
    """List the waiting jobs of a virtual cluster, first come first: `limit` (None: all) after one."""
    first, ids = core.queue.after(virtual_cluster, after, limit)
    return [_queued(core, job_id, number) for number, job_id in enumerate(ids, first)]


def queued_job(core: Core, keyed: KeyedJob) -> QueuedJob | None:
    """Return a waiting job; None where it does not wait any more, or its sort key is another."""
    job_id = keyed[1]
    if job_id not in core.queue or core.queue.sort_key(job_id) != keyed[0]:
        return None
    return _queued(core, job_id, core.queue.queue_position(job_id))


def keyed_jobs(core: Core, jobs: Iterable[Job], virtual_cluster: str) -> list[KeyedJob]:
    """Return where jobs stand in the queue of a virtual cluster, those that do."""
    queue = core.queue
    return [
        (queue.sort_key(job.id), job.id)
        for job in jobs
        if job.spec.virtual_cluster == virtual_cluster and job.id in queue
    ]


def _queued(core: Core, job_id: str, queue_position: int) -> QueuedJob:
    queue = core.queue
    keyed = (queue.sort_key(job_id), job_id)
    reserved = job_id in core.state.reservations
    return QueuedJob(core.jobs[job_id], queue_position, keyed, queue.overtaken(job_id), reserved)


def waiting_reason(core: Core, job: Job, now: int) -> Message | None:
    """Return why a job waits, or for what its end does; None where it runs or has ended.

    `now` in ms since the epoch.
    """
    job = core.jobs.get(job.id, job)  # the core knows more than the store
    core.state.now = max(core.state.now, now)
    if job.state is not State.WAITING and job.sub_state is not SubState.ENDING:
        return None
    reason = _waits_for(core, job, now)
    if job.last_failure is None:
        return reason
    return msg("{reason} The last attempt failed: {failure}", reason=reason, failure=job.last_failure)


def never_fits_now(core: Core, job: Job) -> bool:
    """Return whether a job waits that could not start on the nodes that are ready if nothing ran there."""
    return job.id in core.queue and obstacle(core.state, job.id).fits is Fits.NEVER


def _waits_for(core: Core, job: Job, now: int) -> Message:
    if job.sub_state is SubState.ENDING:
        return _ends_when(job, now)
    if job.sub_state is SubState.RETRY_WAIT and job.not_before is not None:
        seconds = max(0, job.not_before - now) / 1000
        return msg("The next attempt begins in {seconds:.0f} s.", seconds=seconds)
    if job.sub_state is SubState.DEPENDENCY_WAIT:
        return waits_for(core.dependencies.of(job.id))
    if job.id not in core.queue:
        if job.progress is not None:
            return msg("Has its resources; {progress}.", progress=job.progress)
        return msg("Has its resources; its tasks are being started.")
    usage, sharer = core.state.usage, (job.spec.virtual_cluster, job.user)
    if usage.shares(job.spec.virtual_cluster):
        return msg(
            "Waiting in virtual cluster {vc}, place {place} in the queue, where who has used less comes "
            "first ({user}: {hours:.1f} GPU hours lately): {reason}",
            vc=job.spec.virtual_cluster,
            place=core.queue.queue_position(job.id),
            user=job.user,
            hours=usage.gpu_hours(sharer, now),
            reason=_lacks(core, job, now),
        )
    cluster = core.state.quota_accounting.clusters.get(job.spec.virtual_cluster)
    if cluster is not None and cluster.shortest_remaining is not None and job.policy_key is not None:
        return msg(
            "Waiting in virtual cluster {vc}, place {place} in the queue, where who needs least to its end "
            "comes first (about {hours:.1f} GPU hours): {reason}",
            vc=job.spec.virtual_cluster,
            place=core.queue.queue_position(job.id),
            hours=job.policy_key / GPU_HOUR,
            reason=_lacks(core, job, now),
        )
    if cluster is not None and cluster.least_attained is not None and job.policy_key is not None:
        return msg(
            "Waiting in virtual cluster {vc}, place {place} in the queue, where who has had less comes first "
            "(level {level} of {levels}: {hours:.1f} GPU hours so far): {reason}",
            vc=job.spec.virtual_cluster,
            place=core.queue.queue_position(job.id),
            level=level_of(job.policy_key) + 1,
            levels=len(cluster.least_attained.gpu_hours) + 1,
            hours=job.attained / GPU_HOUR,
            reason=_lacks(core, job, now),
        )
    return msg(
        "Waiting in virtual cluster {vc}, place {place} in the queue: {reason}",
        vc=job.spec.virtual_cluster,
        place=core.queue.queue_position(job.id),
        reason=_lacks(core, job, now),
    )


def _ends_when(job: Job, now: int) -> Message:
    """Say that tasks are being stopped, and how much time they have left."""
    until = job.ending_until
    if until is None or until <= now:
        if job.is_decided:
            return msg("It is ending: its last tasks are being stopped.")
        return msg("The tasks of the last attempt are being stopped.")
    left = _soon_in_words(until - now)
    if job.is_decided:
        return msg("It is ending: its last tasks are being stopped, and killed in {time}.", time=left)
    return msg("The tasks of the last attempt are being stopped, and killed in {time}.", time=left)


def _soon_in_words(ms: int) -> Message:
    """Return a span of time, of which the last seconds count."""
    seconds = max(1, -(-ms // 1000))
    return msg("{seconds} s", seconds=seconds) if seconds < 60 else _in_words(ms)


def _in_words(ms: int) -> Message:
    """Return a span of time as people say it, rounded up."""
    minutes = max(1, -(-ms // 60_000))
    if minutes <= 120:
        return msg("{minutes} min", minutes=minutes)
    # (nobody thinks of two days in minutes)
    return msg("{hours} h", hours=-(-minutes // 60))


def _lacks(core: Core, job: Job, now: int) -> Message:
    """Return what is missing, and what would free it."""
    found = obstacle(core.state, job.id)
    reason = found.reason or msg("it is its turn.")
    if found.fits is Fits.NEVER:
        return reason
    ends = core.state.awaits(job.id)
    stopped_by = [holding.expected_end or now for holding in ends or () if holding.ending]
    if ends and len(stopped_by) == len(ends):
        return _after_those_stopped(
            reason, len(ends), max(stopped_by) - now, reserved=job.id in core.state.reservations
        )
    if job.id in core.state.reservations:
        return counted(
            "{reason} It is next: what becomes free is kept for it, until {count} more job has ended.",
            "{reason} It is next: what becomes free is kept for it, until {count} more jobs have ended.",
            reason=reason,
            count=len(ends or ()),
        )
    if not ends:
        return reason
    values = {"reason": reason, "ends": len(ends), "count": len(core.state.holdings)}
    latest = [holding.expected_end for holding in ends if holding.expected_end is not None]
    if len(latest) < len(ends):
        return counted(
            "{reason} It fits after the end of the job that runs.",
            "{reason} It fits after the end of {ends} of {count} running jobs.",
            **values,
        )
    return counted(
        "{reason} It fits after the end of the job that runs, in {time} at the latest.",
        "{reason} It fits after the end of {ends} of {count} running jobs, in {time} at the latest.",
        **values,
        time=_in_words(max(latest) - now),
    )


def _after_those_stopped(reason: Message, count: int, left_ms: int, *, reserved: bool) -> Message:
    """Say that a job waits for the place of others that are being stopped, and until when."""
    values = {"reason": reason, "count": count, "time": _soon_in_words(left_ms)}
    if reserved:
        return counted(
            "{reason} It is next: what the job that is being stopped still holds is kept for it, and free in "
            "{time} at the latest.",
            "{reason} It is next: what {count} jobs that are being stopped still hold is kept for it, and "
            "free in {time} at the latest.",
            **values,
        )
    return counted(
        "{reason} It fits after the end of the job that is being stopped, in {time} at the latest.",
        "{reason} It fits after the end of {count} jobs that are being stopped, in {time} at the latest.",
        **values,
    )


def gpu_memory_mb(core: Core, ref: TaskRef) -> int | None:
    """Return how much memory the GPUs have that a task holds; None: it holds none, or that is not known."""
    job = core.jobs.get(ref.job_id)
    if job is None or job.attempt is None or job.attempt.number != ref.attempt:
        return None
    task = job.attempt.tasks[ref.role, ref.index]
    use = core.cluster.uses.get(task.assignment.node)
    if use is None or task.state.ended or not task.assignment.gpus:
        return None
    sizes = {gpu.index: gpu.memory_mb for gpu in use.node.gpus}
    held = [sizes.get(index) for index in task.assignment.gpus]
    known = [size for size in held if size is not None]
    return sum(known) if len(known) == len(held) else None


def gpu_holders(core: Core, gpu_type: str | None) -> Counter[tuple[str, str]]:
    """Count the GPUs of a type (None: any) that jobs hold, by user and virtual cluster."""
    held: Counter[tuple[str, str]] = Counter()
    types = {name: {gpu.index: gpu.type for gpu in use.node.gpus} for name, use in core.cluster.uses.items()}
    for job, task in _holding(core):
        known = types.get(task.assignment.node, {})
        held[job.user, job.spec.virtual_cluster] += sum(
            gpu_type in (None, known.get(gpu)) for gpu in task.assignment.gpus
        )
    return held


def node_uses(core: Core) -> list[NodeUse]:
    """List the nodes and what is taken of them."""
    holders: dict[str, dict[int, Job]] = defaultdict(dict)
    for job, task in _holding(core):
        for gpu in task.assignment.gpus:
            holders[task.assignment.node][gpu] = job
    with core.state.without_reservations():
        return [
            NodeUse(
                use.node,
                use.node.cpus - use.cpus,
                use.node.memory_mb - use.memory_mb,
                use.node.storage_gb - use.storage_gb,
                holders.get(use.node.name, {}),
            )
            for use in core.cluster.uses.values()
        ]


def virtual_cluster_uses(
    core: Core, clusters: Iterable[VirtualCluster], job_counts: Mapping[str, int]
) -> list[VirtualClusterUse]:
    """List the virtual clusters; `job_counts` are their jobs, ended ones too."""
    nodes = core.cluster.nodes
    total = (
        sum(node.memory_mb for node in nodes),
        sum(node.cpus for node in nodes),
        sum(len(node.gpus) for node in nodes),
    )
    memory, cpus, gpus = Counter[str](), Counter[str](), Counter[str]()
    active: dict[str, set[str]] = defaultdict(set)
    for job, task in _holding(core):
        name, demand = job.spec.virtual_cluster, core.demand(job, task)
        active[name].add(job.id)
        memory[name] += demand.memory_mb
        cpus[name] += demand.cpus
        gpus[name] += demand.gpus
    found = []
    for cluster in clusters:
        name = cluster.name
        used = (memory[name], cpus[name], gpus[name])
        shares = [100 * part / whole for part, whole in zip(used, total, strict=True) if whole]
        found.append(
            VirtualClusterUse(
                name,
                cluster.capacity,
                cluster.max_capacity,
                max(shares, default=0.0),
                len(active[name]),
                core.queue.waiting(name),
                job_counts.get(name, 0),
                used,
                total,
                tuple(node.name for node in nodes),
                cluster.stopped,
                cluster.shorter_first,
                cluster.fair_share_hours,
                () if cluster.least_attained is None else cluster.least_attained.gpu_hours,
                cluster.shortest_remaining is not None,
                cluster.spreads,
            )
        )
    return found


def _holding(core: Core) -> Iterable[tuple[Job, Task]]:
    """Return the tasks that hold resources."""
    for job in core.jobs.values():
        for task in job.attempt.tasks.values() if job.attempt else ():
            if not task.state.ended:
                yield job, task
