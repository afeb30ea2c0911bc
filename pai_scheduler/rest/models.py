"""The JSON of REST API version 1 as types: the API writes them, the client reads them, and the OpenAPI
document, the pages and the front end's types are made of them.

A field is declared here and nowhere else: its name, its type, its limits, what it means. What is said of all
fields alike: times are ms since the epoch (`Time`). More of their meaning: job-contract.md, section 4.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

#: The last place of a queue that can be asked for.
LAST_PLACE = 2**31 - 1
#: Characters of the reason with which a job is stopped.
LONGEST_REASON = 500


def about(text: str, **limits: Any) -> Meta:
    """Make what is said of a field: its meaning, and the limits that are part of its type (`ge=0`)."""
    return Meta(description=text, **limits)


Count = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(min_length=1)]
Time = Annotated[int, about("ms since the epoch")]
TimeOrNone = Annotated[int | None, about("ms since the epoch")]
PerCent = Annotated[float, Meta(ge=0, le=100)]
PerCentOrText = PerCent | Annotated[str, Meta(pattern="^(100([.]0{1,9})?|[0-9]{1,2}([.][0-9]{1,9})?)$")]
Priority = Annotated[int, Meta(ge=0, le=100)]
JobPriority = Annotated[Priority, about("Higher comes first among the waiting jobs of the virtual cluster")]
Place = Annotated[int, Meta(ge=1)]
QueuePlace = Annotated[
    Place | None, about("Place in the queue of the virtual cluster; null where the job is not in line")
]
StartsWithin = Annotated[
    Count | None,
    about("Seconds until it starts, by the time limits of the jobs before it; null: not known"),
]
ExecutionType = Literal["START", "STOP"]
JobState = Literal["WAITING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"]
#: a newer scheduler may have more, of which a client says nothing
SubState = Annotated[
    str,
    Meta(
        extra_json_schema={
            "enum": ["QUEUED", "STARTING", "RETRY_WAIT", "RUNNING", "ENDING", "DEBUG_HELD", "ENDED"]
        }
    ),
]

# ── refusals, and what is done ──────────────────────────────────────────────────────────────────────────────


class FieldError(TypedDict):
    """One thing that is wrong in a request."""

    path: Annotated[str, Meta(examples=["$.taskRoles[0].name"])]
    message: Text


class Error(TypedDict):
    """Why something was refused."""

    code: Annotated[str, about("For programs")]
    message: Annotated[Text, about("For people: what was wrong, where, and what to do")]
    errors: NotRequired[list[FieldError]]


class Done(TypedDict):
    """That something was done."""

    message: Annotated[str, Meta(examples=["update job mnist successfully"])]


# ── who asks, and what answers ──────────────────────────────────────────────────────────────────────────────


class SshGateway(TypedDict):
    """The SSH gateway."""

    host: Annotated[str | None, about("null: the host of this API")]
    port: Annotated[int, Meta(ge=1, le=65535)]
    hostKey: Annotated[str, about("The key by which it is known", examples=["ssh-ed25519 AAAA…"])]


class ServiceInfo(TypedDict):
    """What answers here."""

    name: str
    version: str
    engine: Annotated[str, about("What runs the tasks: process, docker")]
    frontDoor: Annotated[str | None, about("The Hub as tasks reach it; null: as browsers do")]
    ssh: Annotated[SshGateway | None, about("The SSH gateway; null: there is none")]


class ServiceHealth(TypedDict):
    """That a process answers."""

    status: Literal["ok"]


class LoginInfo(TypedDict):
    """How a program gets a token."""

    authn_type: Literal["basic"]
    loginURI: str
    loginURIMethod: Literal["post"]


class Login(TypedDict):
    """A name and a password, for a token."""

    username: Text
    password: Annotated[Text, about("One of the user's tokens")]
    expiration: NotRequired[Annotated[Any, about("Not read; a token expires when its issuer says")]]


class Token(TypedDict):
    """A token, and whose it is."""

    user: str
    token: str
    admin: bool
    hasGitHubPAT: Literal[False]


class UserInfo(TypedDict):
    """A user."""

    username: str
    email: str
    grouplist: list[str]
    extension: dict[str, Any]
    admin: bool
    virtualCluster: list[str]


class PublicKeyLine(TypedDict):
    """A public key to register."""

    key: Annotated[
        str,
        about("One line of OpenSSH's, from a file that ends in .pub", examples=["ssh-ed25519 AAAA… laptop"]),
    ]


class PublicKeyInfo(TypedDict):
    """A public key that a user registered: it opens every task of theirs."""

    fingerprint: Annotated[str, Meta(examples=["SHA256:…"])]
    type: Annotated[str, Meta(examples=["ssh-ed25519"])]
    comment: str
    addedTime: Time


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────


class RetryDetails(TypedDict):
    """How often a job was tried again, by who caused it."""

    user: Count
    platform: Count
    resource: Count


class JobSummary(TypedDict):
    """An item of the job list."""

    name: str
    username: str
    state: JobState
    subState: SubState
    executionType: ExecutionType
    retries: Count
    retryDetails: RetryDetails
    createdTime: Time
    completedTime: TimeOrNone
    appExitCode: int | None
    virtualCluster: str
    totalGpuNumber: Count
    totalTaskNumber: Annotated[int, Meta(ge=1)]
    totalTaskRoleNumber: Annotated[int, Meta(ge=1)]
    priority: JobPriority
    queuePlace: QueuePlace
    startsWithin: Annotated[
        Count | None,
        about(
            "Seconds until it starts, by the time limits of the jobs before it; null: not known, or not among"
            " the first ten that wait on the page"
        ),
    ]


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


class ExitMessages(TypedDict):
    """What is known of an end, by who says it."""

    container: str | None
    runtime: str | None
    launcher: str | None


class JobStatus(TypedDict):
    """The state of a job."""

    username: str
    virtualCluster: str
    state: JobState
    subState: SubState
    executionType: ExecutionType
    retries: Count
    retryDetails: RetryDetails
    createdTime: Time
    completedTime: TimeOrNone
    appId: str
    appProgress: Annotated[float, Meta(ge=0, le=1)]
    appTrackingUrl: str
    appLaunchedTime: TimeOrNone
    appCompletedTime: TimeOrNone
    appExitCode: Annotated[int | None, about("The real exit code of the user's command")]
    appExitSpec: ExitSpec | None
    appExitDiagnostics: str
    appExitMessages: ExitMessages
    appExitTriggerMessage: str
    appExitTriggerTaskRoleName: str
    appExitTriggerTaskIndex: int | None
    appExitType: str
    waitingReason: Annotated[str, about("Why it waits now, or for what its end does; empty otherwise")]
    priority: JobPriority
    queuePlace: QueuePlace
    startsWithin: StartsWithin
    latestEndTime: Annotated[
        TimeOrNone, about("When its time limit ends it; null: it has none, or does not run")
    ]


class TaskStatus(TypedDict):
    """The state of a task."""

    taskIndex: Count
    taskState: JobState
    containerId: Annotated[str, about("PAI_CONTAINER_ID of the task; empty before it has started")]
    containerIp: str
    containerPorts: Annotated[dict[str, str], about('By label: "p1,p2"')]
    containerGpus: Annotated[Count, about("Bit map of the GPUs' numbers")]
    containerLog: Annotated[str, about("Address of the log")]
    containerExitCode: int | None
    node: Annotated[str, about("Where it runs or ran; empty before it was placed")]


class TaskRoleName(TypedDict):
    """What is said of a role beside its tasks."""

    name: str


class TaskRoleStatus(TypedDict):
    """The tasks of a role."""

    taskRoleStatus: TaskRoleName
    taskStatuses: list[TaskStatus]


class JobDetail(TypedDict):
    """A job in full."""

    name: str
    jobStatus: JobStatus
    taskRoles: dict[str, TaskRoleStatus]


class Trigger(TypedDict):
    """The task whose exit decided an attempt."""

    taskRole: str
    taskIndex: Count


class AttemptInfo(TypedDict):
    """One attempt of a job."""

    attempt: Count
    state: JobState
    createdTime: Time
    launchedTime: TimeOrNone
    completedTime: TimeOrNone
    exitCode: int | None
    exitSpec: ExitSpec | None
    trigger: Trigger | None
    reason: str
    taskRoles: dict[str, TaskRoleStatus]


class Execution(TypedDict):
    """Whether a job shall run."""

    value: ExecutionType
    reason: NotRequired[
        Annotated[
            str,
            about(
                "Why it is stopped: a sentence for its user, told in its events and with its end",
                max_length=LONGEST_REASON,
            ),
        ]
    ]


class JobLimits(TypedDict):
    """What order and limits a job would have."""

    priority: Annotated[Priority, about("Higher comes first within its virtual cluster")]
    queuePlace: Annotated[Place, about("Its place in the queue if it had to wait")]
    maxRunSeconds: Annotated[int | None, about("It is stopped after running this long; null: no limit")]
    gpusPerUser: Annotated[
        int | None, about("GPUs that one user may hold in its virtual cluster; null: no limit")
    ]
    gpusHeld: Annotated[Count, about("GPUs that the user holds there now")]


class Validation(TypedDict):
    """What submitting a job would do."""

    errors: list[FieldError]
    fits: Literal["now", "later", "never"]
    reason: Annotated[str, about("Why not now")]
    borrows: Annotated[bool, about("Whether it would run on what other virtual clusters do not use")]
    limits: Annotated[JobLimits | None, about("Its order and limits; null where the job is not valid")]
    startsWithin: StartsWithin
    startsNowIn: Annotated[
        list[str], about("Other virtual clusters open to the user in which it would start at once")
    ]


# ── what happens, and what is used ──────────────────────────────────────────────────────────────────────────


class JobEvent(TypedDict):
    """Something that happened to a job."""

    id: Annotated[int, about("Increasing", ge=1)]
    time: Time
    type: str
    attempt: int | None
    taskRole: str | None
    taskIndex: int | None
    message: str
    data: dict[str, Any]
    user: NotRequired[Annotated[str, about("Only in /events")]]
    job: NotRequired[Annotated[str, about("Only in /events")]]


Points = Annotated[
    list[tuple[int, float]],
    about(
        "Pairs of ms since the epoch and a value; empty: not known. Per cent of one core, of the GPUs; bytes "
        "since the start"
    ),
]


class TaskMetrics(TypedDict):
    """What a task has used."""

    interval: Annotated[float, about("Seconds between the newest points", gt=0)]
    gpuMemoryTotalMB: Annotated[
        Count | None, about("What the task's GPUs have together; null: none, not known, or no longer its own")
    ]
    series: Annotated[
        dict[str, Points],
        Meta(
            extra_json_schema={
                "required": [
                    *("cpuPercent", "memoryMB", "gpuPercent", "gpuMemoryMB"),
                    *("diskMB", "netRxBytes", "netTxBytes"),
                ]
            }
        ),
    ]


# ── the way into tasks ──────────────────────────────────────────────────────────────────────────────────────


class SshContainer(TypedDict):
    """A running task: `ssh -p sshPort sshUser@sshIp`."""

    id: Annotated[str, about("The container's")]
    task: Annotated[str, Meta(examples=["worker-0"])]
    sshIp: str
    sshPort: str
    sshUser: Annotated[str, Meta(examples=["alice+mnist+worker-0", "root"])]
    published: Annotated[bool, about("The address is the task's own; else the gateway's")]
    off: Annotated[str | None, about("Why there is no way in; null: there is one")]


class SshKeyPair(TypedDict):
    """The key of a job; it is good until the job ends."""

    folderPath: Annotated[str, about("The folder in the storage in which both files are")]
    publicKeyFileName: str
    privateKeyFileName: str
    privateKeyDirectDownloadLink: Annotated[str, about("Good for ten minutes without a token")]


class SshInfo(TypedDict):
    """How to reach the running tasks of a job."""

    containers: Annotated[list[SshContainer], Meta(min_length=1)]
    keyPair: SshKeyPair
    gateway: SshGateway | None


class TaskPort(TypedDict):
    """Where the scheduler's machine reaches a port of a task."""

    host: Annotated[str | None, about("null: the task's own address")]
    port: int


