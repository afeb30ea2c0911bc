"""Makes a task's container and starts it, so that its command runs once whatever answer of Docker is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiodocker

from pai_scheduler.cluster.shared_folders import SharedMount
from pai_scheduler.core.events import EndCause
from pai_scheduler.engine.protocol import Launch
from pai_scheduler.i18n import Message, msg

from .archive import file_entries, folder_entry, stream, tree_entries
from .connection import DaemonUnreachableError, DockerApi
from .container import (
    CODE_DIR,
    LABEL_INSTANCE,
    PRIVATE_DIR,
    WORK_DIR,
    code_dir,
    container_config,
    find_too_long,
)
from .home import home_volume
from .shared import find_missing, make_missing

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
    """Makes containers that carry the mark of this `instance` of the scheduler.

    `network_of` names the network of a job's attempt. `limits_storage`: whether the storage driver is one
    that can limit a container's disk. `log_bytes`: how much is kept of a container's log. `publish_ssh`,
    `storage_address`, `homes`, `home_options`: as for `container_config`.
    `root`: the user id on the host of containers' root.
    """

    def __init__(
        self,
        api: DockerApi,
        instance: str,
        *,
        network_of: Callable[[str, int], str],
        node_cpus: int,
        limits_storage: bool,
        log_bytes: int,
        publish_ssh: str | None = None,
        storage_address: str | None = None,
        root: int = 0,
        homes: Path | None = None,
        home_options: Mapping[str, str] | None = None,
    ) -> None:
        self._api, self._instance, self._log_bytes = api, instance, log_bytes
        self._network_of = network_of
        self._node_cpus, self._limits_storage, self._publish_ssh = node_cpus, limits_storage, publish_ssh
        self._storage_address, self._root, self._homes = storage_address, root, homes
        self._home_options = home_options

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
        if launch.home and self._homes is not None:
            await asyncio.to_thread(_make_home, self._homes / home_volume(self._instance, launch.user))
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
        if found["Config"]["Labels"].get(LABEL_INSTANCE) != self._instance:
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
            instance=self._instance,
            network=launch.network or self._network_of(launch.task.job_id, launch.task.attempt),
            node_cpus=self._node_cpus,
            limits_storage=self._limits_storage,
            log_bytes=self._log_bytes,
            hold=hold,
            private=private,
            runtime=runtime,
            publish_ssh=self._publish_ssh,
            storage_address=self._storage_address,
            homes=self._homes,
            home_options=self._home_options,
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
