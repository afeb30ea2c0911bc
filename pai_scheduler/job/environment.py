"""The environment of a task: everything it is told about itself, its job and its gang.

job-contract.md, section 2: the variables of the SCM manual, of OpenPAI's job tutorial, and those that
old examples and clients still read. Linux hands no program a variable longer than 128 KiB: roles of more
than some 5,000 tasks cannot have their PAI_TASK_ROLE_R_HOST_LIST, and it is left out for them.
"""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from .spec import JobSpec, Scalar, TaskRole, uri_name
from .task import TaskRef
from .validation import MAX_ARGUMENT_BYTES

#: Who of the gang is meant: role name and task index.
MemberKey = tuple[str, int]

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_NO_SHELL_NAME = re.compile(r"[^A-Za-z0-9_]")


class GpuLike(Protocol):
    """A GPU that a task was given."""

    @property
    def index(self) -> int:
        """Return the GPU's number on its node."""

    @property
    def uuid(self) -> str:
        """Return NVIDIA's name for it, empty where not known."""


@dataclass(frozen=True, slots=True)
class StorageUris:
    """A job's storage URIs with their variables filled in; empty where the job names none."""

    auth_file: str
    data_dir: str
    output_dir: str
    code_dir: str
    #: of `extras.mounts`, in their order
    mounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StorageAccess:
    """A task's access to the storage: a token valid while the job lasts, files with it, and the job's code.

    Paths are as the task sees them; empty: there is none.
    """

    token: str
    netrc: str = ""
    hdfscli: str = ""
    code_folder: str = ""


def storage_uris(spec: JobSpec, user: str, default_fs_uri: str) -> StorageUris:
    """Fill in a job's storage URIs: $PAI_DEFAULT_FS_URI, $PAI_JOB_NAME and $PAI_USER_NAME (${…} too).

    $PAI_USERNAME is another word for $PAI_USER_NAME. Unknown variables stay as they are.
    An empty outputDir is `<default_fs_uri>/Output/<user>/<jobName>`.
    """
    folder = uri_name(user)
    values = {
        "PAI_DEFAULT_FS_URI": default_fs_uri,
        "PAI_JOB_NAME": spec.name,
        "PAI_USER_NAME": folder,
        "PAI_USERNAME": folder,
    }

    def fill(uri: str) -> str:
        return _VARIABLE.sub(lambda match: values.get(match[1] or match[2], match[0]), uri)

    return StorageUris(
        auth_file=fill(spec.auth_file),
        data_dir=fill(spec.data_dir),
        output_dir=fill(spec.output_dir) or f"{default_fs_uri.rstrip('/')}/Output/{folder}/{spec.name}",
        code_dir=fill(spec.code_dir),
        mounts=tuple(fill(mount.source) for mount in spec.mounts),
    )


def task_environment(
    spec: JobSpec,
    task: TaskRef,
    *,
    user: str,
    addresses: Mapping[MemberKey, str],
    ports: Mapping[MemberKey, Mapping[str, Sequence[int]]],
    gpus: Sequence[GpuLike],
    default_fs_uri: str,
    work_dir: str,
    container_id: str,
    shared: Mapping[str, str] | None = None,
    access: StorageAccess | None = None,
    folders: Sequence[str] = (),
    launcher: str = "",
) -> Mapping[str, str]:
    """Return the environment of one task.

    `addresses` and `ports` hold every task of the gang, `ports` by label and with `http` and `ssh`.
    `gpus` are those that this task may see, in the order in which it sees them. `work_dir` is the task's
    working folder as the task sees it; `container_id` what a person finds it by. KeyError where a member of
    the gang is missing. `shared` is what `gang_environment` gave for the gang: for thousands of tasks it is
    nearly everything, so it is made once and the environments refer to it. Without a storage there is no
    `access`. `folders`: where the task finds what an administrator shares with its user. `launcher`: where
    it finds `launch.py`; empty: its command does not name that.
    """
    if shared is None:
        shared = gang_environment(spec, addresses, ports)
    role, own_ports = spec.role(task.role), ports[task.role, task.index]
    environment = _job_variables(spec, user, default_fs_uri)
    environment |= _role_variables(role)
    environment |= _task_variables(role, task.index, addresses[task.role, task.index], own_ports)
    environment |= _gpu_variables(gpus)
    if access is not None:
        environment |= _storage_variables(access)
    if folders:
        environment["PAI_SHARED_FOLDERS"] = ":".join(folders)
    if launcher:
        environment["PAI_LAUNCH"] = launcher
    environment |= {"PAI_WORK_DIR": work_dir, "PAI_CONTAINER_ID": container_id}
    environment = {name: value for name, value in environment.items() if _fits(name, value)}
    environment |= {name: scalar_text(value) for name, value in spec.envs.items()}
    return ChainMap(environment, cast(MutableMapping[str, str], shared))


