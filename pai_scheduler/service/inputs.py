"""Inputs of a job's tasks, fetched from the storage in the user's name, once per job and machine."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace

from pai_scheduler.cluster.definition import DEFAULT_MAX_MOUNT_GB
from pai_scheduler.cluster.shared_folders import (
    ALL,
    SharedFolder,
    SharedMount,
    find_refused_folders,
    shared_mounts,
)
from pai_scheduler.core.model import Job
from pai_scheduler.engine.protocol import Mount, RegistryLogin
from pai_scheduler.i18n import Message, counted, msg
from pai_scheduler.job.environment import StorageUris, storage_uris
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.paths import PASSING, Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import FileStatus

from .credentials import read_login
from .input_identity import JobIdentities

# Folders of the storage that jobs need on this machine, fetched once per job and kept until it has ended.

#: files of one folder that are read at once
_PARALLEL_READS = 8
#: entries of a folder that are asked for at once
_PAGE = 1000
_PARTS, _BOOT = ".parts", ".boot"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limit:
    """Size limit of a staged folder: MB are 10^6 bytes. `too_large(mb, files)` says that it is more."""

    mb: int
    files: int
    too_large: Callable[[int, int], Message]

    def check(self, length: int, files: int) -> None:
        """Refuse (TOO_LARGE) what is more."""
        if length > self.mb * 10**6 or files > self.files:
            raise StorageError(Problem.TOO_LARGE, self.too_large(-(-length // 10**6), files))


class FolderCache:
    """Keeps `<folder>/<job id>/<name>`, which nobody changes: either all of what was fetched, or nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        #: jobs that have something here
        self._jobs: set[str] = set()

    async def fetch(
        self, files: Files, principal: Principal, path: StoragePath, limit: Limit, job_id: str, name: str
    ) -> Path:
        """Return the copy of a folder that a job has under a name, made now if need be; StorageError."""
        self._jobs.add(job_id)
        place = self._folder / job_id / name
        if await asyncio.to_thread(place.exists):
            return place
        summary = await files.summary(principal, path)
        limit.check(summary.length, summary.files)
        part = self._folder / _PARTS / f"{job_id}-{next(self._numbers)}"
        try:
            await asyncio.to_thread(part.mkdir, parents=True)
            await _Fetch(files, principal, limit).fetch(path, part)
            await asyncio.to_thread(_settle, part, place)
        except OSError as error:
            raise _not_kept(path, error) from error
        finally:
            await asyncio.to_thread(remove_tree, part)
        return place

    def keeps(self, job_id: str) -> bool:
        """Return whether a job may have something here."""
        return job_id in self._jobs

    async def forget(self, job_id: str) -> None:
        """Remove what a job had; nothing is no error."""
        await asyncio.to_thread(remove_tree, self._folder / job_id)
        self._jobs.discard(job_id)

    async def keep_only(self, jobs: Collection[str]) -> None:
        """Remove what other jobs than these had, and what was not fetched to its end."""
        self._jobs = await asyncio.to_thread(self._clean, jobs)

    def _clean(self, jobs: Collection[str]) -> set[str]:
        self._folder.mkdir(parents=True, exist_ok=True)
        # after a crash of the machine a file may be there without its contents
        boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
        mark = self._folder / _BOOT
        same = mark.exists() and mark.read_text() == boot
        kept = set()
        for entry in list(self._folder.iterdir()):
            if same and entry.name in jobs:
                kept.add(entry.name)
            elif entry != mark:
                remove_tree(entry)
        mark.write_text(boot)
        return kept


class _Fetch:
    """One folder on its way here: what was read of it so far is counted, as it may grow meanwhile."""

    def __init__(self, files: Files, principal: Principal, limit: Limit) -> None:
        self._files, self._principal, self._limit = files, principal, limit
        self._slots = asyncio.Semaphore(_PARALLEL_READS)
        self._count = self._length = 0

    async def fetch(self, path: StoragePath, target: Path) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                waiting = [(path, target)]
                while waiting:
                    folder, into = waiting.pop()
                    async for entry in self._entries(folder):
                        here = into / entry.path.name
                        if entry.is_folder:
                            await asyncio.to_thread(here.mkdir)
                            waiting.append((entry.path, here))
                        else:
                            self._count += 1
                            self._limit.check(self._length, self._count)
                            group.create_task(self._read(entry, here))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed

    async def _entries(self, folder: StoragePath) -> AsyncIterator[FileStatus]:
        after, more = "", True
        while more:
            page = await self._files.list(self._principal, folder, after, _PAGE)
            for entry in page.entries:
                yield entry
                after = entry.path.name
            more = page.remaining > 0 and bool(page.entries)

    async def _read(self, entry: FileStatus, here: Path) -> None:
        async with self._slots, self._files.open(self._principal, entry.path) as file:
            target = await asyncio.to_thread(open, here, "xb")
            try:
                async for piece in file.pieces:
                    self._length += len(piece)
                    self._limit.check(self._length, self._count)
                    await asyncio.to_thread(target.write, piece)
            finally:
                await asyncio.to_thread(_finish, target, entry.permission)


