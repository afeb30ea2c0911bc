"""The JSON of REST API version 1 as types: the API writes them, the client reads them.

Names and meanings: job-contract.md, section 4. Times are ms since the epoch.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

#: Where a scheduler of this machine is, unless it was told otherwise.
DEFAULT_URL = "http://127.0.0.1:9186"

JobState = Literal["WAITING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"]


class FieldError(TypedDict):
    """One thing wrong in a job: where (`$.taskRoles[0].name`) and a sentence about it."""

    path: str
    message: str


class RetryDetails(TypedDict):
    """How often a job was tried again, by who caused it."""

    user: int
    platform: int
    resource: int


class JobSummary(TypedDict):
    """An item of the job list. `queuePlace`: from 1, within its virtual cluster; None: it is not in line."""

    name: str
    username: str
    state: JobState
    subState: str
    executionType: str
    retries: int
    retryDetails: RetryDetails
    createdTime: int
    completedTime: int | None
    appExitCode: int | None
    virtualCluster: str
    totalGpuNumber: int
    totalTaskNumber: int
    totalTaskRoleNumber: int
    priority: int
    queuePlace: int | None


class ExitSpec(TypedDict):
    """A row of the exit table."""

    code: int
    phrase: str
    issuer: str
    causer: str
    type: str
    stage: str
    behavior: str
    reaction: str


class JobStatus(TypedDict):
    """The state of a job; `waitingReason` is a sentence for a person, empty when the job does not wait."""

    username: str
    virtualCluster: str
    state: JobState
    subState: str
    executionType: str
    retries: int
    retryDetails: RetryDetails
    createdTime: int
    completedTime: int | None
    appId: str
    appProgress: float
    appTrackingUrl: str
    appLaunchedTime: int | None
    appCompletedTime: int | None
    appExitCode: int | None
    appExitSpec: ExitSpec | None
    appExitDiagnostics: str
    appExitMessages: dict[str, str | None]
    appExitTriggerMessage: str
    appExitTriggerTaskRoleName: str
    appExitTriggerTaskIndex: int | None
    appExitType: str
    waitingReason: str
    priority: int
    queuePlace: int | None


class TaskStatus(TypedDict):
    """The state of a task. `containerGpus` is a bit map of GPU indices; `node` only in attempts."""

    taskIndex: int
    taskState: JobState
    containerId: str
    containerIp: str
    containerPorts: dict[str, str]
    containerGpus: int
    containerLog: str
    containerExitCode: int | None
    node: NotRequired[str]


class TaskRoleStatus(TypedDict):
    """The tasks of a role."""

    taskRoleStatus: dict[Literal["name"], str]
    taskStatuses: list[TaskStatus]


class JobDetail(TypedDict):
    """A job in full."""

    name: str
    jobStatus: JobStatus
    taskRoles: dict[str, TaskRoleStatus]


class Trigger(TypedDict):
    """The task whose exit decided an attempt."""

    taskRole: str
    taskIndex: int


class AttemptInfo(TypedDict):
    """One attempt of a job."""

    attempt: int
    state: JobState
    createdTime: int
    launchedTime: int | None
    completedTime: int | None
    exitCode: int | None
    exitSpec: ExitSpec | None
    trigger: Trigger | None
    reason: str
    taskRoles: dict[str, TaskRoleStatus]


class JobEvent(TypedDict):
    """An entry of a job's story; `user` and `job` only in `/events`."""

    id: int
    time: int
    type: str
    attempt: int | None
    taskRole: str | None
    taskIndex: int | None
    message: str
    data: dict[str, Any]
    user: NotRequired[str]
    job: NotRequired[str]


class TaskMetrics(TypedDict):
    """What a task has used: seconds between the newest points, and [ms since the epoch, value] per series.

    A series that is not known is empty: `gpuPercent` without a GPU, `netRxBytes` on the process engine.
    """

    interval: float
    series: dict[str, list[tuple[int, float]]]


