"""Containers of tasks: what Docker is told to run, made and started once; files into them."""

from __future__ import annotations

import asyncio
import os
import re
import tarfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import aiodocker

from pai_scheduler.cluster.shared_folders import SharedMount
from pai_scheduler.core.events import EndCause
from pai_scheduler.engine.protocol import Launch
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef

from .client import DaemonUnreachableError, DockerApi
from .debug_hold import ENTRY as HOLD_ENTRY
from .debug_hold import PIPE as HOLD_PIPE
from .debug_hold import RUN
from .logs import log_config
from .runtime import START as START_SSH
from .runtime import TMPFS, runtime_mount
from .settings import DockerSettings
from .volumes import LABEL_STORAGE, find_missing, home_mount, home_volume, make_missing, shared_mount

# Tar archives for Docker (`PUT /containers/…/archive`), made piece by piece: code may be large.
#
# An image may run as any user, and that user may change what is put into a working folder, so it is open to
# all in the container.

_PIECE = 2**20
_END = bytes(tarfile.BLOCKSIZE * 2)


def folder_entry(place: str, mode: int) -> Iterator[bytes]:
    """Return an archive's entry of a folder at an absolute path."""
    yield _header(place, mode, tarfile.DIRTYPE)


def file_entries(place: str, files: Mapping[str, bytes]) -> Iterator[bytes]:
    """Return the entries of a folder with small files that all may read and none may write."""
    yield _header(place, 0o755, tarfile.DIRTYPE)
    for name, content in files.items():
        yield (
            _header(f"{place}/{name}", 0o444, tarfile.REGTYPE, len(content))
            + content
            + _padding(len(content))
        )


def tree_entries(source: Path, place: str, *, writable: bool) -> Iterator[bytes]:
    """Return the entries of a folder of this machine and all that is in it, plain files and folders only."""
    yield _header(place, 0o777 if writable else 0o555, tarfile.DIRTYPE)
    with os.scandir(source) as entries:
        for entry in entries:
            there = f"{place}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from tree_entries(Path(entry.path), there, writable=writable)
            elif entry.is_file(follow_symlinks=False):
                yield from _file(entry, there, writable)


