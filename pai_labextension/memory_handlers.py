"""`<base_url>/pai/memory`: this server's limit, and how often the kernel has ended something for it."""

from __future__ import annotations

import json

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from .base_handlers import PAIHandler
from .own_memory import own_memory


class MemoryHandler(PAIHandler, APIHandler):
    """Answers what control groups say."""

    # asked by the page, not by a person
    _track_activity = False

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with `MemoryInfo`."""
        self.finish(json.dumps(own_memory()))
