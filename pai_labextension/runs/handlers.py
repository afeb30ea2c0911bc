"""`<base_url>/pai/run-plan` and `<base_url>/pai/run-file`: a file of the file browser runs as a job."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from jupyter_server.auth.decorator import authorized
from tornado import web

from ..base_handlers import RefusedError
from .code import CodeRefusedError
from .code_handlers import LinesHandler
from .running import FileRunner, RunRequest


class _RunHandler(LinesHandler):
    def initialize(self, runner: FileRunner) -> None:
        """Note by whom it is run."""
        self.runner = runner

    def run_request(self) -> RunRequest:
        """Read the request's body."""
        try:
            return msgspec.convert(self.get_json_body(), RunRequest)
        except msgspec.ValidationError as error:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, f"The request is wrong: {error}") from None


class RunPlanHandler(_RunHandler):
    """Answers what running a file would do."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Answer with what is planned, or why it cannot be."""
        try:
            self.finish(await self.runner.plan(self.run_request(), self.locale_asked))
        except CodeRefusedError as error:
            raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error


class RunFileHandler(_RunHandler):
    """Uploads what goes along and submits the job, and tells how far it is."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Answer line by line."""
        await self.say_all(self.runner.submit(self.run_request(), self.locale_asked))
