"""The cluster file: nodes, defaults, virtual clusters, registries (job-contract.md, section 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from pai_scheduler.i18n import msg

from .config_fields import DefinitionError, read_list, read_mapping, read_number
from .node import Gpu, Group, Node, NodeState, read_gpu_links
from .resources import DEFAULT_STORAGE_REQUEST_GB
from .shared_folders import SharedFolder, read_shared_folders

# Which registries an administrator lets images come from (`registries` in the cluster file).

#: stands for every public registry, and for nothing else
PUBLIC = "*"


@dataclass(frozen=True, slots=True)
class Registries:
    """Patterns of host names (`registry.example.org`, `*.example.org`), with a port or for all ports."""

    patterns: Sequence[str] = (PUBLIC,)

    @property
    def public(self) -> bool:
        """Return whether images may come from every public registry."""
        return PUBLIC in self.patterns

    def lists(self, registry: str) -> bool:
        """Return whether a registry (`host` or `host:port`) is listed by more than `*`, wherever it is."""
        host = registry.partition(":")[0]
        return any(
            fnmatchcase(registry if ":" in pattern else host, pattern.lower())
            for pattern in self.patterns
            if pattern != PUBLIC
        )


# The cluster file: declared nodes, defaults and virtual clusters (job-contract.md, section 5).

#: OpenPAI gave a container no disk limit.
DEFAULT_STORAGE_GB = 20
DEFAULT_STREAMS_PER_USER = 200
_PATTERN = re.compile(r"[A-Za-z0-9*?._-]+(:[0-9*?]+)?")
_RACK = re.compile(r"[A-Za-z0-9._/-]{1,64}")


#: how often a waiting job may be overtaken before resources are kept for it
DEFAULT_OVERTAKE_LIMIT = 20
DEFAULT_MAX_MOUNT_GB = 20
#: how long a failed task of a debugged job keeps its container
DEFAULT_DEBUG_HOLD_SECONDS = 7 * 24 * 3600
#: how long before maintenance nothing without a time limit starts on its machines
DEFAULT_MAINTENANCE_NOTICE_SECONDS = 24 * 3600
#: seconds between SIGTERM and SIGKILL: of a job that names none, and the most that one may name
DEFAULT_GRACE_SECONDS = 10
DEFAULT_MAX_GRACE_SECONDS = 600
#: the highest limit that an administrator may set: what a job's JSON may name at all
LONGEST_GRACE_SECONDS = 3600
#: MB of the data folder's disk that are to stay free; 0: it is not watched
DEFAULT_MIN_FREE_MB = 512
#: jobs of one user that have not ended
DEFAULT_JOBS_PER_USER = 10_000
DEFAULT_SCHEDULES_PER_USER = 100


#: Levels that suit jobs of minutes and of weeks: after so many GPU hours the next begins.
DEFAULT_LEVELS = tuple(float(3**power) for power in range(10))


@dataclass(frozen=True, slots=True)
class LeastAttained:
    """Levels by what a job has had so far; a job of a lower level stops those of a higher one.

    `gpu_hours`: where the next level begins for a job of one GPU, rising; at least one.
    """

    gpu_hours: tuple[float, ...] = DEFAULT_LEVELS
    #: for so long nobody stops a job that has just started
    run_seconds: int = 600
    #: after such a wait a job comes first, and is not stopped for an hour
    promote_hours: int = 720


@dataclass(frozen=True, slots=True)
class ShortestRemaining:
    """Policy “shortest remaining GPU time first”; jobs preempt those that need clearly more."""

    #: for so long nobody stops a job that has just started, nor one that needs no longer than that
    run_seconds: int = 600
    #: after such a wait a job comes first, and is not stopped any more
    promote_hours: int = 168


#: The fields of a virtual cluster that say whose turn it is; without any who came first is first.
ORDERS = ("shorterFirst", "fairShare", "leastAttained", "shortestRemaining")


class Order(NamedTuple):
    """Whose turn it is in a virtual cluster, as `VirtualCluster` has it: one of these at most."""

    shorter_first: int = 0
    fair_share_hours: int = 0
    least_attained: LeastAttained | None = None
    shortest_remaining: ShortestRemaining | None = None


#: Who sees the users whose jobs hold a virtual cluster's GPUs: its own users, all, administrators only.
HoldersVisible = Literal["members", "everybody", "nobody"]


@dataclass(frozen=True, slots=True)
class VirtualCluster:
    """A share of the cluster, in per cent of every resource: guaranteed, and at most.

    `groups` and `users` may use it; both empty: everybody.
    """

    name: str
    capacity: float
    max_capacity: float = 100.0
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    #: time limit of jobs that name none, and the longest that one may name; None: none
    default_run_seconds: int | None = None
    max_run_seconds: int | None = None
    #: GPUs that one user's jobs may hold here at once; None: no limit
    gpus_per_user: int | None = None
    #: nothing of it starts
    stopped: bool = False
    #: a job lets shorter ones past that are submitted within so many times its own time limit; 0: none
    shorter_first: int = 0
    #: who has used less of it comes first; what was used counts half after so many hours. 0: no matter
    fair_share_hours: int = 0
    #: who has had less of it comes first, and stops others for it; None: no matter
    least_attained: LeastAttained | None = None
    #: what starts gets the emptiest machines, not those that it fills best
    spreads: bool = False
    #: who needs least to its end comes first, and stops others for it; None: no matter
    shortest_remaining: ShortestRemaining | None = None
    #: to whom the names of users are shown whose jobs of it hold GPUs
    holders_visible: HoldersVisible = "members"

    @property
    def service_order(self) -> LeastAttained | ShortestRemaining | None:
        """Return by which service of jobs some stop others of it; None: nobody does."""
        return self.least_attained or self.shortest_remaining


@dataclass(frozen=True, slots=True)
class DeclaredNode:
    """A node as the file has it; None: as the engine finds it."""

    name: str
    cpus: int | None = None
    memory_mb: int | None = None
    storage_gb: int | None = None
    gpus: Mapping[str, int] = field(default_factory=dict)
    rack: str = ""
    #: GPUs, by index, that are joined by fast links; each in one group at most
    gpu_links: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class LogKeeping:
    """Log retention per task: maximum size, and days after the task's end."""

    max_mb_per_task: int = 1024
    keep_days: int = 90

    @property
    def max_bytes_per_task(self) -> int:
        """Return the maximum size in bytes."""
        return self.max_mb_per_task * 2**20


