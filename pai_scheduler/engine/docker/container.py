"""What Docker is told to run for a task: limits, isolation, names, and the user's command as one argument."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pai_scheduler.engine.protocol import Launch
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef

from .disk import LABEL_STORAGE
from .hold import ENTRY as HOLD_ENTRY
from .hold import PIPE as HOLD_PIPE
from .hold import RUN
from .home import home_mount, home_volume
from .logs import log_config
from .runtime import START as START_SSH
from .runtime import TMPFS, runtime_mount
from .shared import shared_mount

#: By which names containers reach the storage and the Hub. No task has one: theirs end in a number.
STORAGE_HOST, HUB_HOST = "pai-storage", "pai-hub"
#: Where a task's command starts: made by the engine, writable by the image's user.
WORK_DIR = "/pai"
PIDS_LIMIT = 4096
#: Where a task finds the folder of its code as it was fetched, and its own small files.
CODE_DIR, PRIVATE_DIR = "/pai-code", "/pai-job"
LABEL_INSTANCE, LABEL_USER = "pai.instance", "pai.user"
#: the scheduler's mark on what a whole Swarm has, which no machine may remove by itself
LABEL_SWARM = "pai.swarm-instance"
#: on which port the container's own SSH server listens; without it there is none
LABEL_SSH_PORT = "pai.ssh-port"
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Of the capabilities that Docker leaves root: to make device files, and to hand capabilities on. The rest is
#: for chown, package managers, ping, low ports, and SSH servers, which tell the audit log of terminals.
_NEVER_NEEDED = ["MKNOD", "SETPCAP"]
_HOST_NAME_MAX = 63
_IMAGE = re.compile(r"[A-Za-z0-9]+(?:[._:/@-]+[A-Za-z0-9_]+)*")
_MIB = 2**20
#: MAX_ARG_STRLEN of Linux
_LONGEST_STRING = 2**17


def is_image_name(image: str) -> bool:
    """Return whether this can be an image's name; whatever else it is must not become part of a URL."""
    return len(image) <= 512 and ".." not in image and _IMAGE.fullmatch(image) is not None


def network_name(job_id: str, attempt: int) -> str:
    """Name the network of a gang."""
    return f"pai-{job_id}-{attempt}"


