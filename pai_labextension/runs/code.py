"""Submit with code, in the notebook server: a job file and its folder go from here to the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from pai_labextension.messages import msg
from pai_labextension.models import CodePlan, SubmitLine
from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.client.storage.client import FilesClient, FilesError
from pai_scheduler.client.storage.code import (
    CodeError,
    CodeSettings,
    Deliver,
    SubmitRefusedError,
    carry_out,
    prepare,
    read_settings,
)
from pai_scheduler.client.storage.transfer import LocalFileError, TransferProgress
from pai_scheduler.job.json_text import JsonTextError

#: Bytes of the longest job file, as everywhere in the scheduler's API.
LONGEST = 1024 * 1024
#: Seconds between two signs of progress.
_PACE = 0.2


class CodeRefusedError(Exception):
    """It cannot be done; the message is for people, in their language."""


class SubmitRequest(msgspec.Struct, frozen=True, rename={"generate_name": "generateName"}):
    """Submit request, as the front end sends it; None: as the folder's settings say.

    `path`: a job file, beside which its code is; with a `job`: the folder of its code.
    """

    path: str
    job: dict[str, Any] | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    generate_name: bool | None = None


class CodeSubmitter:
    """Submits jobs in the user's name, with code that is below `root`: what the file browser shows."""

    def __init__(self, url: str, token: str, root: Path) -> None:
        self._url, self._token, self._root = url, token, root

    async def plan(self, submission: SubmitRequest, locale: str) -> CodePlan:
        """Return what would go along and where to; nothing is sent. CodeRefusedError."""
        async with AsyncExitStack() as stack:
            client, files = await self._clients(stack, locale)
            job, folder, settings = await self._chosen(submission, locale)
            # the name is made when it is needed
            kept = replace(settings, generate_name=False)
            try:
                prepared = await prepare(client, files, job, folder, kept)
            except EXPECTED as error:
                raise CodeRefusedError(sentence(error, locale)) from error
        code = prepared.code.files if prepared.code else ()
        return {
            "jobName": str(prepared.config.get("jobName") or ""),
            "folder": prepared.code_folder,
            "include": list(settings.include),
            "exclude": list(settings.exclude),
            "generateName": settings.generate_name,
            "files": [{"name": one.name, "length": one.length} for one in code],
        }

    async def submit(self, submission: SubmitRequest, locale: str) -> AsyncGenerator[SubmitLine, None]:
        """Upload and submit; tell how far it is, then the job. CodeRefusedError."""
        async with AsyncExitStack() as stack:
            client, files = await self._clients(stack, locale)
            job, folder, settings = await self._chosen(submission, locale)
            async with aclosing(submit_lines(client, files, job, folder, settings, locale)) as lines:
                async for line in lines:
                    yield line

    async def _clients(self, stack: AsyncExitStack, locale: str) -> tuple[Client, FilesClient]:
        return (
            await stack.enter_async_context(Client(self._url, self._token, locale=locale)),
            await stack.enter_async_context(FilesClient(self._url, self._token, locale=locale)),
        )

    async def _chosen(
        self, submission: SubmitRequest, locale: str
    ) -> tuple[str | Mapping[str, Any], Path, CodeSettings]:
        """Return the job (its text or what it says), the folder of its code, and what goes along of that."""
        job: str | Mapping[str, Any]
        if submission.job is not None:
            job = submission.job
            folder = await asyncio.to_thread(find_folder, self._root, submission.path, locale)
        else:
            file = await asyncio.to_thread(find_file, self._root, submission.path, locale)
            job, folder = await _text(file, locale), file.parent
        try:
            settings = await asyncio.to_thread(read_settings, folder)
        except CodeError as error:
            raise CodeRefusedError(error.message.in_locale(locale)) from error
        chosen = CodeSettings(
            enabled=True,
            include=settings.include if submission.include is None else submission.include,
            exclude=settings.exclude if submission.exclude is None else submission.exclude,
            generate_name=settings.generate_name
            if submission.generate_name is None
            else submission.generate_name,
        )
        return job, folder, chosen


