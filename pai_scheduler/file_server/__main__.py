"""Runs one file server: `python -m pai_scheduler.file_server DESCRIPTOR`, as the supervisor starts it."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from pai_scheduler.monitoring import logging_setup
from pai_scheduler.storage.choosing import choose_storage
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.names import StorageNames

from .messages import Report, Settings, receive, report_line
from .server import FileServer

#: Seconds that letting go of the storage may take.
_LAST_SECONDS = 5.0


def main() -> int:
    """Serve until the scheduler is gone."""
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    settings = Settings.from_line(line)
    logging_setup.set_up(settings.log_level, settings.log_format)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # ^C and SIGTERM are for the scheduler, whose end we see
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_run(settings, socket.socket(fileno=int(sys.argv[1]))))
    # a thread that waits for a storage keeps nobody waiting
    os._exit(0)


async def _run(settings: Settings, channel: socket.socket) -> None:
    channel.setblocking(False)
    storage = choose_storage(
        settings.storage, Path(settings.folder), account=settings.account, kerberos=settings.kerberos
    )
    # the scheduler has made it ready, and tidies it up
    files = Files(storage, StorageNames([storage.root_uri]))
    server = FileServer(files, settings.prefix, _tell, openpai_compat=settings.openpai_compat)
    while (passed_on := await receive(channel)) is not None:
        server.take(*passed_on)
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_SECONDS):
            await server.close()
            await files.close()


def _tell(report: Report) -> None:
    """Write a report to the scheduler, which reads all the time."""
    sys.stdout.buffer.write(report_line(report))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