@dataclass(frozen=True, slots=True)
class Definition:
    """The whole file. No nodes: those that the engine finds."""

    nodes: tuple[DeclaredNode, ...] = ()
    virtual_clusters: Mapping[str, VirtualCluster] = field(
        default_factory=lambda: {"default": VirtualCluster("default", 100.0)}
    )
    #: GB of disk that a task may write which names none, and that are reserved for it
    default_storage_gb: int = DEFAULT_STORAGE_GB
    storage_request_gb: int = DEFAULT_STORAGE_REQUEST_GB
    logs: LogKeeping = LogKeeping()
    #: logs and job events that one user may follow at once
    streams_per_user: int = DEFAULT_STREAMS_PER_USER
    #: jobs of one user that have not ended; beyond it none is accepted
    jobs_per_user: int = DEFAULT_JOBS_PER_USER
    schedules_per_user: int = DEFAULT_SCHEDULES_PER_USER
    overtake_limit: int = DEFAULT_OVERTAKE_LIMIT
    debug_hold_seconds: int = DEFAULT_DEBUG_HOLD_SECONDS
    #: how much is fetched for one mount of a job at most, where the storage is not on this machine
    max_mount_gb: int = DEFAULT_MAX_MOUNT_GB
    #: MB of the data folder's disk that are to stay free, at most a twentieth of it; 0: it is not watched
    min_free_mb: int = DEFAULT_MIN_FREE_MB
    #: seconds before maintenance in which nothing without a time limit starts on its machines
    maintenance_notice_seconds: int = DEFAULT_MAINTENANCE_NOTICE_SECONDS
    #: where images may come from
    registries: Registries = field(default_factory=Registries)
    #: folders of the machines that tasks may be given
    shared_folders: tuple[SharedFolder, ...] = ()
    #: seconds between SIGTERM and SIGKILL, where a job names none, and the most that count for any job
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    max_grace_seconds: int = DEFAULT_MAX_GRACE_SECONDS


