"""REST of this server's memory, and its routes."""

from __future__ import annotations

import json

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from pai_labextension.base_handlers import PAIHandler
from pai_labextension.lazy_routes import RouteGroup, RouteSettings
from pai_labextension.models import MemoryInfo

from .memory import KERNEL_MEMORY, KernelMemory

# `<base_url>/pai/memory?kernel=ID`: this server's limit, and whether it has cost a kernel.


class MemoryHandler(PAIHandler, APIHandler):
    """Answers what was noted when the kernel ended."""

    # asked by the page, not by a person
    _track_activity = False

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with `MemoryInfo`."""
        memory: KernelMemory = self.settings[KERNEL_MEMORY]
        answer: MemoryInfo = {
            "limitMB": memory.limit_mb,
            "lost": memory.lost(self.get_query_argument("kernel", "")),
        }
        self.finish(json.dumps(answer))


# The route of this server's own memory.


def make_part(settings: RouteSettings) -> RouteGroup:  # noqa: ARG001 - nobody is asked
    """Make the route."""
    return RouteGroup([(r"/pai/memory", MemoryHandler, {})], _close_nothing)


async def _close_nothing() -> None:
    """Nothing is open."""
