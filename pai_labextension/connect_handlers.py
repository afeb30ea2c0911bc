"""`<base_url>/pai/connect/<user>/<job>/<role>-<index>`: how to reach a task, for the dialog that shows it."""

from __future__ import annotations

from http import HTTPStatus

import asyncssh
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError
from pai_scheduler.job.messages import Message, choose_locale

from .code_server import NoCodeServerError
from .connect import Connect
from .handlers import AUTH_RESOURCE
from .messages import msg
from .ports import NotYoursError
from .task_doors import NoTaskError, TaskName
from .terminal_handlers import why


class _ConnectHandler(APIHandler):
    auth_resource = AUTH_RESOURCE

    def initialize(self, connect: Connect) -> None:
        """Take who knows."""
        self._connect = connect

    @property
    def reader(self) -> str:
        """Return the language of whoever asks."""
        return choose_locale(self.request.headers.get("Accept-Language", ""))

    def task(self) -> TaskName:
        """Read which task is meant."""
        user, job, task = self.path_args
        try:
            return TaskName.read(str(user), str(job), str(task))
        except NoTaskError:
            raise web.HTTPError(HTTPStatus.NOT_FOUND) from None

    def refuse(self, status: int, message: Message | str) -> None:
        """Answer with a sentence."""
        self.set_status(status)
        self.finish({"message": message.in_locale(self.reader) if isinstance(message, Message) else message})


class DescribeHandler(_ConnectHandler):
    """Tells what there is to know."""

    @web.authenticated
    @authorized
    async def get(self, *_names: str) -> None:
        """Answer with addresses, or why there are none."""
        try:
            self.finish(await self._connect.describe(self.task(), self.reader))
        except ApiError as error:
            self.refuse(error.status, error.message)
        except UnreachableError as error:
            self.refuse(HTTPStatus.BAD_GATEWAY, why(error, self.reader))


class CheckHandler(_ConnectHandler):
    """Tries it."""

    @web.authenticated
    @authorized
    async def post(self, *_names: str) -> None:
        """Answer with how it went."""
        self.finish(await self._connect.check(self.task(), self.reader))


class CodeServerHandler(_ConnectHandler):
    """Starts code-server."""

    @web.authenticated
    @authorized
    async def post(self, *_names: str) -> None:
        """Answer with where it is, or how to get it."""
        try:
            self.finish({"url": await self._connect.code_server(self.task())})
        except NotYoursError as error:
            message = msg("The ports of {user}'s tasks are open to {user} only.", user=str(error))
            self.refuse(HTTPStatus.FORBIDDEN, message)
        except NoCodeServerError as error:
            self.refuse(HTTPStatus.CONFLICT, error.message)
        except (RemoteError, ApiError, UnreachableError, asyncssh.Error, OSError) as error:
            self.refuse(HTTPStatus.BAD_GATEWAY, why(error, self.reader))
