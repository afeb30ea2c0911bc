"""`pai cp`: files and folders into tasks and out of them, with progress."""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from asyncssh import SFTPClient

from pai_scheduler.client.ssh.connection import RemoteError
from pai_scheduler.client.ssh.download import download
from pai_scheduler.client.ssh.sftp import attributes, files_of, is_folder
from pai_scheduler.client.ssh.task_lookup import find_way
from pai_scheduler.client.ssh.upload import upload
from pai_scheduler.client.storage.transfer import LocalFileError
from pai_scheduler.i18n import msg

from .progress import shown_progress
from .session import CliSession
from .transfers import name_of, tell_outcome, told_how_to_go_on

#: A job's name, with a task's if need be, before the first colon; `./a:b` is a file here.
_REMOTE = re.compile(r"(?P<job>[A-Za-z0-9._~-]+)(/(?P<task>[A-Za-z0-9._~]+-[0-9]+))?:(?P<path>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CopyEndpoint:
    """A path in a task; empty: where its sessions begin."""

    job: str
    task: str | None
    path: str


def place_of(written: str) -> CopyEndpoint | None:
    """Read `NAME:path` or `NAME/role-0:path`; None: it is a file or folder here."""
    match = _REMOTE.fullmatch(written)
    return CopyEndpoint(match["job"], match["task"], match["path"]) if match else None


async def cp(session: CliSession, *, paths: Sequence[str], user: str | None, recursive: bool) -> int:
    """Copy."""
    *sources, target = paths
    if not sources:
        raise RemoteError(msg("Say where to copy it: pai cp NAME:file . or pai cp file NAME:"))
    there, whence = place_of(target), [place_of(source) for source in sources]
    if there is not None and not any(whence):
        return await _up(session, [Path(source) for source in sources], there, user, recursive=recursive)
    jobs = {(place.job, place.task) for place in whence if place}
    if there is not None or not all(whence) or len(jobs) > 1:
        raise RemoteError(
            msg("Either what is copied or where it goes is in a task, and in one task only: NAME:path.")
        )
    return await _down(session, [place for place in whence if place], target, user, recursive=recursive)


async def _up(
    session: CliSession, sources: Sequence[Path], target: CopyEndpoint, user: str | None, *, recursive: bool
) -> int:
    way = await find_way(session.client, await session.owner(user), target.job, target.task)
    code = 0
    async with way.opened(session.client.token) as connection, files_of(connection) as files:
        for source in sources:
            name, folder = await asyncio.to_thread(name_of, source), await asyncio.to_thread(source.is_dir)
            if folder and not recursive:
                raise LocalFileError(msg("{path} is a folder: add -r.", path=str(source)))
            remote = await _place_there(files, target.path, name, folder=folder, several=len(sources) > 1)
            with told_how_to_go_on(session), shown_progress(session.locale) as tell:
                outcome = await upload(files, source, remote, tell)
            code = max(code, tell_outcome(session, outcome, str(source), f"{target.job}/{way.task}:{remote}"))
    return code


async def _down(
    session: CliSession, sources: Sequence[CopyEndpoint], target: str, user: str | None, *, recursive: bool
) -> int:
    way = await find_way(session.client, await session.owner(user), sources[0].job, sources[0].task)
    code, local = 0, Path(target)
    async with way.opened(session.client.token) as connection, files_of(connection) as files:
        for source in sources:
            found = await attributes(files, source.path or ".")
            folder = found is not None and is_folder(found)
            if folder and not recursive:
                raise RemoteError(msg("{path} is a folder: add -r.", path=source.path or "."))
            name = await _name_there(files, source.path)
            into = len(sources) > 1 or target.endswith("/") or await asyncio.to_thread(local.is_dir)
            # of a folder, one that is called so already is meant itself, so that the same command goes on
            itself = folder and await asyncio.to_thread(name_of, local) == name
            place = local / name if into and not itself else local
            with told_how_to_go_on(session), shown_progress(session.locale) as tell:
                outcome = await download(files, source.path or ".", place, tell)
            whence = f"{source.job}/{way.task}:{source.path}"
            code = max(code, tell_outcome(session, outcome, whence, str(place.absolute())))
    return code


async def _name_there(files: SFTPClient, path: str) -> str:
    """Return what a path is called: as it is written, for a task might say that it is called otherwise."""
    name = posixpath.basename(posixpath.normpath(path))
    if name not in ("", ".", ".."):
        return name
    whole = str(await files.realpath(path or "."))
    return posixpath.basename(posixpath.normpath(whole))


async def _place_there(files: SFTPClient, written: str, name: str, *, folder: bool, several: bool) -> str:
    """Find what a file or folder will be called in the task: as written, or in that where it is a folder."""
    if not written or written in (".", "./"):
        return name
    into = several or written.endswith("/")
    if not into:
        there = await attributes(files, written)
        into = there is not None and is_folder(there)
    itself = folder and posixpath.basename(written.rstrip("/")) == name
    return posixpath.join(written, name) if into and not itself else written
