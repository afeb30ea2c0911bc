"""The variables that a task gets: each with its meaning, and the value it has in the page's example.

A variable without a meaning, or a meaning without a variable, is an error: the page cannot forget one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pai_scheduler.job.environment import StorageAccess, task_environment
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validation import parse_job

#: The job whose second worker the page's examples are of.
EXAMPLE: Mapping[str, Any] = {
    "jobName": "train",
    "image": "python:3.12",
    "codeDir": "$PAI_DEFAULT_FS_URI/alice/train",
    "taskRoles": [
        {"name": "ps", "cpuNumber": 2, "memoryMB": 2048, "command": "python ps.py"},
        {
            "name": "worker",
            "taskNumber": 2,
            "cpuNumber": 4,
            "memoryMB": 8192,
            "gpuNumber": 1,
            "portList": [{"label": "grpc", "beginAt": 0, "portNumber": 2}],
            "command": "python worker.py",
        },
    ],
}
_USER, _TASK = "alice", ("worker", 1)
_DEFAULT_FS = "http://pai-storage:9186"

#: What may stand where a name has a placeholder: the example's own, tried in this order.
_PLACES = {"role": ("ps", "worker"), "index": ("0", "1"), "label": ("grpc", "http", "ssh")}

#: Names and meanings by subject. `<role>`, `<index>` and `<label>` stand for every one there is.
MEANINGS: Mapping[str, Mapping[str, str]] = {
    "The job": {
        "PAI_JOB_NAME": "`jobName`",
        "PAI_JOB_VC_NAME": "the virtual cluster it runs in",
        "PAI_USER_NAME": "who submitted it",
        "PAI_DEFAULT_FS_URI": "where storage begins; what `$PAI_DEFAULT_FS_URI` in a job stands for",
        "PAI_DATA_DIR": "`dataDir`, its variables filled in",
        "PAI_OUTPUT_DIR": "`outputDir`, its variables filled in; the default where the job names none",
        "PAI_CODE_DIR": "`codeDir`, its variables filled in",
        "PAI_CODE_FOLDER": "where the code is as it was fetched, read-only; only with a `codeDir`",
        "PAI_JOB_TASK_COUNT": "number of tasks of all roles",
        "PAI_JOB_TASK_ROLE_COUNT": "number of task roles",
        "PAI_JOB_TASK_ROLE_LIST": "names of the task roles",
        "PAI_TASK_ROLE_COUNT": "the same as `PAI_JOB_TASK_ROLE_COUNT`",
        "PAI_TASK_ROLE_LIST": "the same as `PAI_JOB_TASK_ROLE_LIST`",
    },
    "The storage": {
        "PAI_STORAGE_TOKEN": "opens the storage to this job, as its user; nothing once the job has ended",
        "NETRC": "a file with that token, which `requests` and the `hdfs` library read by themselves",
        "HDFSCLI_CONFIG": "the configuration of `hdfscli`, with the storage as its alias `pai`",
    },
    "The role of this task": {
        "PAI_CURRENT_TASK_ROLE_NAME": "`name`",
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "`taskNumber`",
        "PAI_CURRENT_TASK_ROLE_CPU_COUNT": "`cpuNumber`",
        "PAI_CURRENT_TASK_ROLE_MEM_MB": "`memoryMB`",
        "PAI_CURRENT_TASK_ROLE_SHM_MB": "`shmMB`",
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": "`gpuNumber`",
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": "`minFailedTaskCount`; empty for null",
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": "`minSucceededTaskCount`; empty for null",
    },
    "This task": {
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "which task of its role it is, from 0",
        "PAI_WORK_DIR": "its working folder, in which sessions begin; of a notebook server its user's home",
        "PAI_LAUNCH": "[`launch.py`](distributed.md); only where the command names this variable",
        "PAI_CONTAINER_ID": "the name of its container, or of whatever runs it; `containerId` over REST",
        "PAI_CONTAINER_HOST_IP": "its address",
        "PAI_CONTAINER_HOST_PORT_LIST": "all its ports, by label",
        "PAI_CONTAINER_HOST_<label>_PORT_LIST": "its ports of this label",
        "PAI_CONTAINER_SSH_PORT": "its `ssh` port",
        "CUDA_VISIBLE_DEVICES": "the GPUs it was given (uuid, or index where one has none); it sees no other",
        "NVIDIA_VISIBLE_DEVICES": "the same; `none` for a task without GPUs",
    },
    "Every role of the job": {
        "PAI_TASK_ROLE_TASK_COUNT_<role>": "its `taskNumber`",
        "PAI_RESOURCE_<role>": "what each of its tasks has: GPUs, CPUs, MB of memory, MB of shared memory",
        "PAI_MIN_FAILED_TASK_COUNT_<role>": "its `minFailedTaskCount`; empty for null",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_<role>": "its `minSucceededTaskCount`; empty for null",
        "PAI_TASK_ROLE_<role>_HOST_LIST": "address and `http` port of each of its tasks, by index",
    },
    "Every task of the job": {
        "PAI_HOST_IP_<role>_<index>": "its address",
        "PAI_PORT_LIST_<role>_<index>_<label>": "its ports of this label",
        "PAI_<role>_<index>_<label>_PORT": "the first of them",
    },
    "Older names, for programs that read them": {
        "PAI_USERNAME": "`PAI_USER_NAME`",
        "HADOOP_USER_NAME": "`PAI_USER_NAME`",
        "FRAMEWORK_NAME": "user and job, with `~` between them",
        "PAI_TASKS_NUM": "`PAI_JOB_TASK_COUNT`",
        "PAI_TASK_ROLES_NUM": "`PAI_JOB_TASK_ROLE_COUNT`",
        "PAI_TASK_ROLE_NAME": "`PAI_CURRENT_TASK_ROLE_NAME`",
        "PAI_TASK_ROLE_NUM": "`PAI_CURRENT_TASK_ROLE_TASK_COUNT`",
        "PAI_TASK_ROLE_INDEX": "`PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX`",
        "PAI_TASK_INDEX": "`PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX`",
        "PAI_TASK_CPU_NUM": "`PAI_CURRENT_TASK_ROLE_CPU_COUNT`",
        "PAI_TASK_MEM_MB": "`PAI_CURRENT_TASK_ROLE_MEM_MB`",
        "PAI_TASK_GPU_NUM": "`PAI_CURRENT_TASK_ROLE_GPU_COUNT`",
        "PAI_CURRENT_CONTAINER_IP": "`PAI_CONTAINER_HOST_IP`",
        "PAI_CURRENT_CONTAINER_PORT": "the task's `http` port",
        "PAI_CONTAINER_HOST_PORT": "the task's `http` port",
    },
}


class PageError(Exception):
    """What is set and what is explained differ."""


@dataclass(frozen=True)
class Variable:
    """A variable as the page shows it."""

    name: str
    meaning: str
    example: str


@dataclass(frozen=True)
class _ExampleGpu:
    index: int
    uuid: str


def facts(_locale: str) -> Mapping[str, Any]:
    """Return what the page about the environment says in facts; PageError where it would forget something."""
    values = _example_values()
    by_name = {name: list(names_of(name)) for group in MEANINGS.values() for name in group}
    explained = {actual for names in by_name.values() for actual in names}
    if forgotten := values.keys() - explained:
        raise PageError(f"docs/generate/environment.py does not explain {', '.join(sorted(forgotten))}")
    subjects: dict[str, list[Variable]] = {}
    for subject, group in MEANINGS.items():
        subjects[subject] = []
        for name, meaning in group.items():
            found = [actual for actual in by_name[name] if actual in values]
            if not found:
                raise PageError(f"no task gets {name}, which docs/generate/environment.py explains")
            subjects[subject].append(Variable(name, meaning, _shown(name, found[-1], values[found[-1]])))
    return {"subjects": subjects, "example": json.dumps(EXAMPLE, indent=2)}


def names_of(name: str, places: Mapping[str, tuple[str, ...]] = _PLACES) -> Iterator[str]:
    """Return the names that a name with placeholders stands for."""
    place = re.search(r"<(\w+)>", name)
    if place is None:
        yield name
        return
    for value in places[place[1]]:
        yield from names_of(name.replace(place[0], value, 1), places)


def _shown(name: str, actual: str, value: str) -> str:
    text = f"`{value}`" if value else "(empty)"
    return text if actual == name else f"`{actual}`: {text}"


def _example_values() -> Mapping[str, str]:
    spec: JobSpec = parse_job(EXAMPLE)
    members = [(role.name, index) for role in spec.task_roles for index in range(role.task_number)]
    addresses = {member: f"172.18.0.{number}" for number, member in enumerate(members, 2)}
    ports, free = {}, iter(range(20000, 30000))
    for role, index in members:
        ports[role, index] = {
            port.label: tuple(next(free) for _ in range(port.count)) for port in spec.role(role).all_ports
        }
    task = TaskRef("q7", 0, *_TASK)
    return task_environment(
        spec,
        task,
        user=_USER,
        addresses=addresses,
        ports=ports,
        gpus=[_ExampleGpu(0, "GPU-5c2a7f10")],
        default_fs_uri=_DEFAULT_FS,
        work_dir="/pai",
        container_id=task.name,
        access=StorageAccess(
            "paijob-q7-5f0c…",
            netrc="/pai-job/netrc",
            hdfscli="/pai-job/hdfscli.cfg",
            code_folder="/pai-code/train",
        ),
        launcher="/pai-job/launch.py",
    )
