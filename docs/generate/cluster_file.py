"""What an administrator may write into the cluster file: the fields that its parser takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pai_scheduler.cluster.config_fields import DefinitionError
from pai_scheduler.cluster.definition import (
    DEFAULT_GRACE_SECONDS,
    DEFAULT_JOBS_PER_USER,
    DEFAULT_MAX_GRACE_SECONDS,
    DEFAULT_MAX_MOUNT_GB,
    DEFAULT_MIN_FREE_MB,
    DEFAULT_OVERTAKE_LIMIT,
    DEFAULT_SCHEDULES_PER_USER,
    DEFAULT_STORAGE_GB,
    DEFAULT_STREAMS_PER_USER,
    LONGEST_GRACE_SECONDS,
    LogKeeping,
    parse_definition,
)
from pai_scheduler.cluster.resources import DEFAULT_STORAGE_REQUEST_GB
from pai_scheduler.core.state_machine import CoreSettings

from .environment import PageError

#: Fields of the cluster file by the place where they stand: default and meaning.
_FIELDS: Mapping[str, Mapping[str, tuple[object, str]]] = {
    "nodes": {
        "name": ("", "the machine's name, as the engine knows it"),
        "cpus": ("what it has", "CPU cores to give"),
        "memoryMB": ("what it has", "memory to give"),
        "storageGB": ("what it has", "scratch disk to give"),
        "gpus": ("what it has", "type and number; those that are not there are simulated"),
        "rack": (
            "none",
            "a name that machines near each other have in common ([near each other](#near-each-other))",
        ),
        "gpuLinks": (
            "none",
            "which of its GPUs are joined by fast links, by number ([GPUs near each other]"
            "(#gpus-near-each-other))",
        ),
    },
    "defaults": {
        "storageGB": (DEFAULT_STORAGE_GB, "disk limit of a task that names no `storageGB`"),
        "storageRequestGB": (
            DEFAULT_STORAGE_REQUEST_GB,
            "disk that is reserved for such a task when it is placed, at most `storageGB`; a task that names "
            "`storageGB` reserves all of it",
        ),
        "overtakeLimit": (DEFAULT_OVERTAKE_LIMIT, "how often a waiting job may be overtaken"),
        "logs": (
            f"{{maxMBPerTask: {LogKeeping().max_mb_per_task}, keepDays: {LogKeeping().keep_days}}}",
            "how much of a task's log is kept, and for how many days after its end",
        ),
        "streamsPerUser": (DEFAULT_STREAMS_PER_USER, "logs and events that one user may follow at once"),
        "jobsPerUser": (
            DEFAULT_JOBS_PER_USER,
            "jobs of one user that have not ended; beyond it none is accepted",
        ),
        "schedulesPerUser": (
            DEFAULT_SCHEDULES_PER_USER,
            "schedules of one user ([more](../users/schedules.md)); 0: there are none",
        ),
        "debugHoldSeconds": (
            CoreSettings().debug_hold_seconds,
            "how long a failed task of a job with `isDebug` keeps its container",
        ),
        "maxMountGB": (
            DEFAULT_MAX_MOUNT_GB,
            "how much one of a job's `extras.mounts` may hold, with a storage that is not a folder",
        ),
        "maintenanceNoticeSeconds": (
            CoreSettings().maintenance_notice_seconds,
            "how long before [maintenance](scheduler.md#plan-maintenance) nothing that has no time limit "
            "starts on its machines",
        ),
        "terminationGraceSeconds": (
            DEFAULT_GRACE_SECONDS,
            "how long a task that is being stopped may take to end by itself, where its job does not say "
            "(`extras.terminationGraceSeconds`, [more](../users/states-and-exit-codes.md#time-to-end))",
        ),
        "minFreeMB": (
            DEFAULT_MIN_FREE_MB,
            "what is to stay free on the data folder's disk, at most a twentieth of it: below it no jobs are "
            "accepted, below half of it what fills the disk is ended ([more](scheduler.md#a-full-disk)); "
            "0: nothing of this. On each other machine of a Swarm as much is to stay free: below it nothing "
            "new comes there, below half of it the task that fills its disk is ended",
        ),
    },
    "limits": {
        "terminationGraceSeconds": (
            DEFAULT_MAX_GRACE_SECONDS,
            f"the most that a job may name ({LONGEST_GRACE_SECONDS:,} at most); one that is lowered cuts "
            "what jobs have named before",
        ),
    },
    "virtualClusters": {
        "capacity": (
            "**required**",
            "per cent of every resource that is guaranteed; all together at most 100",
        ),
        "maxCapacity": (100, "per cent of every resource that its jobs may hold with what they borrow"),
        "users": ("everybody", "who may use it"),
        "groups": ("everybody", "whose members may use it"),
        "gpusPerUser": ("no limit", "GPUs that one user's jobs may hold here at once"),
        "defaultRunSeconds": ("no limit", "time limit of a job that names none (`extras.maxRunSeconds`)"),
        "maxRunSeconds": ("no limit", "the longest time limit that a job may name"),
        "shorterFirst": (
            0,
            "a waiting job lets shorter ones past that are submitted within so many times its own time limit "
            "([more](../users/virtual-clusters.md#shorter-jobs-first)); 0: the order of submission",
        ),
        "fairShare": (
            "none",
            "`{halfLifeHours: 168}`: who has used less lately comes first; of what was used half counts "
            "after so many hours ([more](../users/virtual-clusters.md#fair-share-between-users))",
        ),
        "leastAttained": (
            "none",
            "`{}`, or `{gpuHours: [1, 10, 100], leastRunSeconds: 600, promoteAfterHours: 720}`: who has had "
            "less comes first, and stops others for it "
            "([more](../users/virtual-clusters.md#who-has-had-less-comes-first))",
        ),
        "shortestRemaining": (
            "none",
            "`{leastRunSeconds: 600, promoteAfterHours: 168}`: who needs least GPU time to its end comes "
            "first, and stops others for it "
            "([more](../users/virtual-clusters.md#who-needs-least-comes-first))",
        ),
        "placement": (
            "pack",
            "`pack`: what starts fills machines; `spread`: it gets the emptiest ones "
            "([more](../users/virtual-clusters.md#pack-or-spread))",
        ),
        "holdersVisible": (
            "members",
            "who sees the names of the users whose jobs hold GPUs: `members`, the users of this virtual "
            "cluster; `everybody`; `nobody` but administrators",
        ),
    },
    "sharedFolders": {
        "name": ("**required**", "by which a job asks for it (`extras.sharedFolders`)"),
        "source": ("", "where it is: a path on the machine, on each one of a Swarm"),
        "volume": ("", "instead of `source`: a volume of Docker's, which makes it where it is missing"),
        "target": ("**required**", "where tasks find it: an absolute path"),
        "groups": ("everybody", "whose members have it"),
        "write": (
            "false",
            "`true`: who has it may write; a list: members of these groups may, the others read",
        ),
        "create": ("false", "make the folder where it is missing, not in a Swarm; its parent must be there"),
    },
}
#: A cluster file with a field that nobody knows, in each place.
_PROBES: Mapping[str, Mapping[str, Any]] = {
    "nodes": {"nodes": [{"?": 0}]},
    "defaults": {"defaults": {"?": 0}},
    "limits": {"limits": {"?": 0}},
    "virtualClusters": {"virtualClusters": {"default": {"?": 0}}},
    "sharedFolders": {"sharedFolders": [{"?": 0}]},
}


def facts(_locale: str) -> Mapping[str, Any]:
    """Return what the page about the cluster file says in facts; PageError where it would forget a field."""
    return {"fields": {place: list(_fields(place)) for place in _FIELDS}}


def _fields(place: str) -> Iterator[tuple[str, object, str]]:
    """Return the fields that the parser takes in a place; PageError where one is not explained here."""
    for name in known_fields(place):
        if name not in _FIELDS[place]:
            raise PageError(f"docs/generate/cluster_file.py does not explain {place}: {name}")
        yield (name, *_FIELDS[place][name])


def known_fields(place: str) -> list[str]:
    """Ask the parser which fields it takes in a place of the cluster file."""
    try:
        parse_definition(_PROBES[place])
    except DefinitionError as error:
        return str(error.message.values["known"]).split(", ")
    raise PageError(f"the cluster file takes any field in {place}")
