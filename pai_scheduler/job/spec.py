"""A job as the scheduler understands it: the validated job JSON with defaults filled in.

Field meanings: job-contract.md, section 1 (OpenPAI v0.14's job JSON and SCM's additions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from .after import AfterRequest, after_of
from .notify import NotifyRequest, notify_of

Scalar = str | int | float | bool | None

#: Every role has these ports, listed in its `portList` or not.
STANDARD_PORTS = ("http", "ssh")
#: `extras.priority` of a job that does not say.
DEFAULT_PRIORITY = 50


class PortRequest(msgspec.Struct, frozen=True, gc=False):
    """A labelled range of `count` ports from `begin_at` on; `begin_at` 0: chosen by the scheduler."""

    label: str
    begin_at: int
    count: int


@dataclass(frozen=True, slots=True)
class MountRequest:
    """A folder of the storage, as a URI, that tasks find at `target`, in the working folder or absolute."""

    source: str
    target: str


class TaskRole(msgspec.Struct, frozen=True, gc=False):
    """One kind of task, and how many of it run. Memory and shared memory in MB, storage in GB."""

    name: str
    command: str
    task_number: int = 1
    cpu_number: int = 1
    memory_mb: int = 100
    shm_mb: int = 64
    gpu_number: int = 0
    storage_gb: int | None = None
    ports: tuple[PortRequest, ...] = ()
    #: None: failed tasks never fail the job.
    min_failed_task_count: int | None = 1
    #: None: the attempt succeeds when all tasks have completed.
    min_succeeded_task_count: int | None = None

    @property
    def all_ports(self) -> tuple[PortRequest, ...]:
        """Return the listed ports and those every role has (`http`, `ssh`)."""
        listed = {port.label for port in self.ports}
        return self.ports + tuple(PortRequest(label, 0, 1) for label in STANDARD_PORTS if label not in listed)


class JobSpec(msgspec.Struct, frozen=True, gc=False):
    """A whole job. Storage URIs as written: variables in them are substituted per task.

    Of these there may be a million: they are made in C, and hold nothing that leads back to them, so that
    Python need not look for cycles among them.
    """

    name: str
    image: str
    task_roles: tuple[TaskRole, ...]
    auth_file: str = ""
    data_dir: str = ""
    output_dir: str = ""
    code_dir: str = ""
    virtual_cluster: str = "default"
    #: None: any type will do, but one task's GPUs are always of one type.
    gpu_type: str | None = None
    retry_count: int = 0
    envs: Mapping[str, Scalar] = {}
    extras: Mapping[str, Any] = {}

    @property
    def is_debug(self) -> bool:
        """Return whether a failed task keeps its container (`jobEnvs.isDebug`)."""
        return self.envs.get("isDebug") in (True, "true")

    @property
    def priority(self) -> int:
        """Return `extras.priority`: 0–100, higher comes first within its virtual cluster."""
        return int(self.extras.get("priority", DEFAULT_PRIORITY))

    @property
    def max_run_seconds(self) -> int | None:
        """Return `extras.maxRunSeconds`: how long an attempt may run; None: as the virtual cluster has it."""
        return self.extras.get("maxRunSeconds")

    @property
    def termination_grace_seconds(self) -> int | None:
        """Return `extras.terminationGraceSeconds`: how long a task that is being stopped may run on.

        None: as the cluster has it.
        """
        return self.extras.get("terminationGraceSeconds")

    @property
    def spread(self) -> bool:
        """Return whether tasks of a role are wanted on different nodes (`extras.placement`), not near."""
        return self.extras.get("placement") == "spread"

    @property
    def mounts(self) -> tuple[MountRequest, ...]:
        """Return `extras.mounts`: folders of the storage that tasks find as folders."""
        return tuple(
            MountRequest(mount["source"], mount["target"]) for mount in self.extras.get("mounts", ())
        )

    @property
    def home(self) -> str:
        """Return `extras.home`: where tasks find their user's home that stays; empty: nowhere."""
        return str(self.extras.get("home", ""))

    @property
    def shared_folders(self) -> tuple[str, ...]:
        """Return `extras.sharedFolders`: names of folders that an administrator shares; `*`: all."""
        return tuple(self.extras.get("sharedFolders", ()))

    @property
    def after(self) -> tuple[AfterRequest, ...]:
        """Return `extras.after`: the jobs that this one waits for, by their names; read at its submission."""
        return after_of(self.extras)

    @property
    def notify(self) -> NotifyRequest | None:
        """Return `extras.notify`: who outside is told of the job's end; None: nobody."""
        return notify_of(self.extras)

    @property
    def preemptible(self) -> bool:
        """Return whether the job may be stopped for others, and so may borrow (`extras.preemptible`)."""
        return bool(self.extras.get("preemptible", True))

    @property
    def may_be_interrupted(self) -> bool:
        """Return whether its owner said that it may be stopped for others of its own virtual cluster too."""
        return self.extras.get("preemptible") is True

    @property
    def total_tasks(self) -> int:
        """Return the number of tasks in all roles."""
        return sum(role.task_number for role in self.task_roles)

    @property
    def total_gpus(self) -> int:
        """Return the number of GPUs that all tasks take together."""
        return sum(role.task_number * role.gpu_number for role in self.task_roles)

    def role(self, name: str) -> TaskRole:
        """Find a role by its name; KeyError where there is none."""
        for role in self.task_roles:
            if role.name == name:
                return role
        raise KeyError(name)


def renamed(spec: JobSpec, name: str) -> JobSpec:
    """Return the same job under another name."""
    return msgspec.structs.replace(spec, name=name)
