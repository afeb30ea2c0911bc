"""Permissions of a job at the storage, told beforehand: what it names and may not use, or is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.environment import storage_uris
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.validation import SpecError
from pai_scheduler.principal import Principal
from pai_scheduler.storage.files import Files, Right, check
from pai_scheduler.storage.paths import Problem, StorageError, StorageNames

#: Seconds for which a storage is asked; one that is slower says nothing.
_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class _Named:
    """A URI of a job, the field that has it, and where that stands; `fetched`: before the job starts."""

    field: str
    path: str
    uri: str
    right: Right
    fetched: bool


def find_refused(spec: JobSpec, user: Principal, names: StorageNames) -> Iterator[SpecError]:
    """Find the URIs that would be refused to the job's user. Nothing is asked of the storage.

    Another storage's URIs are the job's own business, except where we fetch what they name.
    """
    for named in _named(spec, user, names):
        if not (named.fetched or names.knows(named.uri)):
            continue
        try:
            check(user, names.resolve(named.uri), named.right)
        except StorageError as error:
            message = msg(
                "{field} {uri} cannot be used. {reason}",
                field=named.field,
                uri=named.uri,
                reason=error.message,
            )
            yield SpecError(named.path, message)


async def find_missing(spec: JobSpec, user: Principal, files: Files) -> list[SpecError]:
    """Find what would be fetched for the job and is not there now.

    A storage that does not answer soon is asked when the job starts.
    """
    found: list[SpecError] = []
    fetched = [named for named in _named(spec, user, files.names) if named.fetched]
    if not fetched:
        return found
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            for named in fetched:
                try:
                    await files.status(user, files.names.resolve(named.uri))
                except StorageError as error:
                    if error.problem is Problem.NOT_FOUND:
                        found.append(SpecError(named.path, _missing(named)))
    return found


def _missing(named: _Named) -> Message:
    if named.field == "codeDir":
        return msg(
            "codeDir {uri} is not there. The job fails when it starts, unless its code is put there before: "
            "`pai submit --code FOLDER` sends it along.",
            uri=named.uri,
        )
    return msg(
        "{field} {uri} is not there. The job fails when it starts, unless it is put there before.",
        field=named.field,
        uri=named.uri,
    )


def _named(spec: JobSpec, user: Principal, names: StorageNames) -> Iterator[_Named]:
    """List what a job names in the storage."""
    if not (spec.auth_file or spec.code_dir or spec.data_dir or spec.output_dir or spec.mounts):
        return
    uris = storage_uris(spec, user.name, names.default)
    listed = [
        _Named("authFile", "$.authFile", uris.auth_file, Right.READ, True),
        _Named("codeDir", "$.codeDir", uris.code_dir, Right.READ, True),
        _Named("dataDir", "$.dataDir", uris.data_dir, Right.READ, False),
        _Named("outputDir", "$.outputDir", uris.output_dir if spec.output_dir else "", Right.WRITE, False),
        *(
            _Named("extras.mounts", f"$.extras.mounts[{number}].source", uri, Right.READ, True)
            for number, uri in enumerate(uris.mounts)
        ),
    ]
    yield from (named for named in listed if named.uri)
