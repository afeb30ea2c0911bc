"""The job JSON of a kernel, its environment, and why it ended."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import Message
from pai_scheduler.rest.models import JobDetail

from ..messages import counted, msg

# Which variables of the notebook server a kernel gets that runs in a task of its own.

#: What tells the server's own task apart from others, and is told to the kernel's task by the scheduler.
_OF_A_TASK = (
    "CPU_GUARANTEE",
    "CPU_LIMIT",
    "CUDA_",
    "FRAMEWORK_NAME",
    "HADOOP_USER_NAME",
    "HOSTNAME",
    "JPY_",
    "MEM_GUARANTEE",
    "MEM_LIMIT",
    "NVIDIA_",
    "OLDPWD",
    "PAI_",
    "PWD",
    "SHLVL",
    "SSH_",
)
#: Of these all the same: who the person is to the scheduler, and which notebook it is.
_OF_A_PERSON = (
    "JPY_SESSION_NAME",
    "JUPYTERHUB_API_TOKEN",
    "JUPYTERHUB_API_URL",
    "JUPYTERHUB_BASE_URL",
    "JUPYTERHUB_USER",
    "LANG",
    "LC_",
    "PAI_API_URL",
    "PAI_LOCALE",
    "PAI_TOKEN",
    "TZ",
)


def carried(environment: Mapping[str, str], *, same_image: bool, more: Iterable[str] = ()) -> dict[str, str]:
    """Choose what the kernel gets beside what its own task says.

    In the image of the server that is all but what only the server's task is; in another one (where a path
    means something else) who the person is, the language, and `more`.
    """
    wanted = frozenset(more)
    return {
        name: value
        for name, value in environment.items()
        if name in wanted
        or name.startswith(_OF_A_PERSON)
        or (same_image and name != "_" and not name.startswith(_OF_A_TASK))
    }


# The job that a kernel is: one task, whose command waits for a notebook server to start the kernel.

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
class KernelDemand:
    """Demand of a kernel. Memory in MB; `idle_seconds`: after so long without use it ends; 0: never."""

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
    """Record of a kernel in its job, by which a restarted notebook server recognizes it.

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
    demand: KernelDemand,
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


# Why a kernel, or the job that it was, has ended: one sentence, with what to do.

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
_MINUTE = 60
_LOG_TAIL_BYTES, _LOG_TAIL_LINES = 4000, 12
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class KernelEnd:
    """Reason that a kernel's job has no running task any more; `log`: the last lines that its task wrote."""

    message: Message
    log: str = ""


def idle_ending(seconds: float) -> KernelEnd:
    """Return the end of a kernel that nobody used for so long."""
    return KernelEnd(
        counted(
            "Nobody used this kernel for {count} minute: it has ended, and its resources are free again.",
            "Nobody used this kernel for {count} minutes: it has ended, and its resources are free again.",
            count=max(1, round(seconds / _MINUTE)),
        )
    )


def out_of_memory(memory_mb: int) -> Message:
    """Return why a kernel died that needed more memory than its task has."""
    return msg(
        "The kernel needed more than its {memory} MB of memory, and was ended. What it knew is lost; "
        "a kernel with more memory would have room.",
        memory=memory_mb,
    )


def died(code: int) -> Message:
    """Return how a kernel died; `code` as `subprocess` has it."""
    if code < 0:
        return msg("The kernel was ended by signal {number}. What it knew is lost.", number=-code)
    return msg("The kernel ended with exit code {code}. What it knew is lost.", code=code)


async def ending_of(client: Client, user: str, detail: JobDetail) -> KernelEnd | None:
    """Return why a job has ended; None where it has not."""
    status = detail["jobStatus"]
    if status["state"] not in ENDED and status["subState"] != "ENDING":
        return None
    if status["state"] == "STOPPED" or status["appExitCode"] == -7351:
        return KernelEnd(msg("The job of this kernel was stopped."))
    if status["appExitCode"] == 0 or (status["state"] not in ENDED and status["appExitCode"] is None):
        return KernelEnd(msg("The kernel has ended."))
    spec = status["appExitSpec"]
    why = status["appExitDiagnostics"] or (spec["phrase"] if spec else "")
    return KernelEnd(
        msg("The job of this kernel ended with exit code {code}. {why}", code=status["appExitCode"], why=why),
        await _log_tail(client, user, detail["name"]),
    )


async def _log_tail(client: Client, user: str, job: str) -> str:
    try:
        tail = await client.log(user, job, ROLE, 0, "all", offset=-_LOG_TAIL_BYTES)
    except (ApiError, UnreachableError):
        return ""
    lines = _ANSI.sub("", tail.decode(errors="replace")).splitlines()
    return "\n".join(lines[-_LOG_TAIL_LINES:]).strip()