def remove_tree(folder: Path) -> None:
    """Remove a folder whose folders nobody may write to; nothing is no error."""
    try:
        if not folder.is_dir():
            folder.unlink(missing_ok=True)
            return
        for above, _, _ in os.walk(folder):
            Path(above).chmod(0o700)
        shutil.rmtree(folder)
    except OSError as error:
        _log.warning("%s cannot be removed: %s", folder, error)


def _finish(file: BinaryIO, permission: int) -> None:
    with file:
        os.fchmod(file.fileno(), 0o555 if permission & 0o111 else 0o444)


def _settle(part: Path, place: Path) -> None:
    """Return what was fetched its name; nobody writes to it from now on."""
    place.parent.mkdir(parents=True, exist_ok=True)
    for above, _, _ in os.walk(part, topdown=False):
        if Path(above) != part:
            Path(above).chmod(0o555)
    try:
        part.rename(place)
    except OSError:
        if not place.exists():
            raise
    place.chmod(0o555)


def _not_kept(path: StoragePath, error: OSError) -> StorageError:
    return StorageError(
        Problem.NO_SPACE,
        msg(
            "{path} cannot be kept on the scheduler's disk for the job: {error}.",
            path=str(path),
            error=error.strerror or str(error),
        ),
    )


# What a job's tasks get from the storage before they start, fetched in the name of the job's user.


#: Seconds until a storage that does not answer is asked again: about a minute in all.
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
#: How long (seconds) a start may wait for the folder that a job gets unasked.
_OUTPUT_SECONDS = 5.0
#: Files that are fetched for one mount at most.
_MOST_FILES = 1_000_000


def _too_much_code(mb: int, files: int) -> Message:
    return counted(
        "It holds {mb} MB in {count} file; code may have {most_mb} MB and {most_files} files. Keep data "
        "elsewhere, and name it in dataDir or extras.mounts.",
        "It holds {mb} MB in {count} files; code may have {most_mb} MB and {most_files} files. Keep data "
        "elsewhere, and name it in dataDir or extras.mounts.",
        mb=mb,
        count=files,
        most_mb=CODE.mb,
        most_files=CODE.files,
    )


def _too_much_data(mb: int, files: int) -> Message:
    return counted(
        "It holds {mb} MB in {count} file, which is too much to fetch for a job. Mount a part of it, or "
        "read it from PAI_DATA_DIR.",
        "It holds {mb} MB in {count} files, which is too much to fetch for a job. Mount a part of it, or "
        "read it from PAI_DATA_DIR.",
        mb=mb,
        count=files,
    )


