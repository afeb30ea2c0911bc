"""The queue after a restart, perhaps of a million jobs: those of a user that ask for the same in one go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pai_scheduler.cluster.resources import gang_of
from pai_scheduler.cluster.scheduler_state import SchedulerState
from pai_scheduler.cluster.sort_key import KeyedJob, SortKey
from pai_scheduler.job.spec import JobSpec

from .model import Job
from .states import SubState

#: Kinds of jobs that are gathered at once; where all jobs differ, gathering is of no use.
_MOST = 4096


@dataclass(slots=True)
class _Alike:
    """Jobs of one user that ask for the same; `spec` is that of the first."""

    spec: JobSpec
    run_ms: int | None
    shorter_first: bool
    #: of those whose priority nobody changed, where shorter ones do not come first
    priority: int
    jobs: list[KeyedJob] = field(default_factory=list)
    overtaken: dict[str, int] = field(default_factory=dict)


class Lineup:
    """Gathers jobs until `finish`. They are put in line by then: nothing is to be decided before it.

    `run_ms` gives for how long an attempt may run, `policy_key` the key of a job that was submitted then.
    """

    def __init__(
        self,
        state: SchedulerState,
        storage_request_gb: int,
        run_ms: Callable[[JobSpec], int | None],
        policy_key: Callable[[str, JobSpec, int], int | None],
    ) -> None:
        self._state, self._storage_gb = state, storage_request_gb
        self._run_ms, self._policy_key = run_ms, policy_key
        clusters = state.quota_accounting.clusters.values()
        self._shorter_first = {cluster.name for cluster in clusters if cluster.shorter_first}
        # (there a job has a timer besides)
        self._by_service = {cluster.name for cluster in clusters if cluster.service_order is not None}
        self._alike: dict[tuple[object, ...], _Alike] = {}

    def add(self, job: Job) -> bool:
        """Gather a job that waits for its first attempt, and for resources only; False: it is not such."""
        spec = job.spec
        if (
            job.attempt is not None
            or job.not_before is not None
            or job.sub_state is not SubState.QUEUED
            or spec.virtual_cluster in self._by_service
        ):
            return False
        # jobs that were submitted from the same document share these objects, which the first one keeps
        key = (job.user, spec.virtual_cluster, spec.gpu_type, id(spec.task_roles), id(spec.extras))
        alike = self._alike.get(key)
        if alike is None:
            if len(self._alike) >= _MOST:
                self.finish()
            shorter_first = spec.virtual_cluster in self._shorter_first
            alike = self._alike[key] = _Alike(spec, self._run_ms(spec), shorter_first, spec.priority)
        if alike.shorter_first or job.priority is not None:
            job.policy_key = self._policy_key(job.user, spec, job.created)
            sort_key = job.sort_key
        else:
            sort_key = SortKey.of(alike.priority, None, job.order)
        alike.jobs.append((sort_key, job.id))
        if job.overtaken:
            alike.overtaken[job.id] = job.overtaken
        return True

    def finish(self) -> None:
        """Put in line what was gathered."""
        for (user, *_), alike in self._alike.items():
            self._state.wait_many(
                str(user),
                alike.spec.virtual_cluster,
                gang_of(alike.spec, self._storage_gb),
                alike.jobs,
                preemptible=alike.spec.preemptible,
                overtaken=alike.overtaken,
                run_ms=alike.run_ms,
            )
        self._alike.clear()
