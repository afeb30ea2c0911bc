"""The engine protocol: what the scheduler asks of an engine, and what an engine reports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pai_scheduler.cluster.node import DiskSpace, Gpu, Node
from pai_scheduler.cluster.shared_folders import SharedMount
from pai_scheduler.core.events import (
    EndCause,
    Ended,
    HeldAfterFailure,
    NodesChanged,
    Notice,
    Noticed,
    Progress,
    Started,
)
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef

from .logs.reader import TaskLog

# What engines say about tasks that go on all the same.


def process_killed(task: TaskRef, time: int, memory_mb: int) -> Noticed:
    """Return the notice that the kernel ended one of a task's processes for its memory limit (MB)."""
    message = msg(
        "A process of task {task} was killed for memory: together its processes used more than its {memory} "
        "MB. Ask for more memory, or use less.",
        task=task.hostname,
        memory=memory_mb,
    )
    return Noticed(task, time, Notice.PROCESS_KILLED, message, {"memoryMB": memory_mb})


def log_lost(task: TaskRef, time: int) -> Noticed:
    """Return the notice that the disk was too full for a task's log."""
    message = msg("The scheduler's disk is full: part of the log of task {task} is lost.", task=task.hostname)
    return Noticed(task, time, Notice.LOG_LOST, message)


def log_shortened(task: TaskRef, time: int, most_bytes: int) -> Noticed:
    """Return the notice that a task's log has grown beyond its limit (bytes)."""
    most = most_bytes // 2**20
    message = msg(
        "The log of task {task} is longer than {most} MB: its beginning and its newest part are kept, what "
        "was between them is not. Print less, or write it to a file in the storage.",
        task=task.hostname,
        most=most,
    )
    return Noticed(task, time, Notice.LOG_SHORTENED, message, {"maxMB": most})


# What the scheduler asks of an engine, and what an engine reports; one conformance suite holds for all.
#
# The service calls an engine only after the intent is durable. Everything an engine starts is named by
# `TaskRef.name`, so that after a kill -9 of the service it finds what runs, and never starts it twice.


@dataclass(frozen=True, slots=True)
class GangMember:
    """A task's place in its gang: on which node, with which ports by label."""

    task: TaskRef
    node: str
    ports: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Gang:
    """All tasks of one attempt, which reach each other by name and address."""

    job_id: str
    attempt: int
    members: tuple[GangMember, ...]


@dataclass(frozen=True, slots=True)
class RegistryLogin:
    """Credentials for pulling an image from a registry that requires a login."""

    registry: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of this machine that a task sees read-only at `target`: in its working folder, or absolute."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything needed to run one task. MB and GB; `storage_gb` None: no limit known."""

    task: TaskRef
    node: str
    user: str
    job_name: str
    image: str
    #: Run by `sh -c`, or by bash where there is one; one argument, never pasted into a line of ours.
    command: str
    env: Mapping[str, str]
    cpus: int
    memory_mb: int
    shm_mb: int
    storage_gb: int | None = None
    gpus: tuple[Gpu, ...] = ()
    #: Address within the gang, as `Engine.prepare` gave it.
    address: str = ""
    #: host names of the whole gang and their addresses
    hosts: Mapping[str, str] = field(default_factory=dict)
    #: A command that fails does not end the task: `HeldAfterFailure` is told, all stays until a kill.
    hold_on_failure: bool = False
    #: for the image's registry, where it wants one
    login: RegistryLogin | None = None
    #: A folder of this machine: the task finds it read-only at `Engine.code_dir`, and a copy that it may
    #: change in its working folder, under the same name.
    code: Path | None = None
    mounts: tuple[Mount, ...] = ()
    #: folders and volumes of the machine it runs on, which an administrator shares with its user
    shared: tuple[SharedMount, ...] = ()
    #: absolute path at which the task finds its user's own home, the same in all of them; empty: nowhere
    home: str = ""
    #: small files by name, for this task alone, in `Engine.private_dir`
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    #: where its own SSH server is to listen, with the files of `access.task_files`; None: there is to be none
    ssh_port: int | None = None
    #: the network of its gang, by Docker's name; empty: the one that the engine itself has made
    network: str = ""


__all__ = [
    "EndCause",
    "Ended",
    "Engine",
    "EngineError",
    "EngineEvent",
    "Gang",
    "GangMember",
    "HeldAfterFailure",
    "Launch",
    "Mount",
    "NoSshEndpointError",
    "NodesChanged",
    "Notice",
    "Noticed",
    "Progress",
    "RegistryLogin",
    "SshEndpoint",
    "Started",
    "Usage",
]

EngineEvent = Started | HeldAfterFailure | Ended | Progress | Noticed | NodesChanged


@dataclass(frozen=True, slots=True)
class Usage:
    """Current usage of a task: per cent of one core, MB, bytes since its start; None: not known here."""

    time: int
    cpu_percent: float
    memory_mb: float
    net_rx_bytes: int | None = None
    net_tx_bytes: int | None = None
    disk_mb: float | None = None
    #: mean of its GPUs; None where it has none, or simulated ones only
    gpu_percent: float | None = None
    gpu_memory_mb: float | None = None


