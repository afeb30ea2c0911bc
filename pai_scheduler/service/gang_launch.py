"""What the tasks of one attempt get: environment, files, keys, limits. Pure: everything is known already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pai_scheduler.cluster.node import Gpu
from pai_scheduler.core.model import Job, Task
from pai_scheduler.engine.protocol import Gang, Launch
from pai_scheduler.job.environment import StorageAccess, gang_environment, task_environment
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.keys.job_keys import JobKeys
from pai_scheduler.ssh.keys.task_files import Peer, own_port, ssh_files

from .inputs import Inputs
from .launch_file import LAUNCHER, launcher_files
from .storage_login import HDFSCLI, NETRC, access_files


class Places(Protocol):
    """Where an engine's tasks find what is theirs: paths as a task sees them."""

    own_ssh_server: bool

    def work_dir(self, task: TaskRef) -> str:
        """Return the folder in which a task's command starts."""

    def private_dir(self, task: TaskRef) -> str:
        """Return the folder with the files that only the task may read."""

    def code_dir(self, code: Path) -> str:
        """Return where the job's code is."""


class GangLaunch:
    """What all tasks of an attempt share, and what each of them gets.

    `addresses` are the tasks' own; `inputs` was fetched for the job; `told` is its specification as the tasks
    are told of it. `keys`: None where nobody logs into tasks.
    """

    def __init__(
        self,
        job: Job,
        gang: Gang,
        addresses: Mapping[TaskRef, str],
        inputs: Inputs,
        places: Places,
        *,
        told: JobSpec,
        default_fs_uri: str,
        default_storage_gb: int,
        keys: JobKeys | None = None,
    ) -> None:
        self._job, self._told, self._inputs, self._places = job, told, inputs, places
        self._addresses, self._default_fs_uri = addresses, default_fs_uri
        self._default_storage_gb, self._has_ssh = default_storage_gb, keys is not None
        self._by_task = {(ref.role, ref.index): address for ref, address in addresses.items()}
        self._ports = {(member.task.role, member.task.index): member.ports for member in gang.members}
        self._hosts = {ref.hostname: address for ref, address in addresses.items()}
        self._shared = gang_environment(job.spec, self._by_task, self._ports)
        self._storage_files = (
            access_files(job.user, inputs.token, default_fs_uri) if inputs.token else dict[str, bytes]()
        )
        if keys is None or places.own_ssh_server:
            self._ssh_files = dict[str, bytes]()
        else:
            self._ssh_files = _ssh_files(keys, gang, addresses)

    def of(self, task: Task, gpus: Sequence[Gpu]) -> Launch:
        """Return what one task gets; `gpus` are those that were chosen for it."""
        spec, inputs = self._job.spec, self._inputs
        role = spec.role(task.ref.role)
        port = _ssh_port(self._ports[task.ref.role, task.ref.index]) if self._has_ssh else None
        return Launch(
            task=task.ref,
            node=task.assignment.node,
            user=self._job.user,
            job_name=self._job.name,
            image=spec.image,
            command=role.command,
            env=self._environment(task, gpus),
            cpus=role.cpu_number,
            memory_mb=role.memory_mb,
            shm_mb=role.shm_mb,
            storage_gb=self._default_storage_gb if role.storage_gb is None else role.storage_gb,
            gpus=tuple(gpus),
            address=self._addresses[task.ref],
            hosts=self._hosts,
            hold_on_failure=spec.is_debug,
            login=inputs.login,
            code=inputs.code,
            mounts=inputs.mounts,
            shared=inputs.shared,
            home=spec.home,
            files={
                **self._storage_files,
                **self._ssh_files,
                **({} if port is None or self._places.own_ssh_server else own_port(port)),
                **launcher_files(role.command),
            },
            ssh_port=port,
        )

    def _environment(self, task: Task, gpus: Sequence[Gpu]) -> Mapping[str, str]:
        return task_environment(
            self._told,
            task.ref,
            user=self._job.user,
            addresses=self._by_task,
            ports=self._ports,
            gpus=tuple(gpus),
            default_fs_uri=self._default_fs_uri,
            work_dir=self._places.work_dir(task.ref),
            container_id=task.ref.name,
            shared=self._shared,
            access=self._storage_access(task.ref) if self._inputs.token else None,
            folders=[mount.target for mount in self._inputs.shared],
            launcher=self._launcher(task.ref),
        )

    def _launcher(self, task: TaskRef) -> str:
        wanted = launcher_files(self._job.spec.role(task.role).command)
        return f"{self._places.private_dir(task)}/{LAUNCHER}" if wanted else ""

    def _storage_access(self, task: TaskRef) -> StorageAccess:
        private, code = self._places.private_dir(task), self._inputs.code
        files = {name: f"{private}/{name}" for name in self._storage_files}
        return StorageAccess(
            self._inputs.token,
            files.get(NETRC, ""),
            files.get(HDFSCLI, ""),
            self._places.code_dir(code) if code is not None else "",
        )


def _ssh_files(keys: JobKeys, gang: Gang, addresses: Mapping[TaskRef, str]) -> dict[str, bytes]:
    peers = {
        member.task.hostname: Peer(addresses[member.task], port)
        for member in gang.members
        if (port := _ssh_port(member.ports)) is not None
    }
    return ssh_files(keys.identity(gang.job_id), keys.host(gang.job_id), peers)


def _ssh_port(ports: Mapping[str, Sequence[int]]) -> int | None:
    """Find the port of a task's own SSH server among its ports by label."""
    return next(iter(ports.get("ssh", ())), None)
