"""Runs one tunnel server: `python -m pai_scheduler.tunnel_server DESCRIPTOR`, as the scheduler starts it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pai_scheduler.connection_servers.program import run, tell_ended
from pai_scheduler.engine.remote.tls import scheduler_tls
from pai_scheduler.monitoring import logging_setup

from .server import TunnelServer
from .settings import TunnelSettings


@asynccontextmanager
async def _open(line: bytes) -> AsyncIterator[TunnelServer]:
    settings = TunnelSettings.from_line(line)
    logging_setup.set_up(settings.log_level, settings.log_format)
    tls = None if settings.credentials is None else scheduler_tls(Path(settings.credentials))
    server = TunnelServer(tls, tell_ended)
    try:
        yield server
    finally:
        await server.close()


if __name__ == "__main__":
    sys.exit(run(_open))
