"""`<base_url>/pai/connect/<user>/<job>/<role>-<index>`: how to reach a task, for the dialog that shows it."""

from __future__ import annotations

from http import HTTPStatus

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from pai_labextension.answers import CodeServerInfo
from pai_labextension.base_handlers import RefusedError
from pai_scheduler.client.rest import ApiError, UnreachableError

from .connect import Connect
from .handlers import TASK_ERRORS, TaskHandler, reason_of


class _ConnectHandler(TaskHandler, APIHandler):
    def initialize(self, connect: Connect) -> None:
        """Note whom to ask."""
        self._connect = connect


class DescribeHandler(_ConnectHandler):
    """Answers how to connect to a task."""

    @web.authenticated
    @authorized
    async def get(self, *_names: str) -> None:
        """Answer with addresses, or why there are none."""
        try:
            self.finish(await self._connect.describe(self.task(), self.locale_asked))
        except ApiError as error:
            raise RefusedError(error.status, error.message) from error
        except UnreachableError as error:
            raise RefusedError(HTTPStatus.BAD_GATEWAY, reason_of(error)) from error


class CheckHandler(_ConnectHandler):
    """Tries a connection to a task, step by step."""

    @web.authenticated
    @authorized
    async def post(self, *_names: str) -> None:
        """Answer with how it went."""
        self.finish(await self._connect.check(self.task(), self.locale_asked))


class CodeServerHandler(_ConnectHandler):
    """Starts code-server."""

    @web.authenticated
    @authorized
    async def post(self, *_names: str) -> None:
        """Answer with where it is, or how to get it."""
        try:
            info: CodeServerInfo = {"url": await self._connect.code_server(self.task())}
            self.finish(info)
        except TASK_ERRORS as error:
            raise RefusedError(HTTPStatus.BAD_GATEWAY, reason_of(error)) from error