#: How much code a job may have. OpenPAI's limit; MB as 10^6 bytes.
CODE = Limit(200, 20_000, _too_much_code)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs fetched for a job, and the token and URI with which its tasks reach the rest of the storage."""

    default_fs_uri: str = ""
    login: RegistryLogin | None = None
    #: the job's code on this machine, under its own name
    code: Path | None = None
    token: str = ""
    mounts: tuple[Mount, ...] = ()
    #: what its user has of the folders that an administrator shares
    shared: tuple[SharedMount, ...] = ()


class JobInputs:
    """Fetches what jobs name. StorageError: they cannot have it, with the reason.

    `shared_folders`: those of the machines, of which a job's user has some, by group.
    """

    def __init__(
        self,
        job_files: JobIdentities,
        max_mount_gb: int = DEFAULT_MAX_MOUNT_GB,
        shared_folders: Sequence[SharedFolder] = (),
    ) -> None:
        self._job_files, self._shared_folders = job_files, shared_folders
        self._code = FolderCache(job_files.folder / "code")
        self._data = FolderCache(job_files.folder / "mounts")
        self._data_limit = Limit(max_mount_gb * 1000, _MOST_FILES, _too_much_data)

    async def start(self, jobs: Collection[str]) -> None:
        """Remove what was kept for other jobs than these."""
        await self._code.keep_only(jobs)
        await self._data.keep_only(jobs)

    def keeps(self, job_id: str) -> bool:
        """Return whether something was fetched for a job."""
        return self._code.keeps(job_id) or self._data.keeps(job_id)

    async def forget(self, job_id: str) -> None:
        """Remove what was kept for a job that has ended."""
        await self._code.forget(job_id)
        await self._data.forget(job_id)

    async def fetch(self, job: Job, waiting: Callable[[Message], None]) -> Inputs:
        """Fetch what a job names; a storage that does not answer is waited for, and `waiting` is told so."""
        uris = storage_uris(job.spec, job.user, self._files.names.default)
        if not job.spec.output_dir:
            await self._make_default_output(job, uris.output_dir)
        if not names_files(job.spec) and not self._asks_for_shared_folders(job.spec):
            return Inputs(self._files.names.default, token=self._job_files.token(job))
        for pause in _PAUSES:
            try:
                return await self._fetch(job, uris)
            except StorageError as error:
                if error.problem is not Problem.UNAVAILABLE:
                    raise
                _log.warning("waiting for the storage: %s", error)
                waiting(msg("Waiting for the storage. {reason}", reason=error.message))
            await asyncio.sleep(pause)
        return await self._fetch(job, uris)

    def told(self, spec: JobSpec) -> JobSpec:
        """Return a job as its tasks are told of it: the storage under the name by which they reach it."""
        told = self._files.names.told
        return replace(
            spec,
            data_dir=told(spec.data_dir),
            output_dir=told(spec.output_dir),
            code_dir=told(spec.code_dir),
        )

    @property
    def _files(self) -> Files:
        return self._job_files.files

    async def _fetch(self, job: Job, uris: StorageUris) -> Inputs:
        principal = await self._user_of(job)
        for refusal in find_refused_folders(job.spec, self._shared_folders, principal.name, principal.groups):
            raise StorageError(Problem.INVALID, refusal.message)
        if job.spec.output_dir and self._files.names.knows(uris.output_dir):
            with _about("outputDir", uris.output_dir):
                await self._files.mkdirs(principal, self._files.names.resolve(uris.output_dir))
        login = await read_login(self._files, principal, uris.auth_file) if uris.auth_file else None
        code = None
        if uris.code_dir:
            with _about("codeDir", uris.code_dir):
                code = await self._stage_code(job, principal, uris.code_dir)
        mounts = [
            await self._mount(job, principal, uri, code, number) for number, uri in enumerate(uris.mounts)
        ]
        shared = shared_mounts(job.spec, self._shared_folders, principal.name, principal.groups)
        token = self._job_files.token(job)
        return Inputs(self._files.names.default, login, code, token, tuple(mounts), shared)

    def _asks_for_shared_folders(self, spec: JobSpec) -> bool:
        """Return whether it must be known who a job's user is; where nothing is shared, nobody is asked."""
        return bool(spec.shared_folders) and (bool(self._shared_folders) or set(spec.shared_folders) != {ALL})

    async def _mount(self, job: Job, principal: Principal, uri: str, code: Path | None, number: int) -> Mount:
        target = job.spec.mounts[number].target
        with _about("extras.mounts", uri):
            if code is not None and target.strip("/").split("/")[0] == code.name and target[0] != "/":
                message = msg("{target} is where the code is: choose another target.", target=target)
                raise StorageError(Problem.INVALID, message)
            path = self._files.names.resolve(uri)
            await self._check_folder(principal, path)
            here = await self._files.host_folder(principal, path)
            if here is None:
                here = await self._data.fetch(
                    self._files, principal, path, self._data_limit, job.id, str(number)
                )
        return Mount(here, target)

    async def _check_folder(self, principal: Principal, path: StoragePath) -> None:
        if not (await self._files.status(principal, path)).is_folder:
            raise StorageError(
                Problem.NOT_A_FOLDER,
                msg("{path} is a file. Name the folder that it is in.", path=str(path)),
            )

    async def _stage_code(self, job: Job, principal: Principal, uri: str) -> Path:
        path = self._files.names.resolve(uri)
        if not path.name:
            raise StorageError(
                Problem.INVALID, msg("The storage as a whole is no code. Name a folder in it.")
            )
        await self._check_folder(principal, path)
        return await self._code.fetch(self._files, principal, path, CODE, job.id, path.name)

    async def _make_default_output(self, job: Job, uri: str) -> None:
        """Make the folder for results that every job has. Without it a job starts too: it may need none."""
        try:
            async with asyncio.timeout(_OUTPUT_SECONDS):
                await self._files.mkdirs(Principal(job.user), self._files.names.resolve(uri))
        except (StorageError, TimeoutError) as error:
            _log.warning("the job's folder for results cannot be made: %s", error or "no answer")

    async def _user_of(self, job: Job) -> Principal:
        try:
            return await self._job_files.user_of(job)
        except RequestError as error:  # who knows the users (the Hub) does not answer
            raise StorageError(Problem.UNAVAILABLE, error.message) from error


@contextmanager
def _about(field: str, uri: str) -> Iterator[None]:
    """Add to an error the field of the job that it is about."""
    try:
        yield
    except StorageError as error:
        if error.problem in PASSING:
            raise
        message = msg("{field} {uri} cannot be used. {reason}", field=field, uri=uri, reason=error.message)
        raise StorageError(error.problem, message) from error


def names_files(spec: JobSpec) -> bool:
    """Return whether a job needs a storage to start."""
    return bool(spec.auth_file or spec.code_dir or spec.output_dir or spec.mounts)
