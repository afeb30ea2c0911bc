"""The runtime with which containers are logged into: a volume of this daemon, filled once from an image.

The volume is named after what is in it, so tasks that run keep theirs when a newer one comes. It is filled by
a container of the same name, which Docker runs once at a time, and which stays: its
exit code 0 says that all of it is there, and a volume that a container has is not tidied up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import aiodocker
from aiodocker.volumes import DockerVolume

from pai_scheduler.i18n import Message, msg

from .client import DaemonUnreachableError, DockerApi

#: where containers have it, and what starts the SSH server of one
FOLDER = "/opt/pai"
BOOT = f"{FOLDER}/boot"
#: says in a container why it has no SSH server
STATUS = f"{FOLDER}/status"
#: sends a signal to what a session started, which the server itself does not for root
SIGNAL = f"{FOLDER}/libexec/signal"
#: a shell and small programs, which need nothing of an image
BUSYBOX = f"{FOLDER}/libexec/busybox"
#: Where the server keeps what it needs: writable also where an image is not.
TMPFS = {"/run/sshd": "mode=755,size=1m", "/run/pai": "mode=1777,size=64m"}
#: Begins the line that starts a command, and has nothing to do with that: what it starts is nobody's child,
#: is neither heard nor waited for, and where it cannot be started nothing is said.
START = f"""\
if [ -x {BOOT} ]; then
  PATH={FOLDER}/bin${{PATH:+:$PATH}}
  ( {BOOT} </dev/null >/dev/null 2>&1 & )
