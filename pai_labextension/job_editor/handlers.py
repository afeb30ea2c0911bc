"""REST of the job editor: its schema in the reader's language, templates, and its routes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from pai_labextension.lazy_routes import RouteGroup, RouteSettings
from pai_labextension.models import JobEditorInfo
from pai_scheduler.client.rest import Client
from pai_scheduler.i18n import translate
from pai_scheduler.job.schema import job_schema

from ..base_handlers import PAIHandler
from ..images import image_help
from .templates import job_templates

# The job's JSON Schema with its titles and descriptions in the reader's language.

_WORDS = ("title", "description")


def schema_in(locale: str) -> dict[str, Any]:
    """Return the schema in a language."""
    schema: dict[str, Any] = _translated(job_schema(), locale)
    return schema


def _translated(part: Any, locale: str) -> Any:
    if isinstance(part, list):
        return [_translated(item, locale) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: translate(value, locale)
        if key in _WORDS and isinstance(value, str)
        else _translated(value, locale)
        for key, value in part.items()
    }


# `<base_url>/pai/job-editor`: what the job editor is made from, in the reader's language.


class JobEditorHandler(PAIHandler, APIHandler):
    """Answers with the schema, the templates, and what is known about images."""

    def initialize(self, api_url: str, token: str) -> None:
        """Note whom to ask about images."""
        self.api_url, self.users_token = api_url, token

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with `JobEditorInfo`."""
        locale = self.locale_asked
        async with Client(self.api_url, self.users_token, locale=locale) as client:
            images = await image_help(client)
        templates = await asyncio.to_thread(lambda: list(job_templates(locale)))
        info: JobEditorInfo = {
            "jobSchema": schema_in(locale),
            "templates": templates,
            "images": list(images.used),
            "imageNeeded": images.needed,
        }
        self.finish(json.dumps(info))


# The route of the job editor.


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the route."""
    arguments = {"api_url": settings.api_url, "token": settings.token}
    return RouteGroup([(r"/pai/job-editor", JobEditorHandler, arguments)], _close_nothing)


async def _close_nothing() -> None:
    """Nothing is open between two requests."""
