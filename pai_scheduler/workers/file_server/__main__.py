"""One file server: `python -m pai_scheduler.workers.file_server DESCRIPTOR`, as the scheduler starts it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pai_scheduler import logging_config
from pai_scheduler.storage.factory import choose_storage
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.paths import StorageNames
from pai_scheduler.workers.protocol import run, tell, tell_ended

from .messages import FileServerSettings, report_line
from .server import FileServer


@asynccontextmanager
async def _open(line: bytes) -> AsyncIterator[FileServer]:
    settings = FileServerSettings.from_line(line)
    logging_config.set_up(settings.log_level, settings.log_format)
    storage = choose_storage(
        settings.storage, Path(settings.folder), account=settings.account, kerberos=settings.kerberos
    )
    # the scheduler has made it ready, and tidies it up
    files = Files(storage, StorageNames([storage.root_uri]))
    server = FileServer(
        files,
        settings.prefix,
        lambda report: tell(report_line(report)),
        tell_ended,
        openpai_compat=settings.openpai_compat,
    )
    try:
        yield server
    finally:
        await server.close()
        await files.close()


if __name__ == "__main__":
    sys.exit(run(_open))
