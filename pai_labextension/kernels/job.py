"""The job that a kernel is: one task, whose command waits for a notebook server to start the kernel."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROLE = "kernel"
#: By these names a notebook server finds its kernels again.
JOB_NAME = re.compile(r"kernel_[0-9a-f]{8}")
_KERNEL_ID = re.compile(r"[0-9a-f-]{36}")
_END_OF_FILE = "end-of-the-runner"

#: Nothing that a person typed stands in these lines, but for the program, which is quoted.
_COMMAND = """\
umask 077
folder={folder}
mkdir "$folder" 2>/dev/null || [ -O "$folder" ] || exit
cat >"$folder/runner.py" <<'{end}'
{source}
{end}
exec {python} "$folder/runner.py" serve "$folder" {idle}
"""
_ATTACH = """\
folder={folder}
until [ -S "$folder/control" ]; do sleep 0.1 || sleep 1; done
exec {python} -I -S "$folder/runner.py" attach "$folder"
"""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a kernel asks for. Memory in MB; `idle_seconds`: after so long without use it ends; 0: never."""

    image: str
    gpus: int
    gpu_type: str
    cpus: int
    memory_mb: int
    shm_mb: int
    virtual_cluster: str
    preemptible: bool
    idle_seconds: float
    python: str


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """What a kernel's job says of it, so that a notebook server that starts anew knows it again.

    `server`: which server it belongs to; `spec`: the name of its kernelspec; `path`: of the notebook when it
    was started, below the server's root.
    """

    id: str
    server: str
    spec: str
    path: str

    def to_json(self) -> dict[str, str]:
        """Return it as it stands in the job."""
        return asdict(self)

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> KernelRecord | None:
        """Read it from a job; None where this job is no kernel."""
        extras = config.get("extras")
        found = extras.get("kernel") if isinstance(extras, dict) else None
        names = ("id", "server", "spec", "path")
        if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in names):
            return None
        record = cls(*(found[name] for name in names))
        return record if _KERNEL_ID.fullmatch(record.id) else None


def new_job_name() -> str:
    """Make the name of a job for one kernel."""
    return f"kernel_{secrets.token_hex(4)}"


def kernel_job(
    name: str,
    record: KernelRecord,
    demand: Demand,
    *,
    home: str = "",
    shared_folders: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Write the job JSON of a kernel. `home`: where its container has the person's persistent home.

    `shared_folders`: which of the scheduler's it finds at their places, by name.
    """
    return {
        "jobName": name,
        "image": demand.image,
        "virtualCluster": demand.virtual_cluster,
        "gpuType": demand.gpu_type,
        "retryCount": 0,
        "taskRoles": [
            {
                "name": ROLE,
                "taskNumber": 1,
                "cpuNumber": demand.cpus,
                "memoryMB": demand.memory_mb,
                "shmMB": min(demand.shm_mb, demand.memory_mb),
                "gpuNumber": demand.gpus,
                "command": _COMMAND.format(
                    folder=folder_of(record.id),
                    python=shlex.quote(demand.python),
                    source=_runner(),
                    end=_END_OF_FILE,
                    idle=demand.idle_seconds,
                ),
            }
        ],
        "jobEnvs": dict(env or {}),
        "extras": {
            "kernel": record.to_json(),
            "preemptible": demand.preemptible,
            **({"home": home} if home else {}),
            **({"sharedFolders": list(shared_folders)} if shared_folders else {}),
        },
    }


def attach_command(kernel_id: str, python: str) -> str:
    """Write the line that a notebook server runs in the task, to tell its runner what to do."""
    return _ATTACH.format(folder=folder_of(kernel_id), python=shlex.quote(python))


def folder_of(kernel_id: str) -> str:
    """Return the runner's own folder in the task; ValueError where this is no kernel's id."""
    if not _KERNEL_ID.fullmatch(kernel_id):
        raise ValueError(f"{kernel_id!r} is no kernel's id")
    return f"/tmp/pai-kernel-{kernel_id}"  # noqa: S108 - made by the task itself, for its user only


@cache
def _runner() -> str:
    return Path(__file__).with_name("runner.py").read_text(encoding="utf-8").rstrip("\n")
