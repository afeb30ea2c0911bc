"""`<base_url>/pai/job-editor`: what the job editor is made from, in the reader's language."""

from __future__ import annotations

import asyncio
import json

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from pai_scheduler.client.rest import Client

from ..answers import JobEditorInfo
from ..base_handlers import PAIHandler
from ..images import image_help
from .schema_words import schema_in
from .templates import job_templates


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
