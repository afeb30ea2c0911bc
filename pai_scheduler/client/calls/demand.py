"""Demand of a job of Python code, and the job JSON that is made of it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pai_scheduler.client.storage.code import generate_name
from pai_scheduler.i18n import msg
from pai_scheduler.own_packages import OwnPackages

from .errors import CallError
from .packing import PROGRAM

#: The last part of the job's codeDir: the folder in which a task finds its code.
CODE = "code"
#: Where the files of a job that was made of code are, while it runs.
CODE_DIR = f"$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/.pai/calls/$PAI_JOB_NAME/{CODE}"
#: What a job says that runs without a container.
_LOCAL_IMAGE = "local/python"


@dataclass(frozen=True, slots=True)
class Place:
    """Environment of calls: their user, and the `image` in which this runs itself (empty: in none).

    `local`: tasks run without containers, on this machine. `home`: where the person's persistent home is
    here, and its `HOME`; empty: there is none.
    """

    user: str
    image: str
    local: bool
    home: str = ""
    home_variable: str = ""


@dataclass(frozen=True, slots=True)
class CallDemand:
    """Demand of each task of a job. Memory in MB, storage in GB; None and empty: what the scheduler gives.

    `image`: empty: that of the notebook server in which this runs. `python`: the Python of the image, empty:
    the one that runs here where the image is the same, else `python3`. `code`: a folder whose code goes
    along. `name`: what the job's name begins with. `after`: the jobs that it waits for, as `extras.after`.
    """

    gpus: int = 0
    image: str = ""
    gpu_type: str = ""
    cpus: int | None = None
    memory_mb: int | None = None
    shm_mb: int | None = None
    storage_gb: int | None = None
    virtual_cluster: str = ""
    name: str = ""
    python: str = ""
    code: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)
    after: Sequence[str | Mapping[str, str]] = ()


def make_job(
    demand: CallDemand, place: Place, name: str, roles: Mapping[str, int], locale: str, *, together: bool
) -> dict[str, Any]:
    """Return the job JSON; `roles`: how many tasks of each. `name`: where the demand has none.

    `together`: a task that fails ends the others. CallError where no image is known.
    """
    image = demand.image or place.image or (_LOCAL_IMAGE if place.local else "")
    if not image:
        raise CallError(
            msg("Which image shall the job run in? Name one: image={example}.", example='"python:3.12"'),
            locale,
        )
    # without containers every task is on this machine: it has this very Python
    here = place.local or image == place.image
    env, extras = dict(demand.env), dict(demand.extras)
    if demand.python or not here:
        enter = f"pai_python={shlex.quote(demand.python or 'python3')}\n"
    else:
        packages = OwnPackages.read(sys.prefix)
        enter = packages.entering() if packages else f"pai_python={shlex.quote(sys.executable)}\n"
        at_home = _home(place, packages)
        env, extras = {**at_home[0], **env}, {**at_home[1], **extras}
    if demand.after:
        extras["after"] = [*extras.get("after", ()), *demand.after]
    task = {
        "cpuNumber": demand.cpus,
        "memoryMB": demand.memory_mb,
        "shmMB": demand.shm_mb,
        "gpuNumber": demand.gpus,
        "storageGB": demand.storage_gb,
    }
    return {
        "jobName": generate_name(demand.name or name),
        "image": image,
        **({"virtualCluster": demand.virtual_cluster} if demand.virtual_cluster else {}),
        **({"gpuType": demand.gpu_type} if demand.gpu_type else {}),
        "codeDir": CODE_DIR,
        "taskRoles": [
            {
                "name": role,
                "taskNumber": count,
                **{key: value for key, value in task.items() if value is not None},
                **({} if together else {"minFailedTaskCount": None}),
                "command": f'{enter}exec "$pai_python" -u {CODE}/{PROGRAM}',
            }
            for role, count in roles.items()
        ],
        **({"jobEnvs": env} if env else {}),
        **({"extras": extras} if extras else {}),
    }


def _home(place: Place, packages: OwnPackages | None) -> tuple[dict[str, str], dict[str, Any]]:
    """Return variables and extras of a job that has the home in which this Python is, where it is in one.

    Packages of which there are none are no reason to have it.
    """
    if not place.home or not Path(sys.prefix).is_relative_to(place.home):
        return {}, {}
    if packages is not None and packages.is_empty:
        return {}, {}
    return {"HOME": place.home_variable} if place.home_variable else {}, {"home": place.home}
