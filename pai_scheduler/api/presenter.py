"""The scheduler's objects as the JSON of the REST API (job-contract.md, section 4), for one reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict, cast
from urllib.parse import quote

from pai_scheduler.cluster.fair_share import UserShare
from pai_scheduler.cluster.feasibility import Available
from pai_scheduler.cluster.node import Closing, DiskSpace, Maintenance
from pai_scheduler.cluster.resources import ANY_GPU, CPUS, MEMORY, STORAGE, Amounts, is_gpu
from pai_scheduler.core.model import Attempt, Job, RetryCounts, State, Task
from pai_scheduler.core.queries import Forecast, Limits, NodeUse, QueuedJob, VirtualClusterUse
from pai_scheduler.i18n import Message
from pai_scheduler.job.exit_codes import STOPPED_BY_USER, exit_table
from pai_scheduler.job.validation import SpecError
from pai_scheduler.principal import Principal
from pai_scheduler.rest import cluster, models
from pai_scheduler.rest.address import job_page
from pai_scheduler.store.records import JobLinks, LinkedJob, StoredJobEvent


class _Planned(TypedDict, total=False):
    maintenance: list[cluster.MaintenanceInfo]


@dataclass(frozen=True, slots=True)
class Outlook:
    """Current forecast for a job.

    `starts_within`: seconds, an estimate; `latest_end`: ms since the epoch; None: not known, or not so.
    """

    waiting_reason: Message | None = None
    queue_position: int | None = None
    starts_within: int | None = None
    latest_end: int | None = None
    links: JobLinks = field(default_factory=JobLinks)
    never_fits: bool = False


@dataclass(frozen=True, slots=True)
class Presenter:
    """Writes for one reader: in `locale`, with links that begin with `api_url` (`http://…/api/v1`).

    `console_url`: where jobs have their pages, a slash at its end; empty: there are none.
    """

    locale: str
    api_url: str
    console_url: str = ""

    def summary(self, job: Job, queue_position: int | None, starts_within: int | None) -> models.JobSummary:
        """Return a job as an item of the list. `starts_within`: seconds, an estimate; None: not known."""
        return {
            "name": job.name,
            "username": job.user,
            "state": _state(job.state),
            "subState": str(job.sub_state),
            "executionType": _execution_type(job),
            "retries": job.retries.total,
            "retryDetails": _retry_details(job.retries),
            "createdTime": job.created,
            "completedTime": job.completed,
            "appExitCode": job.verdict.exit_code if job.verdict else None,
            "virtualCluster": job.spec.virtual_cluster,
            "totalGpuNumber": job.spec.total_gpus,
            "totalTaskNumber": job.spec.total_tasks,
            "totalTaskRoleNumber": len(job.spec.task_roles),
            "priority": _priority(job),
            "queuePlace": queue_position,
            "startsWithin": starts_within,
        }

    def detail(self, job: Job, outlook: Outlook) -> models.JobDetail:
        """Return a job in full, with its last attempt."""
        detail: models.JobDetail = {
            "name": job.name,
            "jobStatus": self._status(job, outlook),
            "taskRoles": self._task_roles(job, job.attempt),
        }
        if self.console_url:
            detail["consoleUrl"] = job_page(self.console_url, job.user, job.name)
        return detail

    def attempt(self, job: Job, attempt: Attempt, *, tasks: bool = True) -> models.AttemptInfo:
        """Return one attempt of a job; `tasks`: with its tasks."""
        verdict = attempt.verdict
        return {
            "attempt": attempt.number,
            "state": _state(attempt.state),
            "createdTime": attempt.created,
            "launchedTime": attempt.launched,
            "completedTime": attempt.completed,
            "exitCode": verdict.exit_code if verdict else None,
            "exitSpec": _exit_spec(verdict.exit_row) if verdict else None,
            "trigger": _trigger(verdict.trigger) if verdict else None,
            "reason": self._words(verdict.reason) if verdict else "",
            "taskRoles": self._task_roles(job, attempt) if tasks else {},
        }

    def event(self, stored: StoredJobEvent, *, with_job: bool) -> models.JobEvent:
        """Return a job event; `with_job`: say whose it is."""
        entry = stored.entry
        event: models.JobEvent = {
            "id": stored.id,
            "time": entry.time,
            "type": entry.type,
            "attempt": entry.attempt,
            "taskRole": entry.role,
            "taskIndex": entry.index,
            "message": self._words(entry.message),
            "data": dict(entry.data),
        }
        if with_job:
            event["user"], event["job"] = stored.user, stored.job
        return event

    def errors(self, errors: Iterable[SpecError]) -> list[models.FieldError]:
        """Return what is wrong in a job, place by place."""
        return [{"path": error.path, "message": self._words(error.message)} for error in errors]

    def validation(self, forecast: Forecast) -> models.Validation:
        """Return what submitting a job would do."""
        return {
            "errors": self.errors(forecast.errors),
            "warnings": self.errors(forecast.warnings),
            "fits": cast(Literal["now", "later", "never"], forecast.fits),
            "reason": self._words(forecast.reason),
            "borrows": forecast.borrows,
            "limits": None if forecast.limits is None else self._limits(forecast.limits),
            "startsWithin": forecast.starts_within,
            "startsNowIn": list(forecast.starts_now_in),
        }

    def _limits(self, limits: Limits) -> models.JobLimits:
        return {
            "priority": limits.priority,
            "queuePlace": limits.queue_position,
            "maxRunSeconds": limits.run_seconds,
            "gpusPerUser": limits.gpus_per_user,
            "gpusHeld": limits.gpus_held,
        }

    def available(self, found: Available) -> cluster.AvailableAmounts:
        """Return what a user's next job could have in a virtual cluster."""
        return {
            "free": _amounts(found.free),
            "most": _amounts(found.most),
            "freeOnOne": _amounts(found.free_on_one),
            "mostOnOne": _amounts(found.most_on_one),
        }

    def node(
        self,
        use: NodeUse,
        disk: DiskSpace | None,
        principal: Principal,
        shows_holder: Callable[[Job], bool],
    ) -> cluster.NodeInfo:
        """Return a machine; which job has a GPU is told to its owner and to admins only."""
        node = use.node
        jobs = {
            index: f"{job.user}~{job.name}" if principal.may_act_for(job.user) else "busy"
            for index, job in use.gpu_jobs.items()
        }
        users = {index: job.user for index, job in use.gpu_jobs.items() if shows_holder(job)}
        used_gpus = Counter(gpu.type for gpu in node.gpus if gpu.index in jobs)
        return {
            "name": node.name,
            "state": node.state.value,
            "closed": None if node.closing is None else _closing(node.closing),
            "total": _amount(node.cpus, node.memory_mb, node.storage_gb, dict(node.gpu_counts)),
            "used": _amount(
                use.cpus, use.memory_mb, use.storage_gb, {kind: used_gpus[kind] for kind in node.gpu_counts}
            ),
            "gpus": [
                {
                    "index": gpu.index,
                    "type": gpu.type,
                    "uuid": gpu.uuid,
                    "simulated": gpu.simulated,
                    "memoryMB": gpu.memory_mb,
                    "job": jobs.get(gpu.index),
                    "user": users.get(gpu.index),
                }
                for gpu in node.gpus
            ],
            "rack": node.rack,
            "disk": None if disk is None else {"freeMB": disk.free_mb, "totalMB": disk.total_mb},
            **_planned(node.maintenance),
        }

    def virtual_cluster(
        self, use: VirtualClusterUse, used_lately: UserShare | None
    ) -> cluster.VirtualClusterInfo:
        """Return a virtual cluster, what its jobs hold, and what who asks has used of it."""
        found: cluster.VirtualClusterInfo = {
            "capacity": use.capacity,
            "maxCapacity": use.max_capacity,
            "usedCapacity": use.used_capacity,
            "numActiveJobs": use.active_jobs,
            "numJobs": use.total_jobs,
            "numPendingJobs": use.pending_jobs,
            "resourcesUsed": _resources(use.used),
            "resourcesTotal": _resources(use.total),
            "dedicated": False,
            "nodeList": list(use.nodes),
            "status": "STOPPED" if use.stopped else "RUNNING",
            "shorterFirst": use.shorter_first,
            "fairShareHours": use.fair_share_hours,
            "levelGpuHours": list(use.level_gpu_hours),
            "shortestRemaining": use.shortest_remaining,
            "placement": "spread" if use.spreads else "pack",
        }
        if used_lately is not None:
            found["usedLately"] = {
                "gpuHours": round(used_lately.gpu_hours, 2),
                "percent": round(100 * used_lately.part, 1),
            }
        return found

    def queue_entry(
        self,
        queued: QueuedJob,
        principal: Principal,
        reason: Message | None,
        never_fits: bool,
        starts_within: int | None,
    ) -> models.QueueEntry:
        """Return a waiting job; which one it is, is told to its owner and to admins only."""
        job = queued.job
        return {
            "place": queued.queue_position,
            "priority": _priority(job),
            "user": job.user,
            "name": job.name if principal.admin or job.user == principal.name else None,
            "totalGpuNumber": job.spec.total_gpus,
            "totalTaskNumber": job.spec.total_tasks,
            "createdTime": job.created,
            "waitingReason": self._words(reason) or None,
            "neverFits": never_fits,
            "startsWithin": starts_within,
            "overtaken": queued.overtaken,
            "reserved": queued.reserved,
        }

    def user(self, principal: Principal, virtual_clusters: Iterable[str]) -> models.UserInfo:
        """Return a user as OpenPAI described one, with the virtual clusters that are open to them."""
        return {
            "username": principal.name,
            "email": "",
            "grouplist": list(principal.groups),
            "extension": {},
            "admin": principal.admin,
            "virtualCluster": list(virtual_clusters),
        }

    def _status(self, job: Job, outlook: Outlook) -> models.JobStatus:
        attempt, verdict = job.attempt, job.verdict
        reason = self._words(verdict.reason) if verdict else ""
        role, index = verdict.trigger if verdict and verdict.trigger else ("", None)
        culprit = attempt.tasks.get((role, index)) if attempt and index is not None else None
        spec = _exit_spec(verdict.exit_row) if verdict else None
        return {
            "username": job.user,
            "virtualCluster": job.spec.virtual_cluster,
            "state": _state(job.state),
            "subState": str(job.sub_state),
            "executionType": _execution_type(job),
            "retries": job.retries.total,
            "retryDetails": _retry_details(job.retries),
            "createdTime": job.created,
            "completedTime": job.completed,
            "appId": job.id,
            "appProgress": _progress(job),
            "appTrackingUrl": self._job_url(job),
            "appLaunchedTime": attempt.launched if attempt else None,
            "appCompletedTime": attempt.completed if attempt else None,
            "appExitCode": verdict.exit_code if verdict else None,
            "appExitSpec": spec,
            "appExitDiagnostics": reason,
            "appExitMessages": {
                "container": self._words(culprit.reason) if culprit and culprit.reason else None,
                "runtime": None,
                "launcher": reason or None,
            },
            "appExitTriggerMessage": reason if culprit else "",
            "appExitTriggerTaskRoleName": role,
            "appExitTriggerTaskIndex": index,
            "appExitType": spec["type"] if spec else "",
            "waitingReason": self._words(outlook.waiting_reason),
            "neverFits": outlook.never_fits,
            "priority": _priority(job),
            "queuePlace": outlook.queue_position,
            "startsWithin": outlook.starts_within,
            "latestEndTime": outlook.latest_end,
            "dependencies": [_link(link) for link in outlook.links.dependencies],
            "dependents": [_link(link) for link in outlook.links.dependents],
            "dependentCount": outlook.links.dependent_count,
            "endingUntil": job.ending_until,
        }

    def _task_roles(self, job: Job, attempt: Attempt | None) -> dict[str, models.TaskRoleStatus]:
        return {
            role.name: {
                "taskRoleStatus": {"name": role.name},
                "taskStatuses": [
                    self._task(
                        job,
                        role.name,
                        index,
                        attempt.tasks.get((role.name, index)) if attempt else None,
                    )
                    for index in range(role.task_number)
                ],
            }
            for role in job.spec.task_roles
        }

    def _task(self, job: Job, role: str, index: int, task: Task | None) -> models.TaskStatus:
        attempt = f"?attempt={task.ref.attempt}" if task else ""
        log = f"{self._job_url(job)}/taskRoles/{quote(role, safe='')}/tasks/{index}/logs/all{attempt}"
        if task is None:
            # no attempt yet, or stopped before the first one
            status: models.TaskStatus = {
                "taskIndex": index,
                "taskState": _state(job.state),
                "containerId": "",
                "containerIp": "",
                "containerPorts": {},
                "containerGpus": 0,
                "containerLog": log,
                "containerExitCode": None,
                "node": "",
            }
        else:
            status = {
                "taskIndex": index,
                "taskState": _state(task.state),
                "containerId": task.shown_container_id,
                "containerIp": task.address,
                "containerPorts": {
                    label: ",".join(map(str, ports)) for label, ports in task.assignment.ports.items()
                },
                "containerGpus": sum(1 << gpu for gpu in task.assignment.gpus),
                "containerLog": log,
                "containerExitCode": task.exit_code,
                "node": task.assignment.node,
            }
        return status

    def _job_url(self, job: Job) -> str:
        return f"{self.api_url}/user/{quote(job.user, safe='')}/jobs/{quote(job.name, safe='')}"

    def _words(self, message: Message | None) -> str:
        return message.in_locale(self.locale) if message is not None else ""


