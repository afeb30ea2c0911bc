"""Entry of `pai`: runs one command, and turns whatever comes of it into a sentence and an exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import cast

from pai_scheduler.i18n import choose_locale

from .parser import make_parser

# Which function is behind each command of `pai`; its module is loaded when the command is given.
#
# SSH alone takes a quarter of a second to load, which a list of jobs need not wait for.

Command = Callable[..., Awaitable[int]]

#: Command → module of this folder, and function in it.
COMMANDS: dict[str, str] = {
    "submit": "submit.submit",
    "jobs": "jobs.jobs",
    "show": "jobs.show",
    "logs": "jobs.logs",
    "metrics": "jobs.metrics",
    "stop": "jobs.stop",
    "delete": "jobs.delete",
    "nodes": "jobs.nodes",
    "nodes cordon": "admin.cordon",
    "nodes uncordon": "admin.uncordon",
    "maintenance list": "admin.maintenance_list",
    "maintenance set": "admin.maintenance_set",
    "maintenance delete": "admin.maintenance_delete",
    "queue": "admin.queue",
    "move": "admin.move",
    "priority": "admin.priority",
    "vcs": "jobs.vcs",
    "vc list": "jobs.vcs",
    "vc set": "admin.vc_set",
    "vc delete": "admin.vc_delete",
    "vc stop": "admin.vc_stop",
    "vc start": "admin.vc_start",
    "validate": "jobs.validate",
    "schedule list": "schedules.list_",
    "schedule create": "schedules.create",
    "schedule show": "schedules.show",
    "schedule pause": "schedules.pause",
    "schedule resume": "schedules.resume",
    "schedule run": "schedules.run",
    "schedule delete": "schedules.delete",
    "ssh": "ssh.ssh",
    "exec": "ssh.exec_",
    "cp": "ssh.cp",
    "port-forward": "ssh.port_forward",
    "ssh-config": "ssh_config.ssh_config",
    "ssh-info": "ssh_config.ssh_info",
    "ssh-key": "ssh_config.ssh_key",
    "keys list": "ssh_config.keys_list",
    "keys add": "ssh_config.keys_add",
    "keys remove": "ssh_config.keys_remove",
    "fs ls": "fs.fs_ls",
    "fs put": "fs.fs_put",
    "fs get": "fs.fs_get",
    "fs rm": "fs.fs_rm",
    "fs mkdir": "fs.fs_mkdir",
    "fs du": "fs.fs_du",
    "fs cat": "fs.fs_cat",
    "fs mv": "fs.fs_mv",
    "fs cp": "fs.fs_cp",
}


def load_command(name: str) -> Command:
    """Return the function behind a command."""
    module, _, function = COMMANDS[name].partition(".")
    return cast(Command, getattr(import_module(f".{module}", __package__), function))


# Runs one `pai` command, and turns whatever comes of it into a sentence and an exit code.

#: What a shell reports of a program that was ended by ^C, and by being told to end.
INTERRUPTED, TERMINATED = 130, 143


def main(argv: Sequence[str] | None = None) -> int:
    """Run `pai`; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show a character shows something else instead of nothing at all; logs go
        # past the text, and come in order with it
        stream.reconfigure(errors="backslashreplace", write_through=True)  # type: ignore[union-attr]
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

    # GONE
    from .session import NO_WAY, CliSession, complain, zone_shown

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
