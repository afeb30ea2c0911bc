"""The notebook server's answer to the job editor: `<base_url>/pai/job-editor`."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from pai_labextension.lazy_routes import RouteGroup, RouteSettings

from ..base_handlers import PAIHandler
from .editor_info import EditorInfoHandler


class JobEditorHandler(EditorInfoHandler, PAIHandler, APIHandler):
    """Answers the person whose notebook server it is."""

    def initialize(self, api_url: str, token: str) -> None:
        """Note whom to ask about images, and in whose name."""
        self._api_url, self.caller_token = api_url, token

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with `JobEditorInfo`."""
        await self.answer()


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the route."""
    arguments = {"api_url": settings.api_url, "token": settings.token}
    return RouteGroup([(r"/pai/job-editor", JobEditorHandler, arguments)], _close_nothing)


async def _close_nothing() -> None:
    """Nothing is open between two requests."""
