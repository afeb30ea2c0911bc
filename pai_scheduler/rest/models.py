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
DependencyCondition = Literal["succeeded", "ended", "failed"]
ExecutionType = Literal["START", "STOP"]
JobState = Literal["WAITING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"]
#: a newer scheduler may have more, of which a client says nothing
SubState = Annotated[
    str,
    Meta(
        extra_json_schema={
            "enum": [
                *("DEPENDENCY_WAIT", "QUEUED", "STARTING", "RETRY_WAIT", "RUNNING", "ENDING"),
                *("DEBUG_HELD", "ENDED"),
            ]
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


class Submitted(Done):
    """That a job is accepted, durably."""

    warnings: NotRequired[
        Annotated[
            list[FieldError],
            about("Fields without effect, and what the user may not read or write; absent: none"),
        ]
    ]


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


class JobLink(TypedDict):
    """A job that another waits for (`extras.after`), or the one that waits."""

    job: Annotated[str, about("Its name")]
    state: Annotated[JobState | None, about("Its state now; null: it is deleted")]
    on: Annotated[DependencyCondition, about("How the one that is waited for must end")]
    holds: Annotated[bool | None, about("Whether it has ended so; null: it has not ended")]


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
    neverFits: Annotated[
        bool, about("Whether it waits, and could not start on the nodes that are ready if nothing ran there")
    ]
    priority: JobPriority
    queuePlace: QueuePlace
    startsWithin: StartsWithin
    latestEndTime: Annotated[
        TimeOrNone, about("When its time limit ends it; null: it has none, or does not run")
    ]
    dependencies: Annotated[list[JobLink], about("The jobs that it waits for, or has waited for")]
    dependents: Annotated[
        list[JobLink], about("The jobs that wait for it, or have waited; the first hundred")
    ]
    dependentCount: Annotated[Count, about("How many these are in all")]
    endingUntil: Annotated[
        TimeOrNone,
        about("When those of its tasks are killed that have not ended by then; null: none is being stopped"),
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
    consoleUrl: NotRequired[
        Annotated[
            str,
            about("The job's page on the web; absent: the administrator has not said where the console is"),
        ]
    ]


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
    force: NotRequired[
        Annotated[bool, about("With STOP: kill its tasks at once, also where they are being stopped already")]
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
    warnings: Annotated[list[FieldError], about("What is no error, and its user had better know")]
    fits: Literal["now", "later", "never"]
    reason: Annotated[
        str, about("Why not now; beside errors, why what it asks for never fits at present, or nothing")
    ]
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


# ── queues ──────────────────────────────────────────────────────────────────────────────────────────────────


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
    neverFits: Annotated[bool, about("As in its job; false where `waitingReason` is null")]
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