def _state(state: State) -> models.JobState:
    return cast(models.JobState, str(state))


def _link(link: LinkedJob) -> models.JobLink:
    return {
        "job": link.name,
        "state": None if link.state is None else _state(link.state),
        "on": cast(models.DependencyCondition, str(link.on)),
        "holds": link.holds,
    }


def _execution_type(job: Job) -> models.ExecutionType:
    stopped = job.verdict is not None and job.verdict.exit_row == STOPPED_BY_USER
    return "STOP" if stopped else "START"


def _priority(job: Job) -> int:
    return job.present_priority


def _retry_details(retries: RetryCounts) -> models.RetryDetails:
    return {"user": retries.user, "platform": retries.platform, "resource": retries.resource}


def _exit_spec(row: int) -> models.ExitSpec | None:
    spec = exit_table().get(row)
    if spec is None:
        return None
    return {
        "code": spec.code,
        "phrase": spec.phrase,
        "issuer": spec.issuer,
        "causer": spec.causer,
        "type": spec.type,
        "stage": spec.stage,
        "behavior": spec.behavior.value,
        "reaction": spec.reaction,
    }


def _trigger(trigger: tuple[str, int] | None) -> models.Trigger | None:
    return {"taskRole": trigger[0], "taskIndex": trigger[1]} if trigger else None


