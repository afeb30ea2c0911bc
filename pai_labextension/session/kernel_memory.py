"""Knows which kernels ended because the memory of this server was not enough."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from typing import Any

from jupyter_events import EventLogger
from jupyter_server.serverapp import ServerApp

from .own_memory import OwnMemory, own_memory

#: The name in the settings of the web application under which handlers find it.
KERNEL_MEMORY = "pai_kernel_memory"
_ACTIONS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"


class KernelMemory:
    """Judges each end of a kernel when it happens: a page that asks later cannot know how it was before."""

    def __init__(self, kernels: Any, memory: Callable[[], OwnMemory] = own_memory) -> None:
        """Begin to count; `kernels`: the server's kernel manager."""
        self._kernels, self._memory = kernels, memory
        self._killed = memory()["killed"] or 0
        self._lost: dict[str, bool] = {}

    @property
    def limit_mb(self) -> int | None:
        """What this server may use; None: as much as there is, or it is not known."""
        return self._memory()["limitMB"]

    def lost(self, kernel_id: str) -> bool:
        """Return whether a kernel's last end by itself was for its memory."""
        return self._lost.get(kernel_id, False)

    async def on_action(self, logger: EventLogger, schema_id: str, data: dict[str, Any]) -> None:  # noqa: ARG002 - the form of listeners
        """Watch over a kernel that has started."""
        kernel_id: str = data.get("kernel_id", "")
        # (a restart is a start, too; what watches over a kernel stays)
        if data["action"] != "start" or kernel_id in self._lost or kernel_id not in self._kernels:
            return
        self._lost[kernel_id] = False
        # (of one that is dead the server forgets the id)
        on_end = partial(self._on_end, kernel_id, self._kernels.get_kernel(kernel_id))
        for event in ("restart", "dead"):
            self._kernels.add_restart_callback(kernel_id, on_end, event)

    def _on_end(self, kernel_id: str, kernel: Any) -> None:
        killed = self._memory()["killed"] or 0
        # a kernel that is no process of this machine has nothing to do with its memory
        code = getattr(getattr(kernel.provisioner, "process", None), "returncode", None)
        self._lost[kernel_id] = code == -signal.SIGKILL and killed > self._killed
        self._killed = killed


def watch_kernel_memory(server: ServerApp) -> None:
    """Judge each end of a kernel from now on."""
    watch = KernelMemory(server.kernel_manager)
    server.web_app.settings[KERNEL_MEMORY] = watch
    if server.event_logger is not None:
        server.event_logger.add_listener(schema_id=_ACTIONS, listener=watch.on_action)