# ── queues, machines, virtual clusters ──────────────────────────────────────────────────────────────────────


class ClusterVersion(TypedDict):
    """How the cluster and its queues stand."""

    version: Annotated[Text, about("Another one where something has changed; only good for comparing")]


class QueueEntry(TypedDict):
    """A waiting job in the order of its virtual cluster."""

    place: Place
    priority: JobPriority
    user: str
    name: Annotated[str | None, about("Null where it is another user's business")]
    totalGpuNumber: Count
    totalTaskNumber: Annotated[int, Meta(ge=1)]
    createdTime: Time
    waitingReason: Annotated[str | None, about("At the first 20 of one's own jobs")]
    startsWithin: Annotated[
        Count | None,
        about("Seconds until it starts, as in its job; null: not known, or not one of one's own first 20"),
    ]
    overtaken: Annotated[Count, about("How often a job behind it has started before it")]
    reserved: Annotated[bool, about("Whether what becomes free is kept for it")]


class Reordering(TypedDict, total=False):
    """Where a job shall stand; at least one of both."""

    priority: Priority
    place: Annotated[int, Meta(ge=1, le=LAST_PLACE)]


class Amount(TypedDict):
    """Resources: of a machine, or of several."""

    cpus: int
    memoryMB: int
    storageGB: int
    gpus: Annotated[dict[str, int], about("By type")]