#: What goes wrong without a fault of ours; `sentence` says it.
EXPECTED = (ApiError, UnreachableError, JsonTextError, CodeError, FilesError, LocalFileError)


def find_file(root: Path, path: str, locale: str) -> Path:
    """Find a file below the root; a link that leads out of it is not followed. CodeRefusedError."""
    file = _inside(root, path)
    if file is None or not file.is_file():
        raise CodeRefusedError(
            msg("There is no file “{path}” in the file browser's folder.", path=path).in_locale(locale)
        )
    return file


def find_folder(root: Path, path: str, locale: str) -> Path:
    """Find a folder below the root, or the root; a link that leads out is not followed. CodeRefusedError."""
    folder = _inside(root, path)
    if folder is None or not folder.is_dir():
        raise CodeRefusedError(
            msg("There is no folder “{path}” in the file browser's folder.", path=path).in_locale(locale)
        )
    return folder


def _inside(root: Path, path: str) -> Path | None:
    """Return what is at a path below the root; None where nothing is, or it is elsewhere."""
    root = root.resolve()
    try:
        found = (root / path.lstrip("/")).resolve(strict=True)
    except (OSError, ValueError):
        return None
    return found if found.is_relative_to(root) else None


async def submit_lines(
    client: Client,
    files: FilesClient,
    job: str | Mapping[str, Any],
    folder: Path,
    settings: CodeSettings,
    locale: str,
    deliver: Deliver | None = None,
) -> AsyncGenerator[SubmitLine, None]:
    """Upload a folder's code and submit a job; tell how far it is, then the job. CodeRefusedError.

    `deliver`: what is done with the job in place of submitting it.
    """
    latest: list[TransferProgress] = []
    try:
        user = (await client.whoami())["username"]
        prepared = await prepare(client, files, job, folder, settings)
        task = asyncio.create_task(
            carry_out(
                client, files, prepared, folder, lambda progress: latest.append(progress), deliver=deliver
            )
        )
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_PACE)
                if latest:
                    yield _progress(latest[-1])
                    latest.clear()
            name, _ = task.result()
        finally:
            task.cancel()
    except EXPECTED as error:
        raise CodeRefusedError(sentence(error, locale)) from error
    yield {"job": {"name": name, "username": user}}


async def _text(file: Path, locale: str) -> str:
    def read() -> str:
        with file.open("rb") as stream:
            contents = stream.read(LONGEST + 1)
        if len(contents) > LONGEST:
            raise ValueError(contents)
        return contents.decode("utf-8")

    try:
        return await asyncio.to_thread(read)
    except (OSError, ValueError) as error:
        raise CodeRefusedError(
            msg("“{name}” is no job file: a text in UTF-8 of 1 MiB at most.", name=file.name).in_locale(
                locale
            )
        ) from error


def sentence(error: Exception, locale: str) -> str:
    """Return in the reader's language what went wrong."""
    match error:
        case SubmitRefusedError():
            refusal = error.message
            return msg(
                "{refusal} The code is in {folder} already.", refusal=refusal, folder=error.code_folder
            ).in_locale(locale)
        case JsonTextError():
            return msg(
                "Line {line}, column {column}: {reason}",
                line=error.line,
                column=error.column,
                reason=error.message,
            ).in_locale(locale)
        case CodeError() | LocalFileError():
            return error.message.in_locale(locale)
        case FilesError():
            return error.in_locale(locale)
        case ApiError():
            return error.message
    return str(error)


def _progress(progress: TransferProgress) -> SubmitLine:
    return {
        "progress": {
            "files": progress.files_done,
            "filesTotal": progress.files_total,
            "bytes": progress.bytes_done,
            "bytesTotal": progress.bytes_total,
        }
    }
