"""What WebHDFS answers, as JSON: the schemas of Hadoop's "WebHDFS REST API"."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pai_scheduler.rest.webhdfs import BooleanAnswer, ListingAnswer, PathAnswer, StatusAnswer, SummaryAnswer
from pai_scheduler.rest.webhdfs import FileStatus as Status
from pai_scheduler.storage.paths import StoragePath
from pai_scheduler.storage.protocol import Checksum, FileStatus, Listing, Summary

#: Entries of a long listing that are put into JSON at once, while everybody else waits.
_PIECE = 1000


def status_answer(status: FileStatus) -> StatusAnswer:
    """Describe one file or folder."""
    return {"FileStatus": _status(status, "")}


def listing_pieces(listing: Listing, folder: StoragePath) -> Iterator[bytes]:
    """List a folder, in pieces that take a moment each; a file lists as itself, without a name."""
    yield b'{"FileStatuses":{"FileStatus":['
    for begin in range(0, len(listing.entries), _PIECE):
        part = Listing(listing.entries[begin : begin + _PIECE])
        text = json.dumps(_entries(part, folder), ensure_ascii=False, separators=(",", ":"))
        yield (b"," if begin else b"") + text[1:-1].encode("utf-8", "surrogatepass")
    yield b"]}}"


def batch_answer(listing: Listing, folder: StoragePath) -> ListingAnswer:
    """List a part of a folder."""
    return {
        "DirectoryListing": {
            "partialListing": {"FileStatuses": {"FileStatus": _entries(listing, folder)}},
            "remainingEntries": listing.remaining,
        }
    }


def summary_answer(summary: Summary) -> SummaryAnswer:
    """Return what a tree holds."""
    return {
        "ContentSummary": {
            "directoryCount": summary.folders,
            "fileCount": summary.files,
            "length": summary.length,
            "quota": summary.quota,
            "spaceConsumed": summary.space_consumed,
            "spaceQuota": summary.space_quota,
        }
    }


def checksum_answer(checksum: Checksum) -> dict[str, Any]:
    """Return a file's checksum."""
    return {
        "FileChecksum": {
            "algorithm": checksum.algorithm,
            "bytes": checksum.bytes,
            "length": checksum.length,
        }
    }


def acl_answer(status: FileStatus) -> dict[str, Any]:
    """Return the rights where there are no others than the nine bits."""
    return {
        "AclStatus": {
            "entries": [],
            "group": status.group,
            "owner": status.owner,
            "permission": f"{status.permission:o}",
            "stickyBit": False,
        }
    }


def path_answer(path: StoragePath) -> PathAnswer:
    """Return the JSON that has a path in it."""
    return {"Path": str(path)}


def boolean_answer(value: bool) -> BooleanAnswer:
    """Return whether something was done."""
    return {"boolean": value}


def _entries(listing: Listing, folder: StoragePath) -> list[Status]:
    return [_status(entry, "" if entry.path == folder else entry.path.name) for entry in listing.entries]


def _status(status: FileStatus, name: str) -> Status:
    return {
        "accessTime": status.accessed,
        "blockSize": 0 if status.is_folder else status.block_size,
        "childrenNum": status.children,
        "fileId": status.file_id,
        "group": status.group,
        "length": status.length,
        "modificationTime": status.modified,
        "owner": status.owner,
        "pathSuffix": name,
        "permission": f"{status.permission:o}",
        "replication": 0 if status.is_folder else status.replication,
        "storagePolicy": 0,
        "type": "DIRECTORY" if status.is_folder else "FILE",
    }
