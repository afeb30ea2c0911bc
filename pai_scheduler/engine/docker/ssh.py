"""Finds the SSH server of a container, or the reason why there is none.

What a container was started with stands in its labels, so a new life of the service finds it too. Whether the
server is there is seen by what it says first; where it is not, the runtime has left a word in the container.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import aiodocker

from pai_scheduler.engine.protocol import NoSshEndpointError, SshEndpoint
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef

from .client import DaemonUnreachableError, DockerApi, answered
from .containers import LABEL_INSTANCE, LABEL_SSH_PORT
from .network import GangNetworks
from .runtime import FOLDER, SIGNAL, STATUS, Runtime, has_its_own

#: How long a server may take to say who it is; in the first seconds of its task it may not be there yet.
_ANSWER_SECONDS, _YOUNG_SECONDS, _AGAIN_SECONDS = 3.0, 8.0, 0.05
#: After how many seconds without an answer the container is asked why.
_WONDER_SECONDS = 1.0
#: How long it holds that a server answered: a page that shows a hundred tasks asks for all of them.
_KNOWN_SECONDS = 10.0
_ASK_SECONDS, _LONGEST_REASON = 15.0, 400
#: What an SSH server says first; other lines may stand before it (RFC 4253, 4.2), but ours says none.
_BANNER = b"SSH-2.0-"


class ContainerSshServers:
    """Finds the SSH servers of the containers of one `instance` of the scheduler.

    `is_local`: whether the containers' networks are this machine's.
    """

    def __init__(
        self, api: DockerApi, instance: str, runtime: Runtime, networks: GangNetworks, *, is_local: bool
    ) -> None:
        self._api, self._instance, self._runtime, self._is_local = api, instance, runtime, is_local
        self._networks = networks
        #: until when (loop time) it is believed that a container's server answers
        self._known: dict[str, float] = {}

    async def find(self, task: TaskRef) -> SshEndpoint:
        """Return where a running task's SSH server listens; NoSshEndpointError where none answers."""
        found = await self._show(task)
        if not self._is_local:
            raise NoSshEndpointError(
                msg("Docker runs on another machine, where tasks cannot be reached by SSH.")
            )
        port = found["Config"]["Labels"].get(LABEL_SSH_PORT)
        if port is None:
            raise NoSshEndpointError(await self._why_without(found))
        address = await self._networks.host_address(found)
        way = SshEndpoint(address, int(port), _published(found, port), signals=SIGNAL)
        await self._await_answer(found, way)
        return way

    async def address(self, task: TaskRef) -> str:
        """Return where this machine reaches a running task; NoSshEndpointError where it does not run."""
        found = await self._show(task)
        return await self._networks.host_address(found)

    async def _show(self, task: TaskRef) -> dict[str, Any]:
        container = self._api.docker.containers.container(task.name)
        try:
            found = await self._api.call(container.show, _ASK_SECONDS)
        except DaemonUnreachableError as error:
            raise NoSshEndpointError(
                msg("Docker does not answer, so the task cannot be reached now.")
            ) from error
        except aiodocker.DockerError as error:
            if error.status != 404:
                raise
            found = {}
        is_ours = found and found["Config"]["Labels"].get(LABEL_INSTANCE) == self._instance
        if not is_ours or not found["State"]["Running"]:
            raise NoSshEndpointError(msg("The task does not run."))
        return found

    async def _why_without(self, found: Mapping[str, Any]) -> Message:
        if has_its_own(found):
            return msg(
                "The task's image has a folder {folder} of its own, where the SSH server of tasks would be.",
                folder=FOLDER,
            )
        if await self._runtime.volume() is None and self._runtime.why_not is not None:
            return self._runtime.why_not
        return msg("The task was started without an SSH server. Start the job again to have one.")

    async def _await_answer(self, found: Mapping[str, Any], way: SshEndpoint) -> None:
        """Wait for the server of a young task; NoSshEndpointError where none answers."""
        clock = asyncio.get_running_loop().time
        container = str(found["Id"])
        if self._known.get(container, 0.0) > clock():
            return
        age = time.time() - datetime.fromisoformat(found["State"]["StartedAt"]).timestamp()
        give_up = clock() + max(0.0, _YOUNG_SECONDS - age)
        wonder = clock() + _WONDER_SECONDS
        while not await _answers(way):
            if clock() >= min(give_up, wonder):
                why = await self._ask_why(container, way)
                if why is not None or clock() >= give_up:
                    raise NoSshEndpointError(why or _silent(way))
                wonder = clock() + _WONDER_SECONDS
            await asyncio.sleep(_AGAIN_SECONDS)
        self._known = {known: until for known, until in self._known.items() if until > clock()}
        self._known[container] = clock() + _KNOWN_SECONDS

    async def _ask_why(self, container: str, way: SshEndpoint) -> Message | None:
        """Ask in the container why there is no server; None where nothing is known of it."""
        try:
            said, code = await answered(lambda: self._look(container), _ASK_SECONDS)
        except DaemonUnreachableError:
            return None
        except aiodocker.DockerError as error:
            if error.status == 409:
                return msg("The task does not run.")
            return self._without_runtime()
        if code in (126, 127):
            return self._without_runtime()
        return _reason(said, way.port) if said else None

    def _without_runtime(self) -> Message:
        """Return the error that says that the volume is empty; the next task finds it filled."""
        self._runtime.doubt()
        return msg("The runtime in {folder} has gone. Start the job again to have it back.", folder=FOLDER)

    async def _look(self, container: str) -> tuple[str, int]:
        """Read what the runtime left; return it on one line, and the exit code of the reading."""
        handle = self._api.docker.containers.container(container)
        asking = await handle.exec([STATUS], stderr=False)
        said = b""
        async with asking.start() as stream:
            while len(said) < _LONGEST_REASON and (part := await stream.read_out()) is not None:
                said += part.data
        code = int((await asking.inspect())["ExitCode"] or 0)
        # (what is in a container may have been written by anybody who is in it)
        text = "".join(
            character
            for character in said[:_LONGEST_REASON].decode(errors="replace")
            if character.isprintable() or character.isspace()
        )
        return " ".join(text.split()), code


async def _answers(way: SshEndpoint) -> bool:
    """Return whether an SSH server says who it is."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(way.host, way.port)
            return await reader.readexactly(len(_BANNER)) == _BANNER
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
    finally:
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def _published(found: Mapping[str, Any], port: str) -> tuple[str, int] | None:
    """Find where this host has a container's SSH port for others."""
    bindings = found["NetworkSettings"]["Ports"].get(f"{port}/tcp") or ()
    return next(((str(each["HostIp"]), int(each["HostPort"])) for each in bindings), None)


def _reason(said: str, port: int) -> Message:
    """Put the runtime's word for why there is no server, and what may follow it, into a sentence."""
    word, _, more = said.partition(" ")
    match word:
        case "port-taken":
            return msg(
                "Another program of the task listens on port {port}, which is meant for its SSH server.",
                port=port,
            )
        case "no-files":
            return msg("The task's SSH server did not find its keys ({file}).", file=more)
        case "no-privileges" | "no-folder" | "nothing-writable":
            return msg("The task's image leaves no room for an SSH server ({error}).", error=said)
        case "sshd":
            return msg("The task's SSH server does not run: {error}", error=more)
    return msg("The task's SSH server does not run: {error}", error=said)


def _silent(way: SshEndpoint) -> Message:
    return msg(
        "The task's SSH server does not answer at {host}:{port}. It was ended, or this machine does not "
        "reach Docker's networks.",
        host=way.host,
        port=way.port,
    )
