"""The file servers as the scheduler starts them: their option, their storage, who counts what they did."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pai_scheduler.api.webhdfs.operations import WebHdfsHandler
from pai_scheduler.monitoring.monitor import Monitor
from pai_scheduler.workers.file_server.messages import Answered, FileServerSettings, Report, Sent, read_report
from pai_scheduler.workers.supervisor import ConnectionServers

from .components import MOST_PROCESSES, check_range


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what an administrator may say about them."""
    parser.add_argument(
        "--file-processes",
        type=int,
        metavar="N",
        help="processes that carry the bytes of users' files, each of which fills one core at most (default: "
        "one for each core, 4 at most)",
    )


def check_options(options: argparse.Namespace) -> None:
    """Refuse what cannot be; StartError."""
    check_range("--file-processes", options.file_processes, 1, MOST_PROCESSES)


@asynccontextmanager
async def open_file_servers(
    options: argparse.Namespace, folder: Path, account: str, prefix: str, monitor: Monitor
) -> AsyncIterator[ConnectionServers]:
    """Run them until the end. `folder`: the storage where none is named; `account`: who we are to an HDFS."""
    settings = FileServerSettings(
        options.storage,
        str(folder),
        account,
        options.storage_kerberos,
        prefix,
        options.openpai_compat,
        log_level=options.log_level,
        log_format=options.log_format,
    )
    servers = ConnectionServers(
        "file server",
        "pai_scheduler.workers.file_server",
        settings.to_line(),
        options.file_processes,
        lambda line: count(monitor, read_report(line)),
    )
    servers.start()
    try:
        yield servers
    finally:
        await servers.close()


def count(monitor: Monitor, report: Report) -> None:
    """Count what was done as if it had been done here."""
    handler = WebHdfsHandler.__name__
    if isinstance(report, Sent):
        monitor.sent(handler, report.size)
    elif isinstance(report, Answered):
        monitor.answered(handler, report.status, report.seconds)
