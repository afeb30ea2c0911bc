"""The connection to one agent: calls and folders, each with a time limit, errors told apart."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.message_documents import read_message
from pai_scheduler.job.task import TaskRef

from .protocol import SESSION, decode, encode
from .tunnel import AGENT_NAME, FarEnd

# What holds of agents unless an administrator says otherwise.

#: where an agent listens
AGENT_PORT = 7947
#: seconds that a node may be away before its tasks count as lost
PATIENCE_SECONDS = 120.0
#: Begins the line that says why an agent does not run, the last one of the agents' service until it does.
ENDS = "The agent does not run: "


# The connection to one agent: calls and folders, each with a time limit, errors told apart.

_CALL_SECONDS, _CONNECT_SECONDS, _FOLDER_SECONDS = 60.0, 5.0, 900.0

T = TypeVar("T")


class AgentUnreachableError(Exception):
    """The agent does not answer; nothing is known about what was asked of it."""


class SessionOverError(Exception):
    """The agent was started anew, or another scheduler has begun a session with it."""


class AgentRefusedError(Exception):
    """The agent's engine cannot do what was asked; `message` says why."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class AgentConnection:
    """Speaks to the agent at `host`:`port`. `tls`: None in tests of its messages only."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.host, self.port, self._tls = host, port, tls
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Get ready to connect; nothing is asked yet."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls if self._tls is not None else False),
            auto_decompress=False,
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
        self._session = None

    async def call(
        self, name: str, body: object, kind: Any, session: str = "", seconds: float = _CALL_SECONDS
    ) -> Any:
        """Make a call; AgentUnreachableError, SessionOverError, AgentRefusedError."""
        answer = await self._request("POST", f"/v1/{name}", session, encode(body), seconds)
        return decode(answer, kind)

    async def find_folder(self, key: str, name: str, session: str) -> str | None:
        """Return where the agent has a copy of a folder; None where it has none."""
        answer = await self._request("GET", _folder(key, name), session, None, _CALL_SECONDS)
        return msgspec.msgpack.decode(answer, type=str | None)

    async def send_folder(self, key: str, name: str, archive: AsyncIterator[bytes], session: str) -> str:
        """Send a copy of a folder as a tar archive; return where the agent has it."""
        answer = await self._request("PUT", _folder(key, name), session, archive, _FOLDER_SECONDS)
        return str(decode(answer, str))

    async def remove_folder(self, key: str, name: str, session: str) -> None:
        """Remove the agent's copy of a folder, if there is one."""
        await self._request("DELETE", _folder(key, name), session, None, _CALL_SECONDS)

    def task_port(self, task: TaskRef, port: int, session: str) -> FarEnd:
        """Return a port of a task, as the far end of a connection."""
        path = f"/v1/tasks/{quote(task.name)}/connect/{port}"
        return FarEnd("a connection to a task", self.host, self.port, path, session)

    def caller(self, caller: str, session: str) -> FarEnd:
        """Return a connection of a container that waits at the agent, as the far end of another one."""
        return FarEnd("a connection of a container", self.host, self.port, f"/v1/callers/{caller}", session)

    async def _request(self, method: str, path: str, session: str, data: Any, seconds: float) -> bytes:
        if self._session is None:
            raise RuntimeError("the connection to the agent is not open")
        scheme = "http" if self._tls is None else "https"
        timeout = aiohttp.ClientTimeout(total=seconds, connect=_CONNECT_SECONDS)
        try:
            async with self._session.request(
                method,
                f"{scheme}://{_literal(self.host)}:{self.port}{path}",
                data=data,
                headers={SESSION: session},
                timeout=timeout,
                server_hostname=AGENT_NAME if self._tls is not None else None,
            ) as response:
                answer = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise AgentUnreachableError(str(error) or type(error).__name__) from error
        if response.status == HTTPStatus.OK:
            return answer
        reason: Any = answer[:1000]
        with contextlib.suppress(msgspec.MsgspecError):
            reason = msgspec.msgpack.decode(answer)
        match response.status:
            case HTTPStatus.CONFLICT:
                raise SessionOverError
            case HTTPStatus.UNPROCESSABLE_ENTITY if isinstance(reason, list):
                raise AgentRefusedError(read_message(reason))
        raise AgentRefusedError(
            msg(
                "The agent of the node answered what was not expected: {status} {reason}",
                status=response.status,
                reason=str(reason),
            )
        )


def _folder(key: str, name: str) -> str:
    return f"/v1/folders/{key}/{quote(name, safe='')}"


def _literal(host: str) -> str:
    return f"[{host}]" if ":" in host else host
