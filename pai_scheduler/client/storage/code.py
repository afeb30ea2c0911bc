"""Submits a job with the code that is in a folder: upload what changed, then submit, as one step."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.i18n import msg
from pai_scheduler.job.environment import storage_uris
from pai_scheduler.job.json_text import loads_jsonc
from pai_scheduler.job.validation import build_spec, config_of
from pai_scheduler.rest.models import FieldError

from .client import FilesClient, FilesError
from .code_settings import CodeError as CodeError
from .code_settings import CodeSelection as CodeSelection
from .code_settings import CodeSettings as CodeSettings
from .code_settings import plan as plan
from .code_settings import read_settings as read_settings
from .transfer import Tell, TransferResult, side_by_side
from .upload import LocalFile, UploadRecord, UploadRecords, is_same, present, upload_files

_DEFAULT = "$PAI_DEFAULT_FS_URI"
_LONGEST_NAME = 255
_HEX_DIGITS = 8

#: Takes a job whose code is uploaded, and gives the name of what came of it.
Deliver = Callable[[Mapping[str, Any]], Awaitable[str]]


class SubmitRefusedError(ApiError):
    """The job was refused when its code was uploaded already: to `code_folder`, where it stays."""

    def __init__(self, refusal: ApiError, code_folder: str) -> None:
        super().__init__(refusal.status, refusal.code, refusal.message, refusal.errors)
        self.code_folder = code_folder


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job as it will be submitted, and what goes along: `code` to `code_folder`; None: nothing does."""

    config: Mapping[str, Any]
    code: CodeSelection | None
    code_folder: str


async def submit_with_code(
    client: Client,
    files: FilesClient,
    job: str | Mapping[str, Any],
    folder: Path,
    settings: CodeSettings | None = None,
    tell: Tell | None = None,
    *,
    user: str | None = None,
) -> str:
    """Submit a job (JSON with comments, or what was read of it) with the code in `folder`; return its name.

    `settings`: None: those of the folder. Raises CodeError or FilesError where the code cannot go along
    (nothing is submitted then), ApiError where the job is refused, JsonTextError where `job` is no JSON.
    """
    prepared = await prepare(client, files, job, folder, settings, user=user)
    return (await carry_out(client, files, prepared, folder, tell, user=user))[0]


async def prepare(
    client: Client,
    files: FilesClient,
    job: str | Mapping[str, Any],
    folder: Path,
    settings: CodeSettings | None = None,
    *,
    user: str | None = None,
) -> Prepared:
    """Find out what will be uploaded and submitted; nothing is sent yet. Errors as of submit_with_code."""
    config: Any = loads_jsonc(job) if isinstance(job, str) else job
    if settings is None:
        settings = await asyncio.to_thread(read_settings, folder)
    if settings.generate_name and isinstance(config, Mapping) and isinstance(config.get("jobName"), str):
        config = {**config, "jobName": generate_name(config["jobName"])}
    if not settings.enabled:
        return Prepared(config, None, "")
    await _refuse_wrong(client, config, files.locale)
    code = await asyncio.to_thread(plan, folder, settings)
    for item in code.left_out:
        raise CodeError(msg("{reason} Nothing was submitted.", reason=item.reason))
    return await _placed(client, files, config, code, user)


async def carry_out(
    client: Client,
    files: FilesClient,
    prepared: Prepared,
    folder: Path,
    tell: Tell | None = None,
    *,
    user: str | None = None,
    deliver: Deliver | None = None,
) -> tuple[str, TransferResult]:
    """Upload the code, then submit the job; return its name and what was sent (errors: submit_with_code).

    `deliver`: does something else with the job than to submit it, and returns the name of what came of it.
    """

    async def submit(config: Mapping[str, Any]) -> str:
        return await (deliver(config) if deliver else client.submit(config, user=user))

    if prepared.code is None:
        return await submit(prepared.config), TransferResult()
    outcome = await upload_code(files, prepared.code, prepared.code_folder, folder, tell)
    try:
        return await submit(prepared.config), outcome
    except ApiError as refusal:
        raise SubmitRefusedError(refusal, prepared.code_folder) from refusal