@dataclass(frozen=True, slots=True)
class SshEndpoint:
    """Address of a task's SSH server, as this machine reaches it; `published`: as others do, if they do.

    `isolated` False: the task has no machine of its own, and its loopback address is this machine's.
    `signals`: the program in the task that sends a signal to a session (`gateway/session.py`); None: the
    server does that itself.
    """

    host: str
    port: int
    published: tuple[str, int] | None = None
    isolated: bool = True
    signals: str | None = None


class NoSshEndpointError(Exception):
    """A task runs, or may run, without an SSH server; `message` says why."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class EngineError(Exception):
    """An engine cannot work at all (no Docker socket …); `message` says what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class Engine(Protocol):
    """Runs tasks. All calls are coroutines of the service's one loop and never block it."""

    #: As `--engine` names it.
    name: str
    #: True: all tasks share the ports of one machine, so the scheduler must keep them apart (`process`).
    shares_host_ports: bool
    #: True: it has one machine, for which all nodes stand that an administrator declares.
    one_machine: bool
    #: True: its tasks' SSH server is a program of ours, which the engine itself gives its files at its start;
    #: else it is OpenSSH's, with its clients beside it, and its files are among those of the launch.
    own_ssh_server: bool

    @property
    def front_door_url(self) -> str | None:
        """Return the address under which tasks reach the Hub's proxy; None: the one that browsers use."""

    @property
    def storage_host(self) -> str | None:
        """Return the host name by which tasks reach this service for the storage, and nothing else.

        A netrc entry counts for all ports of its host, and Python's `requests` puts it in the place of an
        `Authorization` that a program gave. None: tasks have no such name.
        """

    @property
    def bridge_address(self) -> str | None:
        """Return this host's address for tasks that its loopback address is not for; None: there are none."""

    async def start(self) -> None:
        """Connect; EngineError where that is impossible. Nothing is started or ended by this."""

    async def close(self) -> None:
        """Close the engine; tasks run on."""

    async def nodes(self) -> Sequence[Node]:
        """Return this engine's machines as they are (GPUs asked from NVML)."""

    def disk(self, node: str) -> DiskSpace | None:
        """Return the room on the disk that tasks fill on a node, as it is known here; None: it is not.

        An engine that has one machine tells of that, whatever the name. Costs no more than a look at a file
        system: it is asked for each node whenever somebody looks at the nodes or at the metrics.
        """

    async def refuses_image(self, image: str) -> Message | None:
        """Return why no task may have an image, as far as that can be told at once; None where one may."""

    async def adopt(self, expected: Mapping[TaskRef, str]) -> None:
        """After a start of the service, take up every expected task and end every other that has our names.

        `expected` has the node of each.

        Events follow for the expected ones: `Started`, `Ended`, or nothing for one that was never launched
        and may be launched now.
        """

    async def prepare(self, gang: Gang) -> Mapping[TaskRef, str]:
        """Make the gang's network; give each member's address. Idempotent: the same answer again."""

    async def taken_ports(self, gang: Gang, ports: Collection[int]) -> Collection[int]:
        """Find those of `ports` that other programs have, where tasks share the ports of one machine.

        None once something of the gang was launched: then it may have them itself, and keeps them.
        """

    async def launch(self, launch: Launch) -> None:
        """Start a task; returns when that is under way.

        Idempotent by the task's name: what runs or has run is not run again. Success or failure comes as an
        event (`Progress`…, then `Started`, and once `Ended`).
        """

    async def kill(self, task: TaskRef, grace_seconds: float) -> None:
        """End a task and its whole process tree: SIGTERM, after the grace SIGKILL.

        Idempotent, also for a task that was never launched (it never will be then). One `Ended` event
        follows, unless there was one.
        """

    async def disk_use(self) -> Mapping[TaskRef, int]:
        """Return the bytes that each running task has on a disk that is watched, its log among them."""

    async def end_for_room(self, task: TaskRef) -> None:
        """End a running task at once because its machine's disk is full: its `Ended` has cause DISK."""

    async def release(self, gang: Gang) -> None:
        """Remove what an ended gang left (containers, network, scratch); logs stay. Idempotent."""

    def events(self) -> AsyncIterator[EngineEvent]:
        """Return events as they come, while the engine is open; after a break it resumes by itself."""

    async def forget(self, task: TaskRef) -> None:
        """Remove the log of an ended task, and whatever else is kept of it. Idempotent."""

    def work_dir(self, task: TaskRef) -> str:
        """Return a task's working folder as the task sees it (`PAI_WORK_DIR`)."""

    def private_dir(self, task: TaskRef) -> str:
        """Return the folder of a task's `Launch.files` as the task sees it."""

    def code_dir(self, code: Path) -> str:
        """Return the place where tasks see the folder `Launch.code`, read-only."""

    def log(self, task: TaskRef) -> TaskLog:
        """Return a task's log, which outlives the task."""

    async def usage(self, task: TaskRef) -> Usage | None:
        """Measure a running task; None where it does not run."""

    async def reach(self, task: TaskRef, port: int) -> tuple[str, int] | None:
        """Return host and port at which this machine reaches a port of a task; None: its own address."""

    async def ssh_endpoint(self, task: TaskRef) -> SshEndpoint:
        """Return where a running task's SSH server listens, started if need be; or NoSshEndpointError."""