def parse_definition(document: object) -> Definition:
    """Read the parsed YAML of a cluster file; DefinitionError where it is wrong. None: an empty file."""
    places = ("nodes", "defaults", "limits", "virtualClusters", "registries", "sharedFolders")
    top = read_mapping(document if document is not None else {}, "", places)
    known = (
        *("storageGB", "storageRequestGB", "overtakeLimit", "debugHoldSeconds", "logs"),
        *("streamsPerUser", "jobsPerUser", "schedulesPerUser", "maxMountGB", "minFreeMB"),
        *("maintenanceNoticeSeconds", "terminationGraceSeconds"),
    )
    defaults = read_mapping(top.get("defaults", {}), "defaults", known)
    nodes = [_node(entry, f"nodes[{i}]") for i, entry in enumerate(read_list(top.get("nodes", []), "nodes"))]

    def default(key: str, otherwise: int, least: int) -> int:
        value = read_number(defaults, key, "defaults.", least=least)
        return otherwise if value is None else value

    storage_gb = default("storageGB", DEFAULT_STORAGE_GB, 0)
    request_gb = default("storageRequestGB", min(DEFAULT_STORAGE_REQUEST_GB, storage_gb), 0)
    if request_gb > storage_gb:
        text = msg(
            "storageRequestGB ({request}) is above storageGB ({limit}), which a task may write at most. "
            "Lower it, or raise storageGB.",
            request=request_gb,
            limit=storage_gb,
        )
        raise DefinitionError("defaults.storageRequestGB", text)
    names = [node.name for node in nodes]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise DefinitionError(f"nodes[{i}].name", msg("There is another node named {name}.", name=name))
    return Definition(
        tuple(nodes),
        _virtual_clusters(top.get("virtualClusters", {"default": {"capacity": 100}})),
        storage_gb,
        request_gb,
        _log_keeping(defaults.get("logs", {})),
        default("streamsPerUser", DEFAULT_STREAMS_PER_USER, 1),
        default("jobsPerUser", DEFAULT_JOBS_PER_USER, 1),
        default("schedulesPerUser", DEFAULT_SCHEDULES_PER_USER, 0),
        default("overtakeLimit", DEFAULT_OVERTAKE_LIMIT, 0),
        default("debugHoldSeconds", DEFAULT_DEBUG_HOLD_SECONDS, 1),
        default("maxMountGB", DEFAULT_MAX_MOUNT_GB, 0),
        default("minFreeMB", DEFAULT_MIN_FREE_MB, 0),
        default("maintenanceNoticeSeconds", DEFAULT_MAINTENANCE_NOTICE_SECONDS, 0),
        _registries(top.get("registries")),
        read_shared_folders(top.get("sharedFolders", [])),
        *_grace(defaults, top.get("limits", {})),
    )


def merge_nodes(definition: Definition, found: Sequence[Node], *, one_machine: bool) -> tuple[Node, ...]:
    """Return the nodes to schedule on: the declared ones, filled in from what was found, and the others.

    Declared GPUs beyond those found are simulated. `one_machine`: the declared nodes, where there are any,
    all stand for the one that was found; else a declared node that was not found is lost.
    """
    if one_machine and definition.nodes:
        return tuple(_merge(declared, found[0] if found else None) for declared in definition.nodes)
    declared_by_name = {node.name: node for node in definition.nodes}
    found_by_name = {node.name: node for node in found}
    return (
        *(_merge(declared, found_by_name.get(name)) for name, declared in declared_by_name.items()),
        *(node for name, node in found_by_name.items() if name not in declared_by_name),
    )


def _merge(declared: DeclaredNode, real: Node | None) -> Node:
    gpus = list(real.gpus) if real is not None else []
    kept: list[Gpu] = []
    for gpu_type, count in declared.gpus.items():
        here = [gpu for gpu in gpus if gpu.type == gpu_type][:count]
        kept.extend(here)
        kept.extend(Gpu(-1, gpu_type, simulated=True) for _ in range(count - len(here)))
    numbers = iter(range(len(kept) + len(gpus)))
    taken = {gpu.index for gpu in kept if not gpu.simulated}
    numbered = []
    for gpu in kept:
        if gpu.simulated:
            index = next(number for number in numbers if number not in taken)
            numbered.append(Gpu(index, gpu.type, f"simulated-{declared.name}-{index}", simulated=True))
        else:
            numbered.append(gpu)
    return Node(
        declared.name,
        declared.cpus if declared.cpus is not None else (real.cpus if real else 1),
        declared.memory_mb if declared.memory_mb is not None else (real.memory_mb if real else 1024),
        declared.storage_gb if declared.storage_gb is not None else (real.storage_gb if real else 0),
        tuple(numbered) if declared.gpus else tuple(gpus),
        real.state if real is not None else NodeState.LOST,
        declared.rack,
        gpu_links=declared.gpu_links,
    )


