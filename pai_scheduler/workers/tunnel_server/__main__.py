"""One tunnel server: `python -m pai_scheduler.workers.tunnel_server DESCRIPTOR` (the scheduler starts it)."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pai_scheduler import logging_config
from pai_scheduler.engine.swarm.tunnel import scheduler_tls
from pai_scheduler.workers.protocol import run, tell_ended

from .server import TunnelServer
from .settings import TunnelSettings


@asynccontextmanager
async def _open(line: bytes) -> AsyncIterator[TunnelServer]:
    settings = TunnelSettings.from_line(line)
    logging_config.set_up(settings.log_level, settings.log_format)
    tls = None if settings.credentials is None else scheduler_tls(Path(settings.credentials))
    server = TunnelServer(tls, tell_ended)
    try:
        yield server
    finally:
        await server.close()


if __name__ == "__main__":
    sys.exit(run(_open))
