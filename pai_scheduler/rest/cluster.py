"""The JSON of machines and virtual clusters as types: a part of REST API version 1, as `models` says."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta

from .models import LONGEST_REASON, Count, Text, about

PerCent = Annotated[float, Meta(ge=0, le=100)]
PerCentOrText = PerCent | Annotated[str, Meta(pattern="^(100([.]0{1,9})?|[0-9]{1,2}([.][0-9]{1,9})?)$")]


class ClusterVersion(TypedDict):
    """How the cluster and its queues stand."""

    version: Annotated[Text, about("Another one where something has changed; only good for comparing")]


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
    job: Annotated[str | None, about("The job that holds it: user~job; the word `busy` for another user's")]
    user: Annotated[
        str | None,
        about(
            "The user whose job holds it, as far as `holdersVisible` of the job's virtual cluster shows it. "
            "Null: it is free, or the name is not shown"
        ),
    ]


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