def generate_name(name: str) -> str:
    """Make a job name that is used nowhere yet: `name_` and 8 hexadecimal digits."""
    return f"{name[: _LONGEST_NAME - _HEX_DIGITS - 1]}_{secrets.token_hex(_HEX_DIGITS // 2)}"


async def upload_code(
    files: FilesClient, code: CodeSelection, target: str, folder: Path, tell: Tell | None = None
) -> TransferResult:
    """Make `target` hold the planned files, sending only what the uploads before it did not.

    What an earlier upload put there and is gone in `folder` is removed; CodeError where a file could not go
    along.
    """
    records = UploadRecords(folder, files.url)
    known = await asyncio.to_thread(records.read)
    earlier = next((record for record in known if record.folder == target), None)
    now = {file.name: (file.length, file.modified) for file in code.files}
    twins: Mapping[str, str] = {}
    if earlier is not None:
        # what an upload that breaks off leaves there is ours too
        await asyncio.to_thread(records.write, UploadRecord(target, {**earlier.files, **now}))
    elif known:
        twins = await _twins(files, known[0], code.files)
    outcome = await upload_files(files, code.files, target, tell, twins=twins)
    for item in outcome.left_out:
        raise CodeError(
            msg("{file} was not uploaded: {reason}", file=item.path, reason=item.in_locale(files.locale))
        )
    if earlier is not None:
        await _remove_gone(files, earlier, code.files)
    await asyncio.to_thread(records.write, UploadRecord(target, now))
    return outcome


async def _refuse_wrong(client: Client, config: Any, locale: str) -> None:
    """Refuse a job that is wrong before its code is sent."""
    errors: list[FieldError] = (await client.validate(config))["errors"]
    if errors:
        first = errors[0]
        message = msg("The job is not valid: {path}: {error}", path=first["path"], error=first["message"])
        raise ApiError(400, "InvalidParametersError", message.in_locale(locale), errors)


async def _refuse_taken(client: Client, owner: str, name: str, locale: str) -> None:
    """Refuse a name that is taken before that job's code is changed."""
    try:
        await client.job(owner, name)
    except ApiError as error:
        if error.status == 404:
            return
        raise
    message = msg("There is a job named {name} already. Choose another name.", name=name)
    raise ApiError(409, "ConflictJobError", message.in_locale(locale))


async def _placed(
    client: Client, files: FilesClient, config: Mapping[str, Any], code: CodeSelection, user: str | None
) -> Prepared:
    """Choose the folder of the code: what the job's codeDir says, else one of the job's name."""
    owner = user or (await client.whoami())["username"]
    if not config.get("codeDir"):
        config = {**config, "codeDir": f"{_DEFAULT}/$PAI_USER_NAME/$PAI_JOB_NAME"}
    spec = build_spec(config_of(config))
    uri = storage_uris(spec, owner, _DEFAULT).code_dir
    try:
        target = files.resolve(uri)
    except FilesError:
        raise CodeError(
            msg(
                "The job's codeDir, {uri}, is not in the cluster's storage: begin it with "
                "$PAI_DEFAULT_FS_URI/, leave it out, or submit without code.",
                uri=spec.code_dir,
            )
        ) from None
    await _refuse_taken(client, owner, spec.name, files.locale)
    return Prepared(config, code, target)


async def _twins(files: FilesClient, record: UploadRecord, wanted: Sequence[LocalFile]) -> Mapping[str, str]:
    """Find which files are in the folder of an earlier upload, as they are here."""
    same = [file for file in wanted if record.files.get(file.name) == (file.length, file.modified)]
    try:
        there = await present(files, record.folder, [file.name for file in same])
    except FilesError:
        return {}
    return {file.name: f"{record.folder}/{file.name}" for file in same if is_same(there.get(file.name), file)}


async def _remove_gone(files: FilesClient, record: UploadRecord, wanted: Sequence[LocalFile]) -> None:
    """Remove what an earlier upload put there and is no longer here; not what was changed there since."""
    gone = sorted(set(record.files) - {file.name for file in wanted})
    there = await present(files, record.folder, gone)

    async def remove(name: str) -> None:
        info = there.get(name)
        if info is not None and (info.length, info.modified) == record.files[name]:
            await files.delete(info.path)

    await side_by_side(gone, remove)
