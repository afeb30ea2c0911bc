"""`<base_url>/pai/memory?kernel=ID`: this server's limit, and whether it has cost a kernel."""

from __future__ import annotations

import json

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from pai_labextension.answers import MemoryInfo
from pai_labextension.base_handlers import PAIHandler

from .kernel_memory import KERNEL_MEMORY, KernelMemory


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
