"""Networks that are made before a gang asks for one: to make one takes Docker a tenth of a second.

Docker cannot rename a network, so it is written down which gang has which one; before any container of it
is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

import aiodocker

from pai_scheduler.data_folder.durable_file import write_durably
from pai_scheduler.engine.protocol import EngineError

_log = logging.getLogger(__name__)

_PREFIX = "pai-spare-"
#: A gang that starts goes first: this long after the last one was given away, others are made.
_QUIET_SECONDS = 1.0
_RETRY_SECONDS = 10.0

Make = Callable[[str], Awaitable[object]]


class SpareNetworks:
    """Up to `count` networks that nobody has yet, and which gang got which; `folder` keeps that."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder, self._count = folder, count
        self._ready: deque[str] = deque()
        #: Docker's names of those that nobody has, also of the one that is being made
        self._own: set[str] = set()
        #: Docker's name by gang
        self._given = _read(folder)
        self._wanted = asyncio.Event()
        self._filling: asyncio.Task[None] | None = None

    def fill(self, make: Make) -> None:
        """Begin to make what is missing, by a name each, now and whenever one was given away."""
        if self._count:
            self._wanted.set()
            self._filling = asyncio.create_task(self._fill(make))

    async def close(self) -> list[str]:
        """Make no more; return the names of those that nobody has."""
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)
        self._ready.clear()
        return sorted(self._own)

    def docker_name(self, gang: str) -> str:
        """Return the name that a gang's network has in Docker."""
        return self._given.get(gang, gang)

    def gang_name(self, docker_name: str) -> str | None:
        """Return the name of the gang that has a network; None: nobody has it, and it is kept."""
        if docker_name in self._own:
            return None
        return next((gang for gang, given in self._given.items() if given == docker_name), docker_name)

    def draw(self) -> str | None:
        """Return a network of those that nobody has, to be given or dropped; None where there is none."""
        self._wanted.set()
        return self._ready.popleft() if self._ready else None

    def draw_all(self) -> list[str]:
        """Return all networks that nobody has, to be dropped."""
        drawn, self._ready = list(self._ready), deque()
        return drawn

    async def give(self, gang: str, docker_name: str) -> None:
        """Write down that a gang has a network that was drawn."""
        await asyncio.to_thread(self._keep, gang, docker_name)
        self._given[gang] = docker_name
        self._own.discard(docker_name)

    def drop(self, docker_name: str) -> None:
        """Forget a network that was drawn: it is there no more."""
        self._own.discard(docker_name)

    async def forget(self, gang: str) -> None:
        """Forget what a gang had: it is removed."""
        if self._given.pop(gang, None) is not None:
            await asyncio.to_thread((self._folder / gang).unlink, missing_ok=True)

    async def forget_all_but(self, gangs: Collection[str]) -> None:
        """Forget what other gangs had."""
        for gang in self._given.keys() - gangs:
            await self.forget(gang)

    def _keep(self, gang: str, docker_name: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        write_durably(self._folder / gang, docker_name.encode())

    async def _fill(self, make: Make) -> None:
        told = ""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await asyncio.sleep(_QUIET_SECONDS)
            if self._wanted.is_set():
                continue
            while len(self._ready) < self._count and not self._wanted.is_set():
                name = _PREFIX + secrets.token_hex(8)
                self._own.add(name)
                try:
                    await make(name)
                except (EngineError, aiodocker.DockerError, OSError) as error:
                    # (made all the same, it is removed as what nobody knows)
                    self._own.discard(name)
                    # (a pool may be too small for it as long as the service runs)
                    if (why := str(error)) != told:
                        _log.warning("no network is made in advance: %s", why)
                        told = why
                    await asyncio.sleep(_RETRY_SECONDS)
                    self._wanted.set()
                else:
                    self._ready.append(name)
                    told = ""


def _read(folder: Path) -> dict[str, str]:
    given: dict[str, str] = {}
    with contextlib.suppress(FileNotFoundError):
        for file in folder.iterdir():
            name = file.read_text()
            if file.suffix != ".new" and name.startswith(_PREFIX):
                given[file.name] = name
    return given
