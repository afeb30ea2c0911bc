"""A pool of networks made ahead: to make one takes Docker a tenth of a second.

Docker cannot rename a network, so it is written down which gang has which one; before any container of it
is made. With it stands the first of the addresses that the gang has: each gang gets others than those before
it, as long as there are any, so that whoever still asks at the address of an ended one finds nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Given:
    """Network of a gang, by Docker's name, and its addresses from this one on (0: the first)."""

    network: str
    offset: int


class SpareNetworks:
    """Networks that nobody has, and which gang got which; `folder` keeps that.

    `count` of them are made in advance. Those of ended gangs are kept for the next ones where there are fewer
    than `most` (0: none is).
    """

    def __init__(self, folder: Path, count: int, most: int = 0) -> None:
        self._folder, self._count, self._most = folder, count, most
        self._closed = False
        self._ready: deque[str] = deque()
        #: Docker's names of those that nobody has, also of the one that is being made
        self._own: set[str] = set()
        #: by gang
        self._given = _read(folder)
        #: by network, the first address that no gang has had; unknown of those that another service made
        self._unused: dict[str, int] = {}
        self._wanted = asyncio.Event()
        self._filling: asyncio.Task[None] | None = None
        #: held while Docker is asked for one
        self._asking = asyncio.Lock()

    def fill(self, make: Make) -> None:
        """Begin to make what is missing, by a name each, now and whenever one was given away."""
        if self._count:
            self._wanted.set()
            self._filling = asyncio.create_task(self._fill(make))

    async def close(self) -> list[str]:
        """Make and keep no more; return the names of those that nobody has."""
        self._closed = True
        if self._filling is not None:
            try:
                # one that Docker is asked for comes all the same: it is waited for, so that it is known
                async with self._asking:
                    pass
            finally:
                self._filling.cancel()
                await asyncio.gather(self._filling, return_exceptions=True)
        self._ready.clear()
        return sorted(self._own)

    @property
    def keeps(self) -> bool:
        """Return whether networks of ended gangs are kept, so that each small gang should get one."""
        return self._most > 0

    def docker_name(self, gang: str) -> str:
        """Return the name that a gang's network has in Docker."""
        given = self._given.get(gang)
        return given.network if given else gang

    def offset(self, gang: str) -> int:
        """Return how many addresses of a gang's network come before its own."""
        given = self._given.get(gang)
        return given.offset if given else 0

    def gang_name(self, docker_name: str) -> str | None:
        """Return the name of the gang that has a network; None: nobody has it, and it is kept."""
        if docker_name in self._own:
            return None
        return next((gang for gang, had in self._given.items() if had.network == docker_name), docker_name)

    def draw(self) -> str | None:
        """Return a network of those that nobody has, to be given or dropped; None where there is none."""
        self._wanted.set()
        return self._ready.popleft() if self._ready else None

    def draw_all(self) -> list[str]:
        """Return all networks that nobody has, to be dropped."""
        drawn, self._ready = list(self._ready), deque()
        return drawn

    def new(self) -> str:
        """Return a name for one that is about to be made, to be given or dropped."""
        name = _PREFIX + secrets.token_hex(8)
        self._own.add(name)
        self._unused[name] = 0
        return name

    def may_keep(self, docker_name: str) -> bool:
        """Return whether a network that no gang needs any more is to be kept."""
        return docker_name.startswith(_PREFIX) and not self._closed and len(self._ready) < self._most

    async def keep(self, gang: str, docker_name: str) -> None:
        """Keep a network for another gang; no container is in it."""
        self._own.add(docker_name)  # first, so that it is at no time unknown whose it is
        await self.forget(gang)
        if docker_name not in self._ready:
            self._ready.append(docker_name)

    async def give(self, gang: str, docker_name: str, addresses: int, room: int) -> None:
        """Write down that a gang has a network that was drawn, and so many addresses of the `room` in it."""
        last = room - addresses
        offset = self._unused.get(docker_name, secrets.randbelow(last + 1))
        given = _Given(docker_name, offset if offset <= last else 0)
        await asyncio.to_thread(self._write, gang, given)
        self._given[gang] = given
        self._unused[docker_name] = given.offset + addresses
        self._own.discard(docker_name)

    def drop(self, docker_name: str) -> None:
        """Forget a network that was drawn: it is there no more."""
        self._own.discard(docker_name)
        self._unused.pop(docker_name, None)

    async def forget(self, gang: str) -> None:
        """Forget what a gang had: it is removed."""
        if self._given.pop(gang, None) is not None:
            await asyncio.to_thread((self._folder / gang).unlink, missing_ok=True)

    async def forget_all_but(self, gangs: Collection[str]) -> None:
        """Forget what other gangs had."""
        for gang in self._given.keys() - gangs:
            await self.forget(gang)

    def _write(self, gang: str, given: _Given) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        write_durably(self._folder / gang, f"{given.network} {given.offset}".encode())

    async def _fill(self, make: Make) -> None:
        told = ""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await asyncio.sleep(_QUIET_SECONDS)
            if self._wanted.is_set():
                continue
            while len(self._ready) < self._count and not self._wanted.is_set() and not self._closed:
                name = self.new()
                try:
                    async with self._asking:
                        await make(name)
                except (EngineError, aiodocker.DockerError, OSError) as error:
                    # (made all the same, it is removed as what nobody knows)
                    self.drop(name)
                    # (a pool may be too small for it as long as the service runs)
                    if (why := str(error)) != told:
                        _log.warning("no network is made in advance: %s", why)
                        told = why
                    await asyncio.sleep(_RETRY_SECONDS)
                    self._wanted.set()
                else:
                    self._ready.append(name)
                    told = ""


def _read(folder: Path) -> dict[str, _Given]:
    given: dict[str, _Given] = {}
    with contextlib.suppress(FileNotFoundError):
        for file in folder.iterdir():
            network, _, offset = file.read_text().partition(" ")
            if file.suffix != ".new" and network.startswith(_PREFIX):
                given[file.name] = _Given(network, int(offset or 0))
    return given