def _progress(job: Job) -> float:
    """Return the share of the last attempt's tasks that are over, 0 to 1."""
    if job.state is State.SUCCEEDED:
        return 1.0
    ended = sum(task.state.ended for task in job.attempt.tasks.values()) if job.attempt else 0
    return round(ended / job.spec.total_tasks, 4)


def _amount(cpus: int, memory_mb: int, storage_gb: int, gpus: dict[str, int]) -> cluster.Amount:
    return {"cpus": cpus, "memoryMB": memory_mb, "storageGB": storage_gb, "gpus": gpus}


def _amounts(amounts: Amounts) -> cluster.Amount:
    gpus = {key.removeprefix(ANY_GPU): count for key, count in amounts.items() if is_gpu(key)}
    return _amount(amounts.get(CPUS, 0), amounts.get(MEMORY, 0), amounts.get(STORAGE, 0), gpus)


def _resources(amounts: tuple[int, int, int]) -> cluster.VirtualClusterResources:
    memory, cpus, gpus = amounts
    return {"memory": memory, "vCores": cpus, "GPUs": gpus}


def maintenance(window: Maintenance) -> cluster.MaintenanceInfo:
    """Return what is planned by a name."""
    return {
        "name": window.name,
        "nodes": list(window.nodes),
        "begin": window.begin,
        "end": window.end,
        "reason": window.reason,
        "by": window.by,
    }


def _planned(windows: Sequence[Maintenance]) -> _Planned:
    return {"maintenance": list(map(maintenance, windows))} if windows else {}


def _closing(closing: Closing) -> cluster.NodeClosing:
    found: cluster.NodeClosing = {"by": closing.by, "reason": closing.reason, "since": closing.since}
    if closing.until is not None:
        found["until"] = closing.until
    return found