class AvailableAmounts(TypedDict):
    """What a user's next job could have in a virtual cluster, within its share and the user's quota."""

    free: Annotated[Amount, about("Now, in all")]
    most: Annotated[Amount, about("In all, if nobody held anything")]
    freeOnOne: Annotated[Amount, about("Now, what one machine has at most of each resource")]
    mostOnOne: Annotated[Amount, about("The same, if nobody held anything")]


class GpuInfo(TypedDict):
    """A GPU of a machine."""

    index: Count
    type: str
    uuid: str
    simulated: Annotated[bool, about("Declared in the cluster file but not there")]
    memoryMB: Annotated[Count | None, about("Its memory; null: not known, or simulated")]
    job: Annotated[str | None, about("Who has it: user~job; the word `busy` for another user's")]


class DiskInfo(TypedDict):
    """What is free of a disk, and how large it is."""

    freeMB: Count
    totalMB: Count


class NodeClosing(TypedDict):
    """That an administrator keeps new tasks from a machine."""

    by: Annotated[str, about("Who closed it")]
    reason: str
    since: Annotated[int, about("ms since the epoch")]
    until: NotRequired[
        Annotated[int, about("ms since the epoch: the end of maintenance; absent: until somebody opens it")]
    ]


class MaintenanceInfo(TypedDict):
    """When machines are down, as an administrator has planned."""

    name: str
    nodes: Annotated[list[str], about("Names of machines; `*` stands for any part, `?` for one letter")]
    begin: Annotated[int, about("ms since the epoch")]
    end: Annotated[int, about("ms since the epoch")]
    reason: str
    by: Annotated[str, about("Who planned it")]


