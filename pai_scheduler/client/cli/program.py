"""Runs one `pai` command, and turns whatever comes of it into a sentence and an exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError, UnreachableGatewayError
from pai_scheduler.client.ssh.sftp import RemoteFileError
from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.client.storage.code import CodeError, SubmitRefusedError
from pai_scheduler.client.storage.errors import FilesError
from pai_scheduler.client.storage.transfer import LocalFileError
from pai_scheduler.job.messages import choose_locale, msg

from .arguments import make_parser
from .commands import COMMANDS
from .files import FileError
from .session import CliSession
from .ssh import NO_WAY
from .tables import printable_lines, zone_shown

REFUSED, USAGE, UNREACHABLE = 1, 2, 3
#: What a shell reports of a program that was ended by ^C, and by being told to end.
INTERRUPTED, TERMINATED = 130, 143
#: What a command raises where something is not as it should be; everything else is our mistake.
_EXPECTED = (
    ApiError,
    FilesError,
    CodeError,
    RemoteError,
    RemoteFileError,
    LocalFileError,
    FileError,
    UnreachableError,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `pai`; return the exit code."""
    locale = terminal_locale()
    options = make_parser(locale).parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show a character shows something else instead of nothing at all
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        return asyncio.run(_run(locale, **vars(options)))
    except KeyboardInterrupt:
        return INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED
    except BrokenPipeError:
        # whoever read us has had enough; Python must not complain when it flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def terminal_locale() -> str:
    """Choose the language as POSIX has it: LC_ALL, then LC_MESSAGES, then LANG."""
    chosen = next(filter(None, (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return choose_locale(chosen)


async def _run(
    locale: str,
    command: str,
    url: str | None = None,
    token: str | None = None,
    json: bool = False,
    zone: bool = False,
    **options: object,
) -> int:
    zone_shown.set(zone)
    client, files = (
        Client(url, token, locale=locale, warned=_complain),
        FilesClient(url, token, locale=locale),
    )
    try:
        async with client, files:
            return await COMMANDS[command](CliSession(client, files, locale, json), **options)
    except _EXPECTED as error:
        url = (files if command.startswith("fs ") else client).url
        code = _tell(error, url, locale)
        # 1 and 3 may be what the command there ended with
        return NO_WAY if command in ("ssh", "exec") else code


def _tell(error: Exception, url: str, locale: str) -> int:
    """Return what has gone wrong; return the exit code."""
    match error:
        case ApiError():
            _complain(error.message)
            # where there is only one, the sentence above has it
            for field in error.errors if len(error.errors) > 1 else ():
                _complain(f"  {field['path']}: {field['message']}")
            if isinstance(error, SubmitRefusedError):
                there = msg(
                    "The code is uploaded to {folder}; the job is not submitted.", folder=error.code_folder
                )
                _complain(there.in_locale(locale))
            _explain(error.status, locale)
            return REFUSED
        case FilesError():
            _complain(error.in_locale(locale))
            _explain(error.status, locale)
            return REFUSED
        case UnreachableGatewayError():
            _complain(error.message.in_locale(locale))
            return UNREACHABLE
        case CodeError() | RemoteError() | RemoteFileError():
            _complain(error.message.in_locale(locale))
            return REFUSED
        case LocalFileError():
            _complain(error.message.in_locale(locale))
            return USAGE
        case FileError():
            _complain(error.message.in_locale(locale))
            return REFUSED if error.readable else USAGE
        case _:
            _complain(
                msg(
                    "The scheduler at {url} does not answer: {reason}",
                    url=url,
                    reason=error.__cause__ or error,
                ).in_locale(locale)
            )
            return UNREACHABLE


def _explain(status: int, locale: str) -> None:
    if status == 401:
        _complain(msg("Set PAI_TOKEN to your token, or give it with --token.").in_locale(locale))


def _complain(text: str) -> None:
    print(printable_lines(text), file=sys.stderr)
