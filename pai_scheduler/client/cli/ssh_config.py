"""`pai ssh-config`: lets every program that reads ~/.ssh/config find the running tasks."""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.client.ssh.connection import RemoteError, find_gateway
from pai_scheduler.client.ssh.openssh_config import (
    Host,
    UnwritableNameError,
    config,
    hosts,
    known_hosts,
    quoted,
    word_of,
)
from pai_scheduler.client.storage.transfer import side_by_side
from pai_scheduler.i18n import msg
from pai_scheduler.ssh.keys.login_name import LoginName

from .session import OK, CliSession
from .ssh_files import SshFolder
from .tables import printable


@dataclass(frozen=True, slots=True)
class _Running:
    """What runs of one user: tasks that can be logged into, and the key of each of their jobs."""

    tasks: Sequence[LoginName]
    keys: Mapping[str, str]


async def ssh_config(session: CliSession, *, write: bool, remove: bool) -> int:
    """Print the configuration, or write or remove its files."""
    folder = SshFolder(Path.home() / ".ssh")
    if remove:
        await asyncio.to_thread(folder.remove)
        session.say("What `pai ssh-config --write` had written to {folder} is gone.", folder=str(folder.path))
        return OK
    gateway = await find_gateway(session.client)
    running = await _running(session.client)
    paths = {job: folder.key_path(_file_name(job)) for job in running.keys}
    blocks = _blocks(session, hosts(running.tasks, {job: path.as_posix() for job, path in paths.items()}))
    try:
        text = config(gateway.host, gateway.port, folder.known_hosts.as_posix(), blocks)
    except UnwritableNameError as error:
        raise RemoteError(
            msg(
                "{path} cannot stand in a file of OpenSSH, and the files are to be there.", path=error.args[0]
            )
        ) from None
    if not write:
        print(text, end="")
        return OK
    keys = {_file_name(job): key for job, key in running.keys.items()}
    await asyncio.to_thread(folder.write, text, known_hosts(gateway.host_key), keys)
    _tell(session, blocks, folder)
    return OK


async def _running(client: Client) -> _Running:
    user = (await client.whoami())["username"]
    tasks: dict[str, list[LoginName]] = {}
    keys: dict[str, str] = {}

    async def look(job: str) -> None:
        try:
            info = await client.ssh(user, job)
            found = [LoginName(user, job, each["task"]) for each in info["containers"] if each["off"] is None]
            if found:
                keys[job] = await client.ssh_key(user, job)
                tasks[job] = found
        except ApiError as error:
            # it ended, or was deleted, since it was listed
            if error.status != 404:
                raise

    jobs = [job["name"] for job in await client.jobs(user) if job["state"] == "RUNNING"]
    await side_by_side(jobs, look)
    return _Running([task for job in jobs for task in tasks.get(job, ())], keys)


def _blocks(session: CliSession, found: Sequence[Host]) -> list[Host]:
    """Leave out, and say so, what cannot be written: OpenSSH has no way to quote every character."""
    kept = []
    for host in found:
        try:
            quoted(str(host.login))
        except UnwritableNameError as error:
            text = msg("{login} cannot stand in a file of OpenSSH: use `pai ssh`.", login=error.args[0])
            print(printable(text.in_locale(session.locale)), file=sys.stderr)
        else:
            kept.append(host)
    return kept


def _tell(session: CliSession, blocks: Sequence[Host], folder: SshFolder) -> None:
    if session.as_json:
        session.print_json([{"hosts": list(host.aliases), "user": str(host.login)} for host in blocks])
    elif not blocks:
        session.say("Nothing of yours runs now: the configuration has no tasks.")
    else:
        program = ["ssh"] if _is_read(folder) else ["ssh", "-F", str(folder.config)]
        for host in blocks:
            print(printable(shlex.join([*program, host.aliases[-1]])))


def _is_read(folder: SshFolder) -> bool:
    """Return whether ssh looks there by itself: it goes by the account's home, whatever HOME is."""
    try:
        return folder.path == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh"
    except KeyError:  # an account without an entry: ssh does not start at all
        return True


def _file_name(job: str) -> str:
    # no name of a job's is one that means a folder then
    return f"{word_of(job)}.key"
