"""Runs one `pai` command, and turns whatever comes of it into a sentence and an exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from pai_scheduler.i18n import choose_locale

from .arguments import make_parser

#: What a shell reports of a program that was ended by ^C, and by being told to end.
INTERRUPTED, TERMINATED = 130, 143


def main(argv: Sequence[str] | None = None) -> int:
    """Run `pai`; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show a character shows something else instead of nothing at all
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        try:
            locale = terminal_locale()
            options = make_parser(locale).parse_args(argv)
            return asyncio.run(run_command(locale, **vars(options)))
        finally:
            # what is short is written only here, and may find that nobody reads it
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED
    except BrokenPipeError:
        # the reader of our output has had enough; Python must not complain when it flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def terminal_locale() -> str:
    """Choose the language as POSIX has it: LC_ALL, then LC_MESSAGES, then LANG."""
    chosen = next(filter(None, (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return choose_locale(chosen)


async def run_command(
    locale: str,
    command: str,
    url: str | None = None,
    token: str | None = None,
    json: bool = False,
    zone: bool = False,
    **options: object,
) -> int:
    """Run a command with the options that the parser has read; return the exit code."""
    # late: who asks for help, or is refused one's words, waits for none of this
    from pai_scheduler.client.rest import Client
    from pai_scheduler.client.storage.client import FilesClient

    from .dispatch import load_command
    from .session import NO_WAY, CliSession, complain
    from .tables import zone_shown

    zone_shown.set(zone)
    client, files = (
        Client(url, token, locale=locale, warned=complain),
        FilesClient(url, token, locale=locale),
    )
    try:
        async with client, files:
            return await load_command(command)(CliSession(client, files, locale, json), **options)
    except Exception as error:
        from .failures import EXPECTED, tell

        if not isinstance(error, EXPECTED):
            raise
        url = (files if command.startswith("fs ") else client).url
        code = tell(error, url, locale)
        # 1 and 3 may be what the command there ended with
        return NO_WAY if command in ("ssh", "exec") else code