fi
"""

#: (what was broken off may have left links, which are not written over)
_FILL = f"""\
[ ! -e /volume/.complete ] || exit 0
set -e
{BUSYBOX} rm -rf /volume/*
{BUSYBOX} cp -a {FOLDER}/. /volume/
{BUSYBOX} sync
: >/volume/.complete
"""
#: begins the name of a volume with a runtime
VOLUME_PREFIX = "pai-runtime-"
_LABEL = "pai.runtime"
_TRIES, _MAKING_SECONDS = 3, 0.1
#: How long a fill may take; it takes a second or two.
_FILL_SECONDS = 120.0
#: How long a fill that failed is not tried again: no task is to wait for one that will fail again.
_PAUSE_SECONDS = 60.0
#: How long it is believed which one the image's is: tasks that start together ask Docker once.
_KNOWN_SECONDS = 2.0

_log = logging.getLogger(__name__)


def image_of_this_version() -> str:
    """Name the image with the runtime of this version, which `make runtime` builds."""
    return f"pai/runtime:{version('pai-for-jupyter')}"


class Runtime:
    """The runtime's volume on one daemon. `image`: what it is filled from."""

    def __init__(self, api: DockerApi, image: str) -> None:
        self._api, self.image = api, image
        self._filled: set[str] = set()
        #: the volume that was found last, and until when (loop time) it is not looked for again
        self._found: tuple[str, float] = ("", 0.0)
        self._filling = asyncio.Lock()
        self._why: Message | None = None
        #: loop time before which a fill is not tried again
        self._not_before = 0.0

    @property
    def why_not(self) -> Message | None:
        """Return why there is none, as last found; None where there is one."""
        return self._why

    async def volume(self) -> str | None:
        """Name the volume, filled; None where there is none, and then tasks run without SSH."""
        name, until = self._found
        if name and asyncio.get_running_loop().time() < until:
            return name
        return await self._look()

    async def _look(self) -> str | None:
        try:
            found = await self._api.persist(lambda: self._api.docker.images.inspect(self.image))
        except aiodocker.DockerError as error:
            self._complain(self._missing(error))
            return None
        name = f"{VOLUME_PREFIX}{str(found['Id']).removeprefix('sha256:')[:12]}"
        async with self._filling:
            if name not in self._filled and not await self._try_to_fill(name):
                return None
            self._filled.add(name)
        self._why = None
        self._found = (name, asyncio.get_running_loop().time() + _KNOWN_SECONDS)
        return name

    async def bring(self) -> None:
        """Fill the volume before a task asks for it, and remove older ones that no container has any more."""
        name = await self._look()
        if name is None:
            return
        try:
            for older in await self._api.containers(f"{_LABEL}={self.image}"):
                if (other := str(older["Names"][0]).removeprefix("/")) != name:
                    await self._tidy(other, str(older["ImageID"]))
        except (DaemonUnreachableError, aiodocker.DockerError) as error:
            _log.warning("older runtimes cannot be removed: %s", error)

    async def _tidy(self, name: str, image: str) -> None:
        docker = self._api.docker
        filters = json.dumps({"volume": [name]})
        users = await self._api.persist(lambda: docker.containers.list(all=1, filters=filters))
        if len(users) > 1:  # tasks run with it
            return
        await self._api.remove(name)
        volume = DockerVolume(docker, name)  # type: ignore[no-untyped-call]
        await self._api.persist(volume.delete)
        with contextlib.suppress(aiodocker.DockerError):  # somebody has given it a name
            await self._api.persist(lambda: docker.images.delete(image))

    def doubt(self) -> None:
        """Look again before the next task whether the volume is as it should be."""
        self._filled.clear()
        self._found = ("", 0.0)

    async def _try_to_fill(self, name: str) -> bool:
        clock = asyncio.get_running_loop().time
        if clock() < self._not_before:
            return False
        try:
            async with asyncio.timeout(_FILL_SECONDS):
                await self._fill(name)
        except (TimeoutError, DaemonUnreachableError, aiodocker.DockerError, _NotFilledError) as error:
            self._not_before = clock() + _PAUSE_SECONDS
            self._complain(
                msg(
                    "The runtime of {image} could not be put into the volume {name}: {error}",
                    image=self.image,
                    name=name,
                    error=str(error) or f"no end within {_FILL_SECONDS:g} seconds",
                )
            )
            return False
        return True

    async def _fill(self, name: str) -> None:
        """Fill the volume, unless it was: begun by another scheduler or broken off, it is finished."""
        container = self._api.docker.containers.container(name)
        state: Mapping[str, Any] = {}
        for _ in range(_TRIES):
            found = await self._made(name)
            state = found["State"]
            if state["Status"] == "exited" and state["ExitCode"] == 0:
                return
            try:
                await self._api.persist(container.start)
            except aiodocker.DockerError:
                await self._api.remove(name)
                raise
            await self._api.persist(container.wait)
            ended = await self._api.inspect(name)
            state = ended["State"] if ended is not None else {}
            if state.get("Status") == "exited" and state.get("ExitCode") == 0:
                return
        said = "".join(await self._api.persist(lambda: container.log(stdout=True, stderr=True, tail=3)))
        await self._api.remove(name)
        raise _NotFilledError(" ".join((said or str(state.get("Error") or state)).split()))

    async def _made(self, name: str) -> dict[str, Any]:
        """Make the container that fills the volume, or find it."""
        config: dict[str, Any] = {
            "Image": self.image,
            "Entrypoint": [BUSYBOX, "sh", "-c", _FILL],
            "Cmd": [],
            "Labels": {_LABEL: self.image},
            "HostConfig": {
                "NetworkMode": "none",
                "LogConfig": {"Type": "json-file"},
                "SecurityOpt": ["no-new-privileges"],
                "Mounts": [_volume(name, "/volume", read_only=False)],
            },
        }
        while (found := await self._api.inspect(name)) is None:
            try:
                await self._api.persist(lambda: self._api.docker.containers.create(config, name=name))
            except aiodocker.DockerError as error:
                if error.status != 409:
                    raise
                await asyncio.sleep(_MAKING_SECONDS)  # another scheduler makes it just now
        return found

    def _missing(self, error: aiodocker.DockerError) -> Message:
        if error.status == 404:
            return msg("The runtime image {image} is not there; `make runtime` builds it.", image=self.image)
        return msg("The runtime image {image} cannot be used: {error}", image=self.image, error=error.message)

    def _complain(self, why: Message) -> None:
        if str(why) != str(self._why):
            _log.warning("tasks run without SSH: %s", why)
        self._why = why


class _NotFilledError(Exception):
    """The volume could not be filled."""


def runtime_mount(volume: str) -> dict[str, Any]:
    """Describe the mount of the runtime for Docker's API."""
    return _volume(volume, FOLDER, read_only=True)


def has_its_own(image: Mapping[str, Any]) -> bool:
    """Return whether an image (as Docker describes it) uses the runtime's folder for things of its own."""
    config = image["Config"]
    words = [
        *(word for line in config.get("Env") or () for word in line.partition("=")[2].split(":")),
        *(config.get("Volumes") or ()),
        config.get("WorkingDir") or "",
    ]
    return any(word == FOLDER or word.startswith(f"{FOLDER}/") for word in words)


def _volume(name: str, target: str, *, read_only: bool) -> dict[str, Any]:
    return {
        "Type": "volume",
        "Source": name,
        "Target": target,
        "ReadOnly": read_only,
        # what is in it must not depend on which image comes first
        "VolumeOptions": {"NoCopy": True},
    }
