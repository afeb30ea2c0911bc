"""The program: serves a task, whose folder is its argument, until that ends or nobody comes any more."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import traceback
from pathlib import Path

from pai_scheduler.engine.process.ssh_server import ServerStatus, SshServerRegistration

#: Seconds after which a server that nobody uses goes; the next who wants in waits a fifth of a second.
_IDLE_SECONDS = 300.0


def main() -> None:
    """Serve one task, unless another server does."""
    parser = argparse.ArgumentParser(description="The SSH server of one task of the process engine.")
    parser.add_argument("folder", type=Path, help="the task's folder")
    parser.add_argument("--idle-seconds", type=float, default=_IDLE_SECONDS, help="goes when unused so long")
    options = parser.parse_args()
    registration = SshServerRegistration.hold(options.folder)
    if registration is None:
        return
    try:
        # only now: a second server has gone by then, and whatever is wrong with the installation is told
        from .server import serve

        asyncio.run(serve(options.folder, registration, options.idle_seconds))
    except Exception as error:
        registration.tell(_problem(error))


def _problem(error: Exception) -> ServerStatus:
    if isinstance(error, OSError) and error.errno:
        taken = error.errno == errno.EADDRINUSE
        return {"problem": os.strerror(error.errno), "taken": taken}
    return {"problem": traceback.format_exc().strip().rpartition("\n")[2][-1000:]}