class WantedMaintenance(TypedDict):
    """When machines are to be down."""

    nodes: Annotated[list[Text], about("Names of machines; `*` stands for any part, `?` for one letter")]
    begin: Annotated[int, about("ms since the epoch; it may be over")]
    end: Annotated[int, about("ms since the epoch")]
    reason: Annotated[str, Meta(max_length=LONGEST_REASON), about("Those whose jobs wait read it")]


class NodeInfo(TypedDict):
    """A machine of the cluster."""

    name: str
    state: Annotated[
        Literal["READY", "PAUSED", "DRAINED", "FULL", "LOST"],
        about(
            "Nothing new comes where it is not READY. PAUSED, DRAINED: by an administrator of the Swarm. "
            "FULL: hardly any room is left on its disk. LOST: it does not answer"
        ),
    ]
    closed: Annotated[
        NodeClosing | None,
        about("Nothing new comes there while it is closed. Null: it is open"),
    ]
    maintenance: NotRequired[
        Annotated[
            list[MaintenanceInfo],
            about("What is planned there or under way, the first to begin first; absent: nothing is"),
        ]
    ]
    total: Amount
    used: Amount
    gpus: list[GpuInfo]
    rack: Annotated[str, about("The same for machines near each other; empty: not known")]
    disk: Annotated[
        DiskInfo | None,
        about(
            "The disk that tasks fill, as it was measured last; of several the one with the least room. "
            "Null: it is not known, or the machine does not answer. `storageGB` is what jobs may reserve"
        ),
    ]


