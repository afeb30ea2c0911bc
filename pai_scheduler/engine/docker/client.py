"""Asynchronous client of one Docker Engine: bounded, a timeout on every call, errors told apart.

aiodocker speaks the API; here stands what a scheduler needs around it. A daemon that hangs costs
pending coroutines, never a thread.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import re
import stat
import tarfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiodocker
import aiohttp
from aiodocker.containers import DockerContainer

from pai_scheduler.engine.protocol import EngineError, RegistryLogin
from pai_scheduler.i18n import Message, msg

DEFAULT_HOST = "unix:///var/run/docker.sock"
#: Docker 19.03: the first with device requests, which GPUs need.
OLDEST_API = (1, 40)
OPEN_SECONDS = 10.0
_CONTROL_CALLS, _LISTENERS, _LOG_READERS = 16, 512, 16
_CALL_SECONDS, _RETRY_SECONDS = 60.0, (0.1, 5.0)
_SIZE_SECONDS = 600.0
#: Bytes of a stream that are read ahead, and those of a log: more gather before it is read on, line by line.
_BYTES, _LOG_BYTES = 2**16, 1
#: Archives that are sent at once, and how long one may take.
_ARCHIVES, _ARCHIVE_SECONDS = 4, 900.0

#: What Docker 20.10 says as it is going down: it answers, but has closed its store of networks.
_GOING_DOWN = re.compile(r"store for object type .*: open : no such file or directory")

T = TypeVar("T")


class DaemonUnreachableError(Exception):
    """The daemon does not answer; nothing is known about what was asked of it."""


class DockerApi:
    """Calls one daemon. `host`: `unix://…` or `tcp://…`; default: DOCKER_HOST, then the usual socket."""

    def __init__(self, host: str | None = None) -> None:
        self.host = host or os.environ.get("DOCKER_HOST") or DEFAULT_HOST
        self._control = asyncio.Semaphore(_CONTROL_CALLS)
        self._listeners = asyncio.Semaphore(_LISTENERS)
        self._readers = asyncio.Semaphore(_LOG_READERS)
        self._writers = asyncio.Semaphore(_ARCHIVES)
        self._docker: aiodocker.Docker | None = None
        self._connector: aiohttp.BaseConnector | None = None
        self._log_session: aiohttp.ClientSession | None = None

    @property
    def docker(self) -> aiodocker.Docker:
        """Return the client; only between `open` and `close`."""
        if self._docker is None:
            raise RuntimeError("the connection to Docker is not open")
        return self._docker

    @property
    def socket_path(self) -> Path | None:
        """Return the path of the daemon's socket; None where it is reached over TCP."""
        return Path(self.host.removeprefix("unix://")) if self.host.startswith("unix://") else None

    async def open(self) -> None:
        """Connect; EngineError with what is wrong and what to do about it."""
        if self.socket_path is None:
            self._docker = aiodocker.Docker(url=self.host)
        else:
            check_socket(self.socket_path)
            # the default of 100 connections would let followed logs starve the control calls
            self._connector = aiohttp.UnixConnector(str(self.socket_path), limit=0)
            self._docker = aiodocker.Docker(url="http://localhost", connector=self._connector)
        self._log_session = aiohttp.ClientSession(
            connector=self._docker.connector, connector_owner=False, version=aiohttp.HttpVersion10
        )
        try:
            version = await self.call(self._docker.version, seconds=OPEN_SECONDS)
        except (DaemonUnreachableError, aiodocker.DockerError) as error:
            await self.close()
            raise silent_daemon(self.host, error) from error
        try:
            check_version(self.host, str(version["ApiVersion"]))
        except EngineError:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connections."""
        if self._log_session is not None:
            await self._log_session.close()
        if self._docker is not None:
            await self._docker.close()
        if self._connector is not None:
            await self._connector.close()
        self._docker = self._connector = self._log_session = None

    def network(self, name: str) -> aiodocker.networks.DockerNetwork:
        """Return the handle of a network, by name or id."""
        return aiodocker.networks.DockerNetwork(self.docker, name)  # type: ignore[no-untyped-call]

    async def call(self, make: Callable[[], Awaitable[T]], seconds: float | None = None) -> T:
        """Make one control call; UnreachableError where no answer comes, DockerError where it is refused."""
        async with self._control:
            return await answered(make, _CALL_SECONDS if seconds is None else seconds)

    async def persist(self, make: Callable[[], Awaitable[T]]) -> T:
        """Make a control call that may be repeated, until the daemon has answered it."""
        pause, longest = _RETRY_SECONDS
        while True:
            try:
                return await self.call(make)
            except DaemonUnreachableError:
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)

    async def inspect(self, name: str) -> dict[str, Any] | None:
        """Describe a container, by name or id; None where there is none. Waits for the daemon."""
        try:
            return await self.persist(lambda: self.docker.containers.container(name).show())
        except aiodocker.DockerError as error:
            if error.status == 404:
                return None
            raise

    async def size(self, container: str) -> int | None:
        """Measure a container's writable layer (bytes); None where that cannot be had now."""

        async def measure() -> int | None:
            async with self._stream(f"containers/{container}/json", {"size": "1"}) as response:
                answer: dict[str, Any] = await response.json()
                return answer.get("SizeRw")

        try:
            # not one of the control calls: it takes as long as there are many files
            return await answered(measure, _SIZE_SECONDS)
        except (DaemonUnreachableError, aiodocker.DockerError):
            return None

    async def remove(self, name: str) -> None:
        """Remove a container with its anonymous volumes, running or not; none of that name is no error."""
        try:
            await self.persist(lambda: self.docker.containers.container(name).delete(force=True, v=True))
        except aiodocker.DockerError as error:
            if error.status == 409:  # its removal is already in progress
                await asyncio.sleep(0.1)
            elif error.status != 404:
                raise

    async def containers(self, label: str, status: str | None = None) -> list[DockerContainer]:
        """List the containers with a label (`key=value`), of all states or of one. Waits for the daemon."""
        filters = json.dumps({"label": [label]} | ({"status": [status]} if status else {}))
        return await self.persist(lambda: self.docker.containers.list(all=1, filters=filters))

    async def containers_in(self, network: str) -> list[DockerContainer]:
        """List the containers of all states that have to do with a network. Waits for the daemon."""
        filters = json.dumps({"network": [network]})
        return await self.persist(lambda: self.docker.containers.list(all=1, filters=filters))

    async def put_archive(self, container: str, archive: Callable[[], AsyncIterator[bytes]]) -> None:
        """Unpack a tar archive at the root of a container; DockerError. Waits for the daemon.

        `archive` gives it anew whenever it has to be sent again.
        """
        pause, longest = _RETRY_SECONDS
        while True:
            try:
                # not one of the control calls: it takes as long as there is much
                async with self._writers:
                    await answered(lambda: self._put(container, archive()), _ARCHIVE_SECONDS)
                return
            except DaemonUnreachableError:
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)

    async def _put(self, container: str, archive: AsyncIterator[bytes]) -> None:
        path = f"containers/{container}/archive"
        headers = {"Content-Type": "application/x-tar"}
        async with self._stream(path, {"path": "/"}, headers, "PUT", archive) as response:
            await response.read()

    async def owner_of(self, container: str, place: str) -> tuple[int, int]:
        """Return the user id and the permission bits of a folder in a container; DockerError. Blocks."""
        path = f"containers/{container}/archive"

        async def ask() -> tuple[int, int]:
            # Docker tells the owner in an archive only, whose beginning is enough; none is shorter
            async with self._stream(path, {"path": place}) as response:
                try:
                    head = await response.content.readexactly(3 * tarfile.BLOCKSIZE)
                except asyncio.IncompleteReadError as error:
                    raise DaemonUnreachableError("Docker closed the archive") from error
            with tarfile.open(fileobj=io.BytesIO(head), mode="r:") as archive:
                folder = next(iter(archive))
            return folder.uid, folder.mode & 0o7777

        return await self.persist(ask)

    async def resolve(self, image: str, login: RegistryLogin | None) -> None:
        """Ask an image's registry whether it is there for who logs in so; DockerError."""
        account = {"username": login.user, "password": login.password} if login is not None else {}
        header = base64.urlsafe_b64encode(json.dumps(account).encode()).decode()
        async with self._stream(f"distribution/{image}/json", {}, {"X-Registry-Auth": header}) as response:
            await response.read()

    async def stats(self, container: str) -> dict[str, Any] | None:
        """Measure a container once; None where it does not run or the daemon does not answer."""

        async def measure() -> dict[str, Any]:
            # aiodocker does not know `one-shot`, without which Docker waits a second for a second sample
            params = {"stream": "0", "one-shot": "1"}
            async with self._stream(f"containers/{container}/stats", params) as response:
                answer: dict[str, Any] = await response.json()
                return answer

        try:
            return await self.call(measure)
        except (DaemonUnreachableError, aiodocker.DockerError):
            return None

    @asynccontextmanager
    async def log_stream(self, container: str, **params: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """Read a container's log as Docker frames it; bounded apart from the control calls.

        Its end may be the daemon's own: see `_stream`.
        """
        async with self._readers, self._stream(f"containers/{container}/logs", params, logs=True) as response:
            yield response

    @asynccontextmanager
    async def output_stream(self, container: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """Listen to what a container writes from now on; where that is not read, the container waits."""
        params = {"stream": "1", "stdout": "1", "stderr": "1"}
        path = f"containers/{container}/attach"
        async with self._listeners, self._stream(path, params, method="POST") as response:
            yield response

    @asynccontextmanager
    async def events(self, label: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Subscribe to the events of containers with a label; nothing is missed from the entering on."""
        # one second back: the daemon answers a moment before it subscribes us
        filters = json.dumps({"type": ["container"], "label": [label]})
        params = {"since": f"{time.time() - 1:.9f}", "filters": filters}
        async with self._stream("events", params) as response:
            yield _json_lines(response)

    @asynccontextmanager
    async def _stream(
        self,
        path: str,
        params: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        body: AsyncIterator[bytes] | None = None,
        *,
        logs: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask for an answer without an end. `logs`: in HTTP/1.0, and in large pieces.

        In HTTP/1.1 each line comes as a chunk of its own, which costs more than everything else about it.
        """
        base = self.docker.docker_host.replace("tcp://", "http://")
        url = f"{base}/{self.docker.api_version}/{path}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        try:
            session = self._log_session if logs and self._log_session is not None else self.docker.session
            response = await session.request(
                method,
                url,
                params=params,
                headers=headers,
                timeout=timeout,
                data=body,
                read_bufsize=_LOG_BYTES if logs else _BYTES,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise DaemonUnreachableError(str(error)) from error
        try:
            if response.status >= 400:
                raise aiodocker.DockerError(response.status, (await response.text())[:1000])
            yield response
        finally:
            response.close()


async def _json_lines(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    buffer = b""
    try:
        async for chunk in response.content.iter_any():
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                if line.strip():
                    yield json.loads(line)
    except (aiohttp.ClientError, OSError) as error:
        raise DaemonUnreachableError(str(error)) from error
    raise DaemonUnreachableError("Docker closed the stream of events")


async def answered(make: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Await one answer of the daemon; UnreachableError where none comes."""
    try:
        async with asyncio.timeout(seconds):
            return await make()
    except TimeoutError as error:
        raise DaemonUnreachableError(f"no answer within {seconds:g} seconds") from error
    except (aiohttp.ClientError, OSError) as error:
        raise DaemonUnreachableError(str(error)) from error
    except aiodocker.DockerError as error:
        # (900 is aiodocker's number for "cannot connect")
        if error.status == 900 or _GOING_DOWN.search(str(error.message)):
            raise DaemonUnreachableError(error.message) from error
        raise


def silent_daemon(host: str, error: Exception) -> EngineError:
    """Return the error that says that no daemon answers, and what to do."""
    return EngineError(
        msg(
            "Docker does not answer at {host}: {error}. Is dockerd running? Start it, or set DOCKER_HOST.",
            host=host,
            error=str(error),
        )
    )


def check_version(host: str, found: str) -> None:
    """Raise EngineError where a daemon is too old; `found`: the version of its API."""
    if tuple(int(part) for part in found.split(".")) < OLDEST_API:
        raise EngineError(
            msg(
                "Docker at {host} is too old (API {found}); version 19.03 (API 1.40) or newer is needed.",
                host=host,
                found=found,
            )
        )


def check_socket(path: Path) -> None:
    """Raise EngineError with what exactly is wrong with a socket: a failed connection does not say it."""
    try:
        mode = path.stat().st_mode
    except PermissionError as error:
        raise EngineError(_forbidden(path)) from error
    except OSError as error:
        raise EngineError(
            msg(
                "There is no Docker socket at {path}. "
                "Install Docker and start it, or set DOCKER_HOST to where it is.",
                path=str(path),
            )
        ) from error
    if not stat.S_ISSOCK(mode):
        raise EngineError(
            msg(
                "{path} is no socket, so Docker cannot be reached there. Correct DOCKER_HOST.", path=str(path)
            )
        )
    if not os.access(path, os.R_OK | os.W_OK):
        raise EngineError(_forbidden(path))


def _forbidden(path: Path) -> Message:
    return msg(
        "You may not use the Docker socket {path}. "
        "Join the group docker (sudo usermod -aG docker $USER) and log in again.",
        path=str(path),
    )
