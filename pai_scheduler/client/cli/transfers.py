"""`pai fs put` and `pai fs get`: files and folders up and down, with progress."""

from __future__ import annotations

import asyncio
import posixpath
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.client.storage.download import download
from pai_scheduler.client.storage.transfer import TransferResult, amount
from pai_scheduler.client.storage.upload import upload
from pai_scheduler.i18n import msg

from .fs import storage_path
from .progress import shown_progress
from .session import OK, REFUSED, CliSession
from .tables import printable


async def fs_put(session: CliSession, *, paths: Sequence[str]) -> int:
    """Upload."""
    sources, target = (paths, "") if len(paths) == 1 else (paths[:-1], paths[-1])
    folder = await storage_path(session.files, target)
    code = OK
    for source in map(Path, sources):
        remote = await _place(session.files, folder, target, source, several=len(sources) > 1)
        with told_how_to_go_on(session), shown_progress(session.locale) as tell:
            outcome = await upload(session.files, source, remote, tell)
        code = max(code, tell_outcome(session, outcome, str(source), remote))
    return code


async def fs_get(session: CliSession, *, paths: Sequence[str]) -> int:
    """Download."""
    sources, target = (paths, ".") if len(paths) == 1 else (paths[:-1], paths[-1])
    code = OK
    for source in sources:
        remote = await storage_path(session.files, source)
        name, is_folder = posixpath.basename(remote), (await session.files.status(remote)).is_folder
        local = Path(target)
        into = len(sources) > 1 or target.endswith("/") or await asyncio.to_thread(local.is_dir)
        if into and not (is_folder and await asyncio.to_thread(name_of, local) == name):
            local /= name
        with told_how_to_go_on(session), shown_progress(session.locale) as tell:
            outcome = await download(session.files, remote, local, tell)
        code = max(code, tell_outcome(session, outcome, remote, str(local.absolute())))
    return code


async def _place(files: FilesClient, folder: str, written: str, source: Path, *, several: bool) -> str:
    """Find what `source` will be called: what was written, or in it where that is a folder.

    Of a folder, one that is called so already is meant itself: the same command goes on where it broke off.
    """
    into = several or not written or written.endswith("/")
    if not into:
        there = await files.find(folder)
        into = there is not None and there.is_folder
    name, is_folder = await asyncio.to_thread(lambda: (name_of(source), source.is_dir()))
    itself = is_folder and written and posixpath.basename(folder) == name
    return f"{folder.rstrip('/')}/{name}" if into and not itself else folder


@contextmanager
def told_how_to_go_on(session: CliSession) -> Iterator[None]:
    """Print, when a transfer is ended (^C), that nothing of it is lost."""
    try:
        yield
    except asyncio.CancelledError:
        text = msg("Broken off. The same command goes on from here.").in_locale(session.locale)
        print(text, file=sys.stderr)
        raise


def name_of(path: Path) -> str:
    """Return what a path is called, also where it is written as `.` or `..`."""
    return path.name if path.name not in ("", "..") else path.resolve().name


def tell_outcome(session: CliSession, outcome: TransferResult, source: str, target: str) -> int:
    """Return what came of a transfer; return the exit code."""
    for item in outcome.left_out:
        print(printable(f"{item.path}: {item.in_locale(session.locale)}"), file=sys.stderr)
    if session.as_json:
        session.print_json(
            {
                "from": source,
                "to": target,
                "files": outcome.files,
                "length": outcome.length,
                "same": outcome.same,
                "leftOut": [item.path for item in outcome.left_out],
            }
        )
    else:
        session.say(
            "{target}. Files transferred: {files} ({length}); there already: {same}.",
            target=target,
            files=outcome.files,
            length=amount(outcome.length),
            same=outcome.same,
        )
    return OK if outcome.complete else REFUSED