def gang_environment(
    spec: JobSpec,
    addresses: Mapping[MemberKey, str],
    ports: Mapping[MemberKey, Mapping[str, Sequence[int]]],
) -> Mapping[str, str]:
    """Return what all tasks of a gang are told about each other; the parameters are `task_environment`'s."""
    variables = _gang_variables(spec, addresses, ports)
    return {name: value for name, value in variables.items() if _fits(name, value)}


def scalar_text(value: Scalar) -> str:
    """Write a scalar of a job JSON as a variable's value: null is empty, a boolean `true` or `false`."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _job_variables(spec: JobSpec, user: str, default_fs_uri: str) -> dict[str, str]:
    uris = storage_uris(spec, user, default_fs_uri)
    tasks, roles = str(spec.total_tasks), str(len(spec.task_roles))
    role_list = ",".join(role.name for role in spec.task_roles)
    return {
        "PAI_JOB_NAME": spec.name,
        "PAI_JOB_VC_NAME": spec.virtual_cluster,
        "PAI_USER_NAME": user,
        "PAI_USERNAME": user,
        "HADOOP_USER_NAME": user,
        "FRAMEWORK_NAME": f"{user}~{spec.name}",
        "PAI_DEFAULT_FS_URI": default_fs_uri,
        "PAI_DATA_DIR": uris.data_dir,
        "PAI_OUTPUT_DIR": uris.output_dir,
        "PAI_CODE_DIR": uris.code_dir,
        "PAI_JOB_TASK_COUNT": tasks,
        "PAI_TASKS_NUM": tasks,
        "PAI_JOB_TASK_ROLE_COUNT": roles,
        "PAI_TASK_ROLE_COUNT": roles,
        "PAI_TASK_ROLES_NUM": roles,
        "PAI_JOB_TASK_ROLE_LIST": role_list,
        "PAI_TASK_ROLE_LIST": role_list,
    }


def _role_variables(role: TaskRole) -> dict[str, str]:
    return {
        "PAI_CURRENT_TASK_ROLE_NAME": role.name,
        "PAI_TASK_ROLE_NAME": role.name,
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": str(role.task_number),
        "PAI_TASK_ROLE_NUM": str(role.task_number),
        "PAI_CURRENT_TASK_ROLE_CPU_COUNT": str(role.cpu_number),
        "PAI_TASK_CPU_NUM": str(role.cpu_number),
        "PAI_CURRENT_TASK_ROLE_MEM_MB": str(role.memory_mb),
        "PAI_TASK_MEM_MB": str(role.memory_mb),
        "PAI_CURRENT_TASK_ROLE_SHM_MB": str(role.shm_mb),
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": str(role.gpu_number),
        "PAI_TASK_GPU_NUM": str(role.gpu_number),
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": scalar_text(role.min_failed_task_count),
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": scalar_text(role.min_succeeded_task_count),
    }


def _task_variables(
    role: TaskRole, index: int, address: str, ports: Mapping[str, Sequence[int]]
) -> dict[str, str]:
    # as the portList has them, http and ssh last where they are not in it
    lists = {port.label: _port_list(ports[port.label]) for port in role.all_ports}
    twins = _twins(lists)
    return {
        **{f"PAI_CONTAINER_HOST_{twins[label]}_PORT_LIST": text for label, text in lists.items()},
        **{f"PAI_CONTAINER_HOST_{label}_PORT_LIST": text for label, text in lists.items()},
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index),
        "PAI_TASK_INDEX": str(index),
        "PAI_TASK_ROLE_INDEX": str(index),
        "PAI_CONTAINER_HOST_IP": address,
        "PAI_CURRENT_CONTAINER_IP": address,
        "PAI_CONTAINER_HOST_PORT_LIST": ";".join(f"{label}:{text}" for label, text in lists.items()),
        "PAI_CONTAINER_HOST_PORT": str(ports["http"][0]),
        "PAI_CURRENT_CONTAINER_PORT": str(ports["http"][0]),
        "PAI_CONTAINER_SSH_PORT": str(ports["ssh"][0]),
    }


def _storage_variables(access: StorageAccess) -> dict[str, str]:
    variables = {
        "PAI_STORAGE_TOKEN": access.token,
        "NETRC": access.netrc,
        "HDFSCLI_CONFIG": access.hdfscli,
        "PAI_CODE_FOLDER": access.code_folder,
    }
    return {name: value for name, value in variables.items() if value}


def _gpu_variables(gpus: Sequence[GpuLike]) -> dict[str, str]:
    """Name the GPUs by uuid, which means the same inside a container, or by index where one has none."""
    if not gpus:
        return {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "none"}
    named = all(gpu.uuid for gpu in gpus)
    visible = ",".join(gpu.uuid if named else str(gpu.index) for gpu in gpus)
    return {"CUDA_VISIBLE_DEVICES": visible, "NVIDIA_VISIBLE_DEVICES": visible}


def _gang_variables(
    spec: JobSpec,
    addresses: Mapping[MemberKey, str],
    ports: Mapping[MemberKey, Mapping[str, Sequence[int]]],
) -> dict[str, str]:
    """Return the variables about every role and task; two where a name cannot stand in a shell variable."""
    twins = _twins(role.name for role in spec.task_roles)
    real: dict[str, str] = {}
    twin: dict[str, str] = {}
    for role in spec.task_roles:
        labels = [port.label for port in role.all_ports]
        as_is = {label: label for label in labels}
        members = [
            _MemberPlace(addresses[role.name, index], ports[role.name, index])
            for index in range(role.task_number)
        ]
        real.update(_about_role(role, members, role.name, as_is))
        twin.update(_about_role(role, members, twins[role.name], _twins(labels)))
    # a twin never takes the place of a variable that has its name by right
    return twin | real


@dataclass(frozen=True, slots=True)
class _MemberPlace:
    address: str
    ports: Mapping[str, Sequence[int]]


def _about_role(
    role: TaskRole, members: Sequence[_MemberPlace], name: str, labels: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Return the variables about a role, with `name` for it and `labels` for its port labels."""
    resource = (role.gpu_number, role.cpu_number, role.memory_mb, role.shm_mb)
    yield f"PAI_TASK_ROLE_TASK_COUNT_{name}", str(role.task_number)
    yield f"PAI_RESOURCE_{name}", ",".join(map(str, resource))
    yield f"PAI_MIN_FAILED_TASK_COUNT_{name}", scalar_text(role.min_failed_task_count)
    yield f"PAI_MIN_SUCCEEDED_TASK_COUNT_{name}", scalar_text(role.min_succeeded_task_count)
    yield (
        f"PAI_TASK_ROLE_{name}_HOST_LIST",
        ",".join(f"{member.address}:{member.ports['http'][0]}" for member in members),
    )
    for index, member in enumerate(members):
        yield f"PAI_HOST_IP_{name}_{index}", member.address
        for label, label_name in labels.items():
            yield f"PAI_PORT_LIST_{name}_{index}_{label_name}", _port_list(member.ports[label])
            yield f"PAI_{name}_{index}_{label_name}_PORT", str(member.ports[label][0])


def _twins(names: Iterable[str]) -> dict[str, str]:
    """Map each name to one that can stand in a shell variable (`_` for `.` and `~`).

    A name maps to itself where it needs no twin, or where the twin would be another one's name.
    """
    names = list(names)
    taken, twins = set(names), {}
    for name in names:
        twin = _NO_SHELL_NAME.sub("_", name)
        twins[name] = name if twin in taken else twin
        taken.add(twins[name])
    return twins


def _port_list(ports: Sequence[int]) -> str:
    return ",".join(map(str, ports))


def _fits(name: str, value: str) -> bool:
    return len(name.encode()) + 1 + len(value.encode()) <= MAX_ARGUMENT_BYTES