class ClusterUsage(TypedDict):
    """How many of the cluster's GPUs were taken over the last day."""

    interval: Annotated[int, about("Seconds between two samples", ge=1)]
    gpus: Annotated[
        list[tuple[int, int, int]],
        about(
            "The oldest first: ms since the epoch, GPUs that tasks held, GPUs of all machines. There is none "
            "of a time at which the scheduler did not run"
        ),
    ]


class VirtualClusterResources(TypedDict):
    """Totals as OpenPAI named them."""

    memory: Annotated[int, about("MB")]
    vCores: int
    GPUs: int


class UsedLately(TypedDict):
    """What who asks has used of a virtual cluster lately; of what is longer ago, less counts."""

    gpuHours: Annotated[
        float, Meta(ge=0), about("GPU hours; a task without a GPU counts one for 8 of its cores")
    ]
    percent: Annotated[float, Meta(ge=0), about("Per cent of what all users have used")]


class VirtualClusterInfo(TypedDict):
    """A virtual cluster."""

    capacity: Annotated[PerCent, about("Guaranteed per cent of the cluster")]
    maxCapacity: Annotated[PerCent, about("Per cent of the cluster at most")]
    usedCapacity: Annotated[float, Meta(ge=0)]
    numActiveJobs: Count
    numJobs: Count
    numPendingJobs: Count
    resourcesUsed: VirtualClusterResources
    resourcesTotal: VirtualClusterResources
    dedicated: bool
    nodeList: list[str]
    status: Literal["RUNNING", "STOPPED"]
    shorterFirst: Annotated[
        Count,
        about("A job lets shorter ones past for so many times its time limit; 0: first come, first served"),
    ]
    fairShareHours: Annotated[
        Count,
        about("Who has used less comes first; half counts after so many hours; 0: first come, first served"),
    ]
    levelGpuHours: Annotated[
        list[float],
        about(
            "A job goes to the next level when it has had so many GPU hours; lower levels come first and "
            "stop others; empty: no levels"
        ),
    ]
    shortestRemaining: Annotated[
        bool, about("Jobs that need least GPU time to their end come first and stop others")
    ]
    placement: Annotated[
        Literal["pack", "spread"],
        about("pack: what starts fills machines; spread: it gets the emptiest ones"),
    ]
    usedLately: NotRequired[
        Annotated[UsedLately, about("Absent: it decides nothing here, or nobody has logged in to ask")]
    ]


class VirtualClusterShare(TypedDict):
    """What a virtual cluster shall have, in per cent: numbers, or the same as text, as forms have it."""

    vcCapacity: Annotated[PerCentOrText, about("Guaranteed")]
    vcMaxCapacity: NotRequired[Annotated[PerCentOrText, about("At most; not below vcCapacity")]]
    users: NotRequired[Annotated[list[Text], about("Who may use it")]]
    groups: NotRequired[Annotated[list[Text], about("Whose members may use it")]]


class VirtualClusterSwitch(TypedDict):
    """Whether a virtual cluster starts jobs."""

    vcStatus: Literal["running", "stopped"]


class NodeSwitch(TypedDict):
    """Whether tasks may start on a machine."""

    schedulable: Annotated[bool, about("false: nothing new starts there, what runs goes on")]
    reason: NotRequired[
        Annotated[str, Meta(max_length=LONGEST_REASON), about("Why it is closed; needed where it is")]
    ]
