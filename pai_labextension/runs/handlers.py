"""REST of runs of files as jobs, and its routes."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

import msgspec
from jupyter_server.auth.decorator import authorized
from tornado import web

from pai_labextension.lazy_routes import RouteGroup, RouteSettings

from ..callers import RefusedError
from .code import CodeRefusedError
from .code_handlers import LinesHandler
from .manager import FileRunner, RunRequest

# `<base_url>/pai/run-plan` and `<base_url>/pai/run-file`: a file of the file browser runs as a job.


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


# The routes of files that run as jobs.


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and who runs files."""
    given = {"runner": FileRunner(settings.api_url, settings.token, Path(settings.root_dir))}
    return RouteGroup(
        [(r"/pai/run-plan", RunPlanHandler, given), (r"/pai/run-file", RunFileHandler, given)],
        _close_nothing,
    )


async def _close_nothing() -> None:
    """A run opens and closes its own connections."""
