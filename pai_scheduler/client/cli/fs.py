"""`pai fs`: what is in the storage, looked at, changed, sent and fetched."""

from __future__ import annotations

import asyncio
import posixpath
import stat
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from pai_scheduler.client.storage.client import FileInfo, FilesClient, FilesError
from pai_scheduler.client.storage.download import download
from pai_scheduler.client.storage.transfer import TransferResult, amount, side_by_side
from pai_scheduler.client.storage.upload import upload
from pai_scheduler.i18n import msg

from .session import OK, REFUSED, CliSession, moment, printable, shown_progress, table

# The commands of `pai fs`: what is in the storage, changed and looked at from a terminal.

#: Entries that are laid out together: a long listing is seen while it comes.
_BLOCK = 1000


async def fs_ls(session: CliSession, *, path: str, long: bool, recursive: bool, human: bool) -> int:
    """List a folder."""
    folder = await storage_path(session.files, path)
    info = await session.files.status(folder)
    if not info.is_folder:
        # as in every ls: a file is listed as itself
        _print_entries([info], posixpath.dirname(folder), session, long=long, human=human)
        return OK
    entries = session.files.walk(folder) if recursive else session.files.iterate(folder)
    if session.as_json:
        async with aclosing(entries) as found:
            session.print_json([_as_json(entry) async for entry in found])
        return OK
    async with aclosing(entries) as found:
        async for block in _blocks(found):
            _print_entries(block, folder, session, long=long, human=human)
    return OK


async def fs_rm(session: CliSession, *, paths: Sequence[str], recursive: bool) -> int:
    """Delete."""
    code = OK
    for path in paths:
        full = await storage_path(session.files, path)
        if not await session.files.delete(full, recursive=recursive):
            text = msg("There is no {path}.", path=full).in_locale(session.locale)
            print(printable(text), file=sys.stderr)
            code = REFUSED
    return code


async def fs_mkdir(session: CliSession, *, paths: Sequence[str]) -> int:
    """Make folders."""
    for path in paths:
        await session.files.mkdirs(await storage_path(session.files, path))
    return OK


async def fs_du(session: CliSession, *, paths: Sequence[str], human: bool) -> int:
    """Return how much there is."""
    rows: list[list[str]] = []
    answers: list[dict[str, Any]] = []
    for path in paths or ("",):
        full = await storage_path(session.files, path)
        found = await session.files.summary(full)
        answers.append({"path": full, "length": found.length, "files": found.files, "folders": found.folders})
        rows.append([_length(found.length, human), str(found.files), str(found.folders), full])
    if session.as_json:
        session.print_json(answers)
    else:
        header = [msg("LENGTH"), msg("FILES"), msg("FOLDERS"), msg("PATH")]
        print(table([title.in_locale(session.locale) for title in header], rows))
    return OK


async def fs_cat(session: CliSession, *, paths: Sequence[str]) -> int:
    """Print files as they are."""
    for path in paths:
        async with session.files.read(await storage_path(session.files, path)) as pieces:
            async for piece in pieces:
                sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    return OK


async def fs_mv(session: CliSession, *, source: str, target: str, force: bool) -> int:
    """Move."""
    whence = await storage_path(session.files, source)
    whither = await _into(session.files, await storage_path(session.files, target), whence)
    await session.files.rename(whence, whither, overwrite=force)
    return OK


async def fs_cp(session: CliSession, *, source: str, target: str, recursive: bool, force: bool) -> int:
    """Copy within the storage."""
    files = session.files
    whence = await storage_path(files, source)
    whither = await _into(files, await storage_path(files, target), whence)
    if not (await files.status(whence)).is_folder:
        await files.copy(whence, whither, overwrite=force)
        return OK
    if not recursive:
        raise FilesError(400, "IllegalArgumentException", msg("{path} is a folder: add -r.", path=whence))
    if f"{whither}/".startswith(f"{whence}/"):
        raise FilesError(
            400, "IllegalArgumentException", msg("{path} cannot be copied into itself.", path=whence)
        )
    await files.mkdirs(whither)
    copied: list[tuple[str, str]] = []
    async with aclosing(files.walk(whence)) as entries:
        async for entry in entries:
            place = whither + entry.path.removeprefix(whence)
            if entry.is_folder:
                await files.mkdirs(place)
            else:
                copied.append((entry.path, place))
    await side_by_side(copied, lambda pair: files.copy(*pair, overwrite=force))
    return OK


async def storage_path(files: FilesClient, written: str) -> str:
    """Find the path that somebody means: a URI, an absolute path, or one in their own folder."""
    if "://" in written or written.startswith("$"):
        return files.resolve(written)
    whole = written if written.startswith("/") else posixpath.join(await files.home(), written)
    return "/" + posixpath.normpath(whole).lstrip("/")


async def _into(files: FilesClient, target: str, source: str) -> str:
    """Return the place of `source` in `target` where that is a folder."""
    there = await files.find(target)
    if there is None or not there.is_folder:
        return target
    return f"{target.rstrip('/')}/{posixpath.basename(source)}"


async def _blocks(entries: AsyncIterator[FileInfo]) -> AsyncIterator[list[FileInfo]]:
    block: list[FileInfo] = []
    async for entry in entries:
        block.append(entry)
        if len(block) == _BLOCK:
            yield block
            block = []
    if block:
        yield block


def _print_entries(
    entries: Sequence[FileInfo], folder: str, session: CliSession, *, long: bool, human: bool
) -> None:
    if session.as_json:
        session.print_json([_as_json(entry) for entry in entries])
        return
    names = [_name(entry, folder) for entry in entries]
    if not long:
        print("\n".join(names))
        return
    rows = [
        [
            _rights(entry),
            entry.owner,
            entry.group,
            "-" if entry.is_folder else _length(entry.length, human),
            moment(entry.modified),
            name,
        ]
        for entry, name in zip(entries, names, strict=True)
    ]
    header = [msg("RIGHTS"), msg("OWNER"), msg("GROUP"), msg("LENGTH"), msg("CHANGED"), msg("NAME")]
    print(table([title.in_locale(session.locale) for title in header], rows))


def _name(entry: FileInfo, folder: str) -> str:
    name = printable(entry.path.removeprefix(folder.rstrip("/") + "/"))
    return f"{name}/" if entry.is_folder else name


def _rights(entry: FileInfo) -> str:
    return stat.filemode((stat.S_IFDIR if entry.is_folder else stat.S_IFREG) | entry.permission)


def _length(length: int, human: bool) -> str:
    return amount(length) if human else str(length)


def _as_json(entry: FileInfo) -> dict[str, Any]:
    return {
        "path": entry.path,
        "type": "folder" if entry.is_folder else "file",
        "length": entry.length,
        "modified": entry.modified,
        "permission": f"{entry.permission:03o}",
        "owner": entry.owner,
        "group": entry.group,
    }


# `pai fs put` and `pai fs get`: files and folders up and down, with progress.


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