async def stream(entries: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Return an archive, made in threads, in pieces of about a MiB."""
    gathered: list[bytes] = []
    size = 0

    def gather() -> bool:
        nonlocal size
        while size < _PIECE:
            piece = next(entries, None)
            if piece is None:
                gathered.append(_END)
                return False
            gathered.append(piece)
            size += len(piece)
        return True

    more = True
    while more:
        more = await asyncio.to_thread(gather)
        yield b"".join(gathered)
        gathered.clear()
        size = 0


def _file(entry: os.DirEntry[str], place: str, writable: bool) -> Iterator[bytes]:
    info = entry.stat(follow_symlinks=False)
    mode = (0o666 if writable else 0o444) | (0o111 if info.st_mode & 0o111 else 0)
    yield _header(place, mode, tarfile.REGTYPE, info.st_size)
    left = info.st_size
    with open(entry.path, "rb", buffering=0) as file:
        while left:
            piece = file.read(min(_PIECE, left))
            if not piece:
                raise OSError(f"{entry.path} has become shorter")
            left -= len(piece)
            yield piece
    yield _padding(info.st_size)


def _header(place: str, mode: int, kind: bytes, size: int = 0) -> bytes:
    info = tarfile.TarInfo(place.strip("/"))
    info.mode, info.type, info.size, info.mtime = mode, kind, size, int(time.time())
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


# What Docker is told to run for a task: limits, isolation, names, and the user's command as one argument.

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
    settings: DockerSettings,
    *,
    network: str,
    node_cpus: int,
    limits_storage: bool,
    hold: Path | None = None,
    private: Path | None = None,
    runtime: str | None = None,
    storage_address: str | None = None,
) -> dict[str, Any]:
    """Describe a task's container for Docker's API (`POST /containers/create`).

    `network`: its gang's. More CPUs than the machine has (declared nodes) mean all of them.
    `limits_storage`: whether the storage driver can limit a disk.
    `hold`: the pipe through which a task that is to be held tells that its command failed. `private`: the
    folder of the task's small files; None: this machine's folders cannot be mounted, nor its code.
    `runtime`: the volume with which it gets an SSH server, where it has a port for one. `storage_address`:
    what `STORAGE_HOST` means.
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
        "LogConfig": log_config(settings.logs.max_bytes_per_task),
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
        owner = {LABEL_INSTANCE: settings.instance, LABEL_USER: launch.user}
        volume = home_volume(settings.instance, launch.user)
        host["Mounts"].append(
            home_mount(volume, launch.home, owner, settings.home_options)
            if settings.homes is None
            else _bind(settings.homes / volume, launch.home, read_only=False)
        )
    entry = RUN if hold is None else HOLD_ENTRY
    environment = _environment(launch, devices)
    dotted = [f"{name}={value}" for name, value in environment.items() if not _SHELL_NAME.fullmatch(name)]
    ssh_port = launch.ssh_port if runtime is not None else None
    if runtime is not None and ssh_port is not None:
        entry = START_SSH + entry
        host["Mounts"].append(runtime_mount(runtime))
        host["Tmpfs"] = TMPFS
        if settings.publish_ssh is not None:
            host["PortBindings"] = {f"{ssh_port}/tcp": [{"HostIp": settings.publish_ssh, "HostPort": ""}]}
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
            **labels(task, settings.instance),
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


# Makes a task's container and starts it, so that its command runs once whatever answer of Docker is lost.

#: How long after it answers again a daemon may take to come to what it was asked before it hung.
_LATE_SECONDS = 2.0
#: How long a name may stay taken by a creation that Docker breaks off, and seconds between looks at it.
_BREAKING_OFF_SECONDS, _LOOK_SECONDS = 30.0, 0.2
#: Docker's time of a start that has not been.
_NEVER = "0001-01-01T00:00:00Z"


class ContainerNotCreatedError(Exception):
    """A task ended before its command ran."""

    def __init__(self, cause: EndCause, reason: Message | None = None) -> None:
        super().__init__(cause)
        self.cause, self.reason = cause, reason


class ContainerCreator:
    """Makes containers that carry the mark of this instance of the scheduler.

    `network_of` names the network of a job's attempt. `limits_storage`: whether the storage driver is one
    that can limit a container's disk. `storage_address`: as for `container_config`. `root`: the user id on
    the host of containers' root.
    """

    def __init__(
        self,
        api: DockerApi,
        settings: DockerSettings,
        *,
        network_of: Callable[[str, int], str],
        node_cpus: int,
        limits_storage: bool,
        storage_address: str | None,
        root: int,
    ) -> None:
        self._api, self._settings = api, settings
        self._network_of, self._node_cpus, self._limits_storage = network_of, node_cpus, limits_storage
        self._storage_address, self._root = storage_address, root

    async def make(
        self,
        launch: Launch,
        hold: Path | None = None,
        private: Path | None = None,
        runtime: str | None = None,
    ) -> dict[str, Any]:
        """Make a task's container, or find the one that was made before; return its description.

        Of one that was just made no more is told than its id, and that it has never run.

        `hold`, `private`, `runtime`: as for `container_config`.
        """
        if too_long := find_too_long(launch):
            raise ContainerNotCreatedError(EndCause.REFUSED, too_long)
        settings = self._settings
        if launch.home and settings.homes is not None:
            await asyncio.to_thread(_make_home, settings.homes / home_volume(settings.instance, launch.user))
        try:
            await asyncio.to_thread(make_missing, launch.shared)
        except OSError as error:
            raise ContainerNotCreatedError(EndCause.LAUNCH_FAILED, _not_made(str(error))) from error
        name = launch.task.name
        give_up = time.monotonic() + _BREAKING_OFF_SECONDS
        while True:
            if (container := await self._create(launch, hold, private, runtime)) is not None:
                return {"Id": container, "State": {"StartedAt": _NEVER}}
            found = await self._api.inspect(name)
            if found is not None:
                break
            # a request that was given up keeps the name until Docker has broken it off, too
            if time.monotonic() > give_up:
                raise _removed()
            await asyncio.sleep(_LOOK_SECONDS)
        if found["Config"]["Labels"].get(LABEL_INSTANCE) != settings.instance:
            taken = msg("another scheduler on the same Docker has a container named {name}", name=name)
            raise ContainerNotCreatedError(EndCause.LAUNCH_FAILED, _not_made(taken))
        return found

    async def fill(self, launch: Launch, image: dict[str, Any], private: Path | None = None) -> None:
        """Put what a task needs into its container, which has not run: its code, in a working folder that
        the image's user may write to; without `private` also what could not be mounted."""
        is_root = _is_root(image["Config"].get("User") or "")

        def entries(opens_home: bool) -> Iterator[bytes]:
            if launch.code is not None or not is_root:
                yield from folder_entry(WORK_DIR, 0o1777)
            if opens_home:
                yield from folder_entry(launch.home, 0o777)
            if launch.code is not None:
                yield from tree_entries(launch.code, f"{WORK_DIR}/{launch.code.name}", writable=True)
            if private is None and launch.files:
                yield from file_entries(PRIVATE_DIR, launch.files)
            if private is None and launch.code is not None:
                yield from folder_entry(CODE_DIR, 0o755)
                yield from tree_entries(launch.code, code_dir(launch.code), writable=False)

        try:
            opens_home = bool(launch.home) and not is_root and await self._is_roots(launch)
            # most tasks need nothing, and asking Docker for it takes a while
            if any(True for _ in entries(opens_home)):
                await self._api.put_archive(launch.task.name, lambda: stream(entries(opens_home)))
        except aiodocker.DockerError as error:
            raise ContainerNotCreatedError(EndCause.LAUNCH_FAILED, _not_made(error.message)) from error
        except OSError as error:
            raise ContainerNotCreatedError(EndCause.LAUNCH_FAILED, _not_made(str(error))) from error

    async def _is_roots(self, launch: Launch) -> bool:
        """Return whether a home is root's alone, as it is where an image without that folder came first."""
        owner, mode = await self._api.owner_of(launch.task.name, launch.home)
        # (a daemon that maps users may tell the owner as the host sees it)
        return owner in (0, self._root) and not mode & 0o002

    async def start(self, name: str) -> dict[str, Any]:
        """Start a container that has never run; return its description."""
        while True:
            answered = True
            try:
                await self._api.call(self._api.docker.containers.container(name).start)
            except DaemonUnreachableError:
                answered = False
            except aiodocker.DockerError as error:
                raise ContainerNotCreatedError(*_start_failure(error.message)) from error
            found = await self._find(name)
            # without an answer it may run or have run all the same: to start it once more would run it twice
            if answered or has_run(found):
                return found
            # a daemon that hung may come to the old request a moment after it has answered the new one
            await asyncio.sleep(_LATE_SECONDS)
            found = await self._find(name)
            if has_run(found):
                return found

    async def _create(
        self, launch: Launch, hold: Path | None, private: Path | None, runtime: str | None
    ) -> str | None:
        """Make a container; return its id, None where its name is taken: an answer was lost, or another's."""
        config = container_config(
            launch,
            self._settings,
            network=launch.network or self._network_of(launch.task.job_id, launch.task.attempt),
            node_cpus=self._node_cpus,
            limits_storage=self._limits_storage,
            hold=hold,
            private=private,
            runtime=runtime,
            storage_address=self._storage_address,
        )
        try:
            made = await self._api.persist(
                lambda: self._api.docker.containers.create(config, name=launch.task.name)
            )
        except aiodocker.DockerError as error:
            if error.status == 409:
                return None
            if self._limits_storage and "storage-opt" in error.message:
                self._limits_storage = False  # overlay2 on XFS can, but only if mounted with project quotas
                return await self._create(launch, hold, private, runtime)
            missing = find_missing(launch.shared, error.message)
            if missing is not None and missing.optional:
                rest = tuple(mount for mount in launch.shared if mount != missing)
                return await self._create(replace(launch, shared=rest), hold, private, runtime)
            if missing is not None:
                raise ContainerNotCreatedError(EndCause.LAUNCH_FAILED, _not_there(missing, launch)) from error
            # 400: Docker does not accept what the job asks for, and never will; what is to be mounted is ours
            refused = error.status == 400 and "bind source path" not in error.message
            cause = EndCause.REFUSED if refused else EndCause.LAUNCH_FAILED
            raise ContainerNotCreatedError(cause, _not_made(error.message)) from error
        return str(made.id)

    async def _find(self, name: str) -> dict[str, Any]:
        found = await self._api.inspect(name)
        if found is None:
            raise _removed()
        return found


def _make_home(folder: Path) -> None:
    """Make a user's home for whatever user an image runs as; ContainerNotCreatedError."""
    try:
        folder.mkdir(exist_ok=True)
        if folder.stat().st_mode & 0o777 != 0o777:
            folder.chmod(0o777)
    except OSError as error:
        raise ContainerNotCreatedError(EndCause.LAUNCH_FAILED, _not_made(str(error))) from error


def has_run(found: dict[str, Any]) -> bool:
    """Return whether a container was ever started, by its description."""
    return not str(found["State"]["StartedAt"]).startswith("0001-")


def _is_root(user: str) -> bool:
    return user.partition(":")[0] in ("", "0", "root")


def _removed() -> ContainerNotCreatedError:
    return ContainerNotCreatedError(EndCause.LAUNCH_FAILED, _not_made(msg("somebody removed the container")))


def _not_made(error: Message | str) -> Message:
    return msg("Docker could not make the container: {error}", error=error)


def _not_there(mount: SharedMount, launch: Launch) -> Message:
    return msg(
        "The shared folder {name} is not on the machine {node}: there is no {folder}. An administrator has "
        "to make or mount it there.",
        name=mount.name,
        node=launch.node,
        folder=mount.source,
    )


def _start_failure(error: str) -> tuple[EndCause, Message]:
    """Return what the user must change from what may go better the next time."""
    if "/bin/sh" in error and "no such file" in error:
        return EndCause.REFUSED, msg("The image has no /bin/sh, which is needed to run a job's command.")
    return EndCause.LAUNCH_FAILED, msg("Docker could not start the container: {error}", error=error)