def _node(entry: object, path: str) -> DeclaredNode:
    fields = read_mapping(entry, path, ("name", "cpus", "memoryMB", "storageGB", "gpus", "rack", "gpuLinks"))
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise DefinitionError(f"{path}.name", msg("A node needs a name, for example node-a."))
    gpus = read_mapping(fields.get("gpus", {}), f"{path}.gpus")
    return DeclaredNode(
        name,
        read_number(fields, "cpus", f"{path}.", least=1),
        read_number(fields, "memoryMB", f"{path}.", least=1),
        read_number(fields, "storageGB", f"{path}."),
        {str(gpu_type): read_number(gpus, gpu_type, f"{path}.gpus.") or 0 for gpu_type in gpus},
        _rack(fields.get("rack"), f"{path}.rack"),
        read_gpu_links(fields.get("gpuLinks"), f"{path}.gpuLinks"),
    )


def _rack(value: object, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not _RACK.fullmatch(value):
        text = msg("A rack is a name, for example r1: at most 64 letters, digits and . _ - /")
        raise DefinitionError(path, text)
    return value


_VIRTUAL_CLUSTER_FIELDS = (
    "capacity",
    "maxCapacity",
    "groups",
    "users",
    "gpusPerUser",
    "defaultRunSeconds",
    "maxRunSeconds",
    *ORDERS,
    "placement",
    "holdersVisible",
)
#: a hundred years; more would be no decay
_MOST_HOURS = 876_000


def _virtual_clusters(document: object) -> dict[str, VirtualCluster]:
    clusters = {}
    for name, entry in read_mapping(document, "virtualClusters").items():
        path = f"virtualClusters.{name}"
        fields = read_mapping(entry, path, _VIRTUAL_CLUSTER_FIELDS)
        capacity, most = (
            _percent(fields, "capacity", path, None),
            _percent(fields, "maxCapacity", path, 100.0),
        )
        if most < capacity:
            raise DefinitionError(f"{path}.maxCapacity", msg("maxCapacity must not be below capacity."))
        groups, users = (
            tuple(str(item) for item in read_list(fields.get(key, []), f"{path}.{key}"))
            for key in ("groups", "users")
        )
        default_run = read_number(fields, "defaultRunSeconds", f"{path}.", least=1)
        most_run = read_number(fields, "maxRunSeconds", f"{path}.", least=1)
        if default_run is not None and most_run is not None and default_run > most_run:
            text = msg("defaultRunSeconds must not be above maxRunSeconds.")
            raise DefinitionError(f"{path}.defaultRunSeconds", text)
        quota = read_number(fields, "gpusPerUser", f"{path}.")
        clusters[name] = VirtualCluster(
            name,
            capacity,
            most,
            groups,
            users,
            default_run,
            most_run,
            quota,
            spreads=_spreads(fields.get("placement"), f"{path}.placement"),
            holders_visible=_holders_visible(fields.get("holdersVisible"), f"{path}.holdersVisible"),
            **read_order(fields, path)._asdict(),
        )
    if "default" not in clusters:
        raise DefinitionError("virtualClusters", msg("There must be a virtual cluster named default."))
    total = sum(cluster.capacity for cluster in clusters.values())
    if total > 100:
        text = msg(
            "The capacities add up to {total:g} per cent; they may add up to 100 at most.", total=total
        )
        raise DefinitionError("virtualClusters", text)
    return clusters


def read_order(fields: Mapping[str, Any], path: str) -> Order:
    """Read in which order the jobs of a virtual cluster have their turns; DefinitionError."""
    order = Order(
        read_number(fields, "shorterFirst", f"{path}.") or 0,
        _fair_share(fields.get("fairShare"), f"{path}.fairShare"),
        _least_attained(fields.get("leastAttained"), f"{path}.leastAttained"),
        _shortest_remaining(fields.get("shortestRemaining"), f"{path}.shortestRemaining"),
    )
    named = [name for name, value in zip(ORDERS, order, strict=True) if value]
    if len(named) > 1:
        text = msg(
            "shorterFirst, fairShare, leastAttained and shortestRemaining are orders: choose one of them."
        )
        raise DefinitionError(f"{path}.{named[-1]}", text)
    return order


def _spreads(value: object, path: str) -> bool:
    if value not in (None, "pack", "spread"):
        text = msg(
            "Say pack (fill machines, so that whole ones stay free for large jobs) or spread (use the "
            "emptiest ones first)."
        )
        raise DefinitionError(path, text)
    return value == "spread"


def _holders_visible(value: object, path: str) -> HoldersVisible:
    match value:
        case None:
            return "members"
        case "members" | "everybody" | "nobody":
            return value
    text = msg(
        "Say members (who may use the virtual cluster), everybody or nobody: who sees which users hold GPUs."
    )
    raise DefinitionError(path, text)


def _fair_share(document: object, path: str) -> int:
    """Read after how many hours half counts of what was used; 0: it is no matter."""
    if document is None:
        return 0
    fields = read_mapping(document, path, ("halfLifeHours",))
    hours = read_number(fields, "halfLifeHours", f"{path}.", least=1)
    if hours is None or hours > _MOST_HOURS:
        text = msg(
            "Say after how many hours half counts of what was used, from 1 to {most}: 168 is a week.",
            most=_MOST_HOURS,
        )
        raise DefinitionError(f"{path}.halfLifeHours", text)
    return hours


def _least_attained(document: object, path: str) -> LeastAttained | None:
    if document is None:
        return None
    fields = read_mapping(document, path, ("gpuHours", "leastRunSeconds", "promoteAfterHours"))
    hours = read_list(fields.get("gpuHours", list(DEFAULT_LEVELS)), f"{path}.gpuHours")
    numbers = [float(one) for one in hours if isinstance(one, int | float) and not isinstance(one, bool)]
    rising = all(low < high for low, high in pairwise([0.0, *numbers]))
    if not numbers or len(numbers) != len(hours) or not rising or numbers[-1] > _MOST_HOURS:
        text = msg(
            "Say after how many GPU hours a job goes to the next level: rising numbers, for example [1, 10]."
        )
        raise DefinitionError(f"{path}.gpuHours", text)
    return LeastAttained(tuple(numbers), **_patience(fields, path))


def _shortest_remaining(document: object, path: str) -> ShortestRemaining | None:
    if document is None:
        return None
    fields = read_mapping(document, path, ("leastRunSeconds", "promoteAfterHours"))
    return ShortestRemaining(**_patience(fields, path))


def _patience(fields: Mapping[str, Any], path: str) -> dict[str, int]:
    """Read for how long a job runs undisturbed, and waits at most; what is not said is as usual."""
    run = read_number(fields, "leastRunSeconds", f"{path}.")
    promote = read_number(fields, "promoteAfterHours", f"{path}.", least=1)
    if promote is not None and promote > _MOST_HOURS:
        raise DefinitionError(f"{path}.promoteAfterHours", msg("At most {most} hours.", most=_MOST_HOURS))
    said = {"run_seconds": run, "promote_hours": promote}
    return {name: number for name, number in said.items() if number is not None}


def _grace(defaults: Mapping[str, Any], document: object) -> tuple[int, int]:
    """Read the default and the limit of jobs' termination grace, in seconds.

    A limit below the usual default cuts it; a default that the file names itself must keep to the limit.
    """
    key = "terminationGraceSeconds"
    limits = read_mapping(document, "limits", (key,))
    most = read_number(limits, key, "limits.")
    most = DEFAULT_MAX_GRACE_SECONDS if most is None else most
    if most > LONGEST_GRACE_SECONDS:
        raise DefinitionError(f"limits.{key}", msg("At most {most} seconds.", most=LONGEST_GRACE_SECONDS))
    usual = read_number(defaults, key, "defaults.")
    if usual is not None and usual > most:
        text = msg("It must not be above limits.terminationGraceSeconds, which is {most}.", most=most)
        raise DefinitionError(f"defaults.{key}", text)
    return min(DEFAULT_GRACE_SECONDS, most) if usual is None else usual, most


def _log_keeping(document: object) -> LogKeeping:
    fields = read_mapping(document, "defaults.logs", ("maxMBPerTask", "keepDays"))
    most = read_number(fields, "maxMBPerTask", "defaults.logs.", least=1)
    days = read_number(fields, "keepDays", "defaults.logs.", least=1)
    usual = LogKeeping()
    return LogKeeping(
        usual.max_mb_per_task if most is None else most, usual.keep_days if days is None else days
    )


def _registries(document: object) -> Registries:
    if document is None:
        return Registries()
    patterns = read_list(document, "registries")
    for number, pattern in enumerate(patterns):
        if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern):
            text = msg(
                "A registry is a host name, with a port if need be, such as registry.example.org:5000; "
                "* stands for any part of one."
            )
            raise DefinitionError(f"registries[{number}]", text)
    return Registries(tuple(patterns))


def _percent(fields: Mapping[str, Any], key: str, path: str, default: float | None) -> float:
    value = fields.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise DefinitionError(f"{path}.{key}", msg("This must be a per cent, 0 to 100."))
    return float(value)