class JobLimits(TypedDict):
    """What order and limits a job would have; `queuePlace` if it had to wait, None: no limit."""

    priority: int
    queuePlace: int
    maxRunSeconds: int | None
    gpusPerUser: int | None
    gpusHeld: int


class Validation(TypedDict):
    """What submitting a job would do: `fits` now, later, or never, and why; `limits` None: it is wrong."""

    errors: list[FieldError]
    fits: Literal["now", "later", "never"]
    reason: str
    borrows: bool
    limits: JobLimits | None


class Amount(TypedDict):
    """Resources of a node; GPUs by type."""

    cpus: int
    memoryMB: int
    storageGB: int
    gpus: dict[str, int]


class GpuInfo(TypedDict):
    """A GPU of a node; `job`: who has it (`user~job`; the bare word `busy` for another user's), or None."""

    index: int
    type: str
    uuid: str
    simulated: bool
    job: str | None


class NodeInfo(TypedDict):
    """A machine of the cluster."""

    name: str
    state: str
    total: Amount
    used: Amount
    gpus: list[GpuInfo]


class VirtualClusterResources(TypedDict):
    """Totals as OpenPAI named them; memory in MB."""

    memory: int
    vCores: int
    GPUs: int


class VirtualClusterInfo(TypedDict):
    """A virtual cluster; capacities in per cent of the cluster."""

    capacity: float
    maxCapacity: float
    usedCapacity: float
    numActiveJobs: int
    numJobs: int
    numPendingJobs: int
    resourcesUsed: VirtualClusterResources
    resourcesTotal: VirtualClusterResources
    dedicated: bool
    nodeList: list[str]
    status: Literal["RUNNING", "STOPPED"]


class QueueEntry(TypedDict):
    """A waiting job in the order of its virtual cluster; `name`: None where it is another user's business.

    `waitingReason` stands at the first ones of one's own. `overtaken`: how often a job behind it has started
    before it; `reserved`: what becomes free is kept for it.
    """

    place: int
    priority: int
    user: str
    name: str | None
    totalGpuNumber: int
    totalTaskNumber: int
    createdTime: int
    waitingReason: str | None
    overtaken: int
    reserved: bool


class SshGateway(TypedDict):
    """The SSH gateway. `host` None: the one at which the API was reached. `hostKey`: `ssh-ed25519 …`."""

    host: str | None
    port: int
    hostKey: str


class SshContainer(TypedDict):
    """How to reach one task: `ssh -p sshPort sshUser@sshIp`; `id` is the container's.

    `task`: `<role>-<index>`. `published`: the address is the task's own server, else the gateway. `off`: why
    there is no way in, None where there is one.
    """

    id: str
    task: str
    sshIp: str
    sshPort: str
    sshUser: str
    published: bool
    off: str | None


class SshKeyPair(TypedDict):
    """Where the key of a job is: in the storage, and behind a link that is good for some minutes."""

    folderPath: str
    publicKeyFileName: str
    privateKeyFileName: str
    privateKeyDirectDownloadLink: str


class SshInfo(TypedDict):
    """How to reach the running tasks of a job."""

    containers: list[SshContainer]
    keyPair: SshKeyPair
    gateway: SshGateway | None


class PublicKeyInfo(TypedDict):
    """A public key that a user registered: it opens every task of theirs."""

    fingerprint: str
    type: str
    comment: str
    addedTime: int


class ServiceInfo(TypedDict):
    """What answers; `engine` ("process", "docker") runs the tasks; `frontDoor`: the Hub's public address as
    tasks reach it, None: as browsers do. `ssh`: the gateway, None where there is none."""

    name: str
    version: str
    engine: NotRequired[str]
    frontDoor: NotRequired[str | None]
    ssh: NotRequired[SshGateway | None]


class UserInfo(TypedDict):
    """Who a token belongs to."""

    username: str
    email: str
    grouplist: list[str]
    extension: dict[str, Any]
    admin: bool
    virtualCluster: list[str]
