"""What JupyterLab's front end reads of answers, as JSON Schema: its types and its checks are made of that."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from pai_labextension.models import (
    CodePlan,
    CodeServerInfo,
    ConnectCheck,
    ConnectInfo,
    JobEditorInfo,
    KernelStates,
    MemoryInfo,
    Refusal,
    RunPlan,
    SubmitLine,
    TerminalInfo,
)
from pai_scheduler.api.openapi import schemas_of
from pai_scheduler.rest.cluster import ClusterUsage, MaintenanceInfo, NodeInfo, VirtualClusterInfo
from pai_scheduler.rest.models import (
    AttemptInfo,
    JobDetail,
    JobEvent,
    JobSummary,
    PublicKeyInfo,
    QueueEntry,
    TaskMetrics,
    UserInfo,
    Validation,
)
from pai_scheduler.rest.schedules import (
    ScheduleInfo,
    StartedRun,
)
from pai_scheduler.rest.sessions import SessionInfo, SessionRow
from pai_scheduler.rest.webhdfs import ListingAnswer, PathAnswer, StatusAnswer, SummaryAnswer

#: What it calls an answer that is no object of its own.
_NAMED: Mapping[str, Any] = {
    "Jobs": list[JobSummary],
    "Queues": dict[str, list[QueueEntry]],
    "Nodes": list[NodeInfo],
    "VirtualClusters": dict[str, VirtualClusterInfo],
    "PublicKeys": list[PublicKeyInfo],
    "Schedules": list[ScheduleInfo],
    "Terminals": list[TerminalInfo],
    "Attempts": list[AttemptInfo],
    "JobEvents": list[JobEvent],
    "Maintenance": list[MaintenanceInfo],
    "SessionRows": list[SessionRow],
}
_READ: Collection[Any] = (
    *(Refusal, UserInfo, JobDetail, ConnectInfo, ConnectCheck, CodeServerInfo, CodePlan, SubmitLine),
    *(ClusterUsage, TaskMetrics, SessionInfo, KernelStates, MemoryInfo, RunPlan),
    *(JobEditorInfo, Validation, StartedRun),
    *(StatusAnswer, ListingAnswer, SummaryAnswer, PathAnswer),
)
#: Of those of which little is read, what is: the less is asked for, the fewer answers are refused.
_PARTS: Mapping[str, Collection[str]] = {
    "ContentSummary": ("fileCount", "directoryCount", "length"),
    "FileStatus": ("pathSuffix", "type", "length", "modificationTime"),
    "AttemptInfo": (
        *("attempt", "state", "createdTime", "launchedTime", "completedTime"),
        *("exitCode", "exitSpec", "trigger", "reason", "taskRoles"),
    ),
    "ExitMessages": ("container", "runtime"),
    "ExitSpec": ("code", "phrase"),
    "JobEvent": ("id", "time", "type", "attempt", "taskRole", "taskIndex", "message"),
    "JobStatus": (
        *("username", "virtualCluster", "state", "subState", "createdTime", "completedTime"),
        *("appLaunchedTime", "appExitCode", "appExitSpec", "appExitDiagnostics", "appExitMessages"),
        *(
            "waitingReason",
            "neverFits",
            "priority",
            "queuePlace",
            "startsWithin",
            "latestEndTime",
            "endingUntil",
        ),
        *("dependencies", "dependents", "dependentCount"),
    ),
    "RemoteException": ("exception", "message"),
    "SessionInfo": ("now", "warned", "endTime", "why", "mayKeep", "messages"),
    "SessionRow": (
        *("user", "server", "job", "gpus", "now", "startedTime", "cause", "endTime", "idleSince", "use"),
        *("why", "warned"),
    ),
    "TaskMetrics": ("interval", "gpuMemoryTotalMB", "series"),
    "TaskRoleStatus": ("taskStatuses",),
    "TaskStatus": (
        *("taskIndex", "taskState", "containerIp", "containerPorts", "containerGpus"),
        *("containerExitCode", "node"),
    ),
    "TerminalInfo": ("name",),
    "Validation": ("errors", "warnings", "fits", "reason", "borrows", "startsWithin", "startsNowIn"),
    "VirtualClusterInfo": (
        *("capacity", "maxCapacity", "numActiveJobs", "numPendingJobs"),
        *("resourcesUsed", "resourcesTotal", "status", "shorterFirst", "fairShareHours", "usedLately"),
        *("levelGpuHours", "shortestRemaining", "placement"),
    ),
    "VirtualClusterResources": ("GPUs", "vCores"),
}


def answers() -> str:
    """Return the schemas, by their names."""
    schemas, named = schemas_of([*_NAMED.values(), *_READ])
    found = {**dict(zip(_NAMED, schemas, strict=False)), **named}
    for name, parts in _PARTS.items():
        properties = found[name]["properties"]
        found[name]["properties"] = {part: properties[part] for part in properties if part in parts}
        required = found[name]["required"]
        found[name]["required"] = [part for part in found[name]["properties"] if part in required]
    # what only a part refers to that is not read goes, too
    wanted = [*_NAMED, *(one.__name__ for one in _READ)]
    for name in wanted:
        referred = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(found[name]))
        wanted += [other for other in dict.fromkeys(referred) if other not in wanted]
    return json.dumps({name: found[name] for name in wanted}, ensure_ascii=False, indent=2) + "\n"
