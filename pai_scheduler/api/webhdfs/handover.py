"""Passes connections that carry a file's bytes on to the file servers, once it is known who asks.

The scheduler's own loop, which places jobs, never sees such bytes. Whose request it is, is found out here,
where tokens, tickets and the turns of each user are known; a file server is told the answer.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tornado.http1connection import HTTP1Connection
from tornado.httputil import HTTPServerRequest
from tornado.iostream import IOStream

from pai_scheduler.api.answering import failure
from pai_scheduler.api.auth import token_or_password
from pai_scheduler.i18n import Message, msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError

from .request import TRANSFERS, Parameters, scope_of

if TYPE_CHECKING:
    from pai_scheduler.api.base import HandlerContext

#: More bytes than were read of a body before its request was understood.
_ALL = 1 << 30

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Transfer:
    """A request whose connection is passed on: `head` with its lines, `begun` what came of its body already.

    `peer`: the client's end of the connection. `admitted`: who asks, or why nobody is let in (a refusal's
    status, code and message).
    """

    head: bytes
    begun: bytes
    peer: tuple[Any, ...]
    admitted: Principal | tuple[int, str, Message]


class FileServers(Protocol):
    """Serve connections that are passed on to them."""

    async def serve(self, connection: socket.socket, transfer: Transfer) -> None:
        """Answer the request; return when the connection has ended. The socket is the file servers' now."""


class TransferHandover:
    """Takes such requests out of the scheduler's HTTP server, at the `paths` of its WebHDFS."""

    def __init__(self, context: HandlerContext, paths: re.Pattern[str], servers: FileServers) -> None:
        self._context, self._paths, self._servers = context, paths, servers
        #: the connections that were passed on
        self._passed_on: set[asyncio.Task[None]] = set()

    def wants(self, request: HTTPServerRequest) -> bool:
        """Return whether a request carries a file's bytes; one that cannot be read does not."""
        if not self._paths.fullmatch(request.path):
            return False
        try:
            parameters = Parameters.read(request.query_arguments)
            return parameters.operation in TRANSFERS.get(request.method or "", ()) and parameters.flag("data")
        except RequestError:
            return False

    async def take(self, request: HTTPServerRequest) -> None:
        """Find out who asks, wait for that user's turn, and pass the connection on.

        Called from `headers_received`, where tornado gives a connection away.
        """
        connection = request.connection
        if not isinstance(connection, HTTP1Connection):
            raise TypeError("only HTTP/1.1 connections can be passed on")
        async with AsyncExitStack() as stack:
            admitted = await self._admit(request, stack)
            stream = connection.detach()
            if stream.closed():
                return
            transfer = Transfer(_head(request), _buffered(stream), _peer(connection), admitted)
            kept = stream.socket.dup()
            # at once, so that nothing more is read here
            stream.close()
            task = asyncio.create_task(self._serve(kept, transfer, stack.pop_all()))
            self._passed_on.add(task)
            task.add_done_callback(self._passed_on.discard)

    async def _admit(
        self, request: HTTPServerRequest, stack: AsyncExitStack
    ) -> Principal | tuple[int, str, Message]:
        try:
            principal = await sender_of(request, self._context)
            await stack.enter_async_context(self._context.transfers.counted(principal))
            return principal
        except RequestError as error:
            refusal = error
        except Exception:
            incident = secrets.token_hex(4)
            _log.exception("%s %s failed (%s)", request.method, request.path, incident)
            refusal = failure(incident)
        return refusal.status, refusal.code, refusal.message

    async def _serve(self, connection: socket.socket, transfer: Transfer, turn: AsyncExitStack) -> None:
        async with turn:
            await self._servers.serve(connection, transfer)


async def sender_of(request: HTTPServerRequest, context: HandlerContext) -> Principal:
    """Return who asks: known by a ticket, or by a token of one's own or of a job; RequestError otherwise."""
    parameters = Parameters.read(request.query_arguments)
    authorization = request.headers.get("Authorization", "")
    if ticket := parameters.text("ticket"):
        principal = context.tickets.redeem(ticket, scope_of(request, context.prefix))
        if principal is not None:
            return principal
        if not authorization:
            message = msg("This ticket is for something else, or has expired. Ask for the file again.")
            raise RequestError(403, "InvalidToken", message)
    if not authorization and (token := parameters.text("delegation")):
        # how fsspec and Hadoop's own clients say who they are
        authorization = f"Bearer {token}"
    token = token_or_password(authorization)
    return await context.service.job_holder(token) or await context.holder_of(token, context.peer(request))


def _head(request: HTTPServerRequest) -> bytes:
    """Write a request's first lines as they came."""
    lines = [f"{request.method} {request.uri} {request.version}"]
    lines += [f"{name}: {value}" for name, value in request.headers.get_all()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _buffered(stream: IOStream) -> bytes:
    """Return what was read of a body together with the head."""
    reading = asyncio.ensure_future(stream.read_bytes(_ALL, partial=True))
    return reading.result() if reading.done() and reading.exception() is None else b""


def _peer(connection: HTTP1Connection) -> tuple[Any, ...]:
    """Return the address of the connection's other end, as the socket has it."""
    address = getattr(connection.context, "address", None)
    return address if isinstance(address, tuple) else ("", 0)
