"""Reads what a name node says about files: WebHDFS's JSON, as what the storage protocol has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pai_scheduler.storage.path import StoragePath
from pai_scheduler.storage.protocol import FileStatus
from pai_scheduler.storage.refusals import not_found


def described(path: StoragePath, told: dict[str, Any]) -> FileStatus:
    """Read WebHDFS's FileStatus; NOT_FOUND for a symbolic link, which counts for nothing."""
    if told["type"] not in ("FILE", "DIRECTORY"):
        raise not_found(path)
    is_folder = told["type"] == "DIRECTORY"
    return FileStatus(
        path=path,
        is_folder=is_folder,
        length=0 if is_folder else told["length"],
        modified=told["modificationTime"],
        accessed=told["accessTime"],
        permission=int(told["permission"], 8) & 0o777,
        owner=told["owner"],
        group=told["group"],
        children=told.get("childrenNum", 0),
        replication=told["replication"],
        block_size=told["blockSize"],
        file_id=told.get("fileId", 0),
    )


def listed(path: StoragePath, told: Sequence[dict[str, Any]], after: str = "") -> list[FileStatus]:
    """Read WebHDFS's FileStatuses, from after a name on; a file lists as itself, without a name."""
    entries = [
        described(path / one["pathSuffix"] if one["pathSuffix"] else path, one)
        for one in told
        if one["type"] != "SYMLINK" and (not one["pathSuffix"] or one["pathSuffix"] > after)
    ]
    return sorted(entries, key=lambda entry: entry.path.name)


def same_contents(one: FileStatus, other: FileStatus) -> bool:
    """Return whether nobody wrote to a file in between."""
    return (one.file_id, one.modified, one.length) == (other.file_id, other.modified, other.length)
