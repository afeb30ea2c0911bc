"""REST of submitting with code, and its routes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from pathlib import Path

import msgspec
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web
from tornado.iostream import StreamClosedError

from pai_labextension.base_handlers import PAIHandler
from pai_labextension.callers import RefusedError
from pai_labextension.lazy_routes import RouteGroup, RouteSettings
from pai_labextension.models import SubmitLine

from .code import CodeRefusedError, CodeSubmitter, SubmitRequest

# `<base_url>/pai/code-plan` and `<base_url>/pai/submit-with-code`: jobs whose code goes along.


class _CodeHandler(PAIHandler, APIHandler):
    def initialize(self, submitter: CodeSubmitter) -> None:
        """Note by whom to submit."""
        self.submitter = submitter

    def submit_request(self) -> SubmitRequest:
        """Read the request's body."""
        try:
            return msgspec.convert(self.get_json_body(), SubmitRequest)
        except msgspec.ValidationError as error:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, f"The request is wrong: {error}") from None


class PlanHandler(_CodeHandler):
    """Answers which files would go along with a job."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Answer with what is planned, or why it cannot be."""
        try:
            self.finish(await self.submitter.plan(self.submit_request(), self.locale_asked))
        except CodeRefusedError as error:
            raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error


class LinesHandler(PAIHandler, APIHandler):
    """Answers with lines about a submission as they come; the last one is what came of it.

    A client that hangs up before the end cancels it.
    """

    _work: asyncio.Task[None] | None = None

    async def say_all(self, lines: AsyncGenerator[SubmitLine, None]) -> None:
        """Answer line by line."""
        self.set_header("Content-Type", "application/x-ndjson")
        self._work = asyncio.create_task(self._say_each(lines))
        await asyncio.wait([self._work])
        if not self._work.cancelled():
            self._work.result()

    def on_connection_close(self) -> None:
        """The browser went away."""
        super().on_connection_close()
        if self._work is not None:
            self._work.cancel()

    async def _say_each(self, lines: AsyncGenerator[SubmitLine, None]) -> None:
        try:
            async with aclosing(lines):
                async for line in lines:
                    await self._say(line)
        except CodeRefusedError as error:
            await self._say({"error": {"message": str(error)}})
        except StreamClosedError:
            pass

    async def _say(self, line: SubmitLine) -> None:
        self.write(json.dumps(line) + "\n")
        await self.flush()


class SubmitHandler(LinesHandler, _CodeHandler):
    """Uploads and submits, and tells how far it is."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Answer line by line."""
        await self.say_all(self.submitter.submit(self.submit_request(), self.locale_asked))


# The routes of submit with code.


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and who submits."""
    submitter = CodeSubmitter(settings.api_url, settings.token, Path(settings.root_dir))
    return RouteGroup(
        [
            (r"/pai/code-plan", PlanHandler, {"submitter": submitter}),
            (r"/pai/submit-with-code", SubmitHandler, {"submitter": submitter}),
        ],
        _close_nothing,
    )


async def _close_nothing() -> None:
    """A submit opens and closes its own connections."""