def container_config(
    launch: Launch,
    *,
    instance: str,
    network: str,
    node_cpus: int,
    limits_storage: bool,
    log_bytes: int,
    hold: Path | None = None,
    private: Path | None = None,
    runtime: str | None = None,
    publish_ssh: str | None = None,
    storage_address: str | None = None,
    homes: Path | None = None,
    home_options: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Describe a task's container for Docker's API (`POST /containers/create`).

    `instance` tells this scheduler's containers from another's. `network`: its gang's. More CPUs than the
    machine has (declared nodes) mean all of them. `limits_storage`: whether the storage driver can limit a
    disk. `log_bytes`: how much is kept of its log.
    `hold`: the pipe through which a task that is to be held tells that its command failed. `private`: the
    folder of the task's small files; None: this machine's folders cannot be mounted, nor its code.
    `runtime`: the volume with which it gets an SSH server, where it has a port for one. `publish_ssh`: the
    address of this host at which that is to be reached from outside. `storage_address`: what
    `STORAGE_HOST` means. `homes`: a folder in which each user's home is; None: each is a volume,
    made with `home_options`.
    """
    task = launch.task
    host: dict[str, Any] = {
        "NetworkMode": network,
        "NanoCpus": min(launch.cpus, node_cpus) * 10**9,
        "Memory": launch.memory_mb * _MIB,
        "MemorySwap": launch.memory_mb * _MIB,
        "ShmSize": launch.shm_mb * _MIB,
        "PidsLimit": PIDS_LIMIT,
        "SecurityOpt": ["no-new-privileges"],
        "CapDrop": _NEVER_NEEDED,
        "Init": True,
        "RestartPolicy": {"Name": "no"},
        "LogConfig": log_config(log_bytes),
        "ExtraHosts": [
            *(f"{name}:{address}" for name, address in launch.hosts.items() if name != task.hostname),
            *(
                [f"{name}:{storage_address}" for name in (STORAGE_HOST, HUB_HOST)]
                if storage_address is not None
                else ()
            ),
        ],
    }
    devices = [gpu.uuid or str(gpu.index) for gpu in launch.gpus if not gpu.simulated]
    if devices:
        host["DeviceRequests"] = [{"Driver": "nvidia", "DeviceIDs": devices, "Capabilities": [["gpu"]]}]
    if limits_storage and launch.storage_gb is not None:
        host["StorageOpt"] = {"size": f"{launch.storage_gb}G"}
    host["Mounts"] = [
        *([_bind(hold, HOLD_PIPE, read_only=False)] if hold is not None else ()),
        *([_bind(private, PRIVATE_DIR)] if private is not None and launch.files else ()),
        *([_bind(launch.code, code_dir(launch.code))] if private is not None and launch.code else ()),
        *(_bind(mount.source, str(PurePosixPath(WORK_DIR, mount.target))) for mount in launch.mounts),
        *map(shared_mount, launch.shared),
    ]
    if launch.home:
        owner = {LABEL_INSTANCE: instance, LABEL_USER: launch.user}
        volume = home_volume(instance, launch.user)
        host["Mounts"].append(
            home_mount(volume, launch.home, owner, home_options)
            if homes is None
            else _bind(homes / volume, launch.home, read_only=False)
        )
    entry = RUN if hold is None else HOLD_ENTRY
    environment = _environment(launch, devices)
    dotted = [f"{name}={value}" for name, value in environment.items() if not _SHELL_NAME.fullmatch(name)]
    ssh_port = launch.ssh_port if runtime is not None else None
    if runtime is not None and ssh_port is not None:
        entry = START_SSH + entry
        host["Mounts"].append(runtime_mount(runtime))
        host["Tmpfs"] = TMPFS
        if publish_ssh is not None:
            host["PortBindings"] = {f"{ssh_port}/tcp": [{"HostIp": publish_ssh, "HostPort": ""}]}
    endpoint: dict[str, Any] = {"Aliases": [task.hostname]}
    if launch.address:
        endpoint["IPAMConfig"] = {"IPv4Address": launch.address}
    config: dict[str, Any] = {
        "Image": launch.image,
        "Entrypoint": ["/bin/sh", "-c", entry, "pai", launch.command, *dotted],
        "Cmd": [],
        "Env": [f"{name}={value}" for name, value in environment.items() if _SHELL_NAME.fullmatch(name)],
        "WorkingDir": WORK_DIR,
        "StopSignal": "SIGTERM",
        "Healthcheck": {"Test": ["NONE"]},
        "Labels": {
            **labels(task, instance),
            LABEL_USER: launch.user,
            "pai.job-name": launch.job_name,
            # for the service that watches over it after a restart of the service
            **({LABEL_STORAGE: str(launch.storage_gb)} if launch.storage_gb is not None else {}),
            **({LABEL_SSH_PORT: str(ssh_port)} if ssh_port is not None else {}),
        },
        "HostConfig": host,
        "NetworkingConfig": {"EndpointsConfig": {host["NetworkMode"]: endpoint}},
    }
    if "PortBindings" in host:
        config["ExposedPorts"] = {port: {} for port in host["PortBindings"]}
    if len(task.hostname) <= _HOST_NAME_MAX:
        config["Hostname"] = task.hostname
    return config


def code_dir(code: Path) -> str:
    """Return the place where a container sees a folder of code."""
    return f"{CODE_DIR}/{code.name}"


def _bind(source: Path, target: str, *, read_only: bool = True) -> dict[str, Any]:
    return {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": read_only}


def find_too_long(launch: Launch) -> Message | None:
    """Return which part of a task is longer than Linux hands to a program (128 KiB with its final zero)."""
    command = len(launch.command.encode())
    if command >= _LONGEST_STRING:
        return msg(
            "The command is {size} KiB long; Linux allows no more than {limit}.",
            size=command // 1024,
            limit=_LONGEST_STRING // 1024 - 1,
        )
    for name, value in launch.env.items():
        variable = len(f"{name}={value}".encode())
        if variable >= _LONGEST_STRING:
            return msg(
                "The environment variable {name} is {size} KiB long; Linux allows no more than {limit}.",
                name=name,
                size=variable // 1024,
                limit=_LONGEST_STRING // 1024 - 1,
            )
    return None


def labels(task: TaskRef, instance: str) -> dict[str, str]:
    """Return the labels by which a person or this scheduler finds a task's container."""
    return {
        LABEL_INSTANCE: instance,
        "pai.job-id": task.job_id,
        "pai.attempt": str(task.attempt),
        "pai.role": task.role,
        "pai.index": str(task.index),
    }


def _environment(launch: Launch, devices: list[str]) -> Mapping[str, str]:
    ours = {
        # SIGTERM reaches every process of the command, not only the shell that started them
        "TINI_KILL_PROCESS_GROUP": "1",
        # images for GPUs say "all" here, which with NVIDIA's runtime as the default would show every GPU
        "NVIDIA_VISIBLE_DEVICES": ",".join(devices) or "void",
    }
    if devices:
        # inside, GPUs are numbered anew; an identifier means the same on both sides
        ours["CUDA_VISIBLE_DEVICES"] = ",".join(
            gpu.uuid or str(number)
            for number, gpu in enumerate(gpu for gpu in launch.gpus if not gpu.simulated)
        )
    # a job may have a working folder of its own, such as a home
    return {"PAI_WORK_DIR": WORK_DIR, **launch.env, **ours}
