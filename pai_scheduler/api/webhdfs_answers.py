"""What WebHDFS answers, as JSON: the schemas of Hadoop's "WebHDFS REST API"."""

from __future__ import annotations

from typing import Any

from ..storage.path import StoragePath
from ..storage.protocol import Checksum, FileStatus, Listing, Summary


def status_answer(status: FileStatus) -> dict[str, Any]:
    """Describe one file or folder."""
    return {"FileStatus": _status(status, "")}


def listing_answer(listing: Listing, folder: StoragePath) -> dict[str, Any]:
    """List a folder; a file lists as itself, without a name."""
    return {"FileStatuses": {"FileStatus": _entries(listing, folder)}}


def batch_answer(listing: Listing, folder: StoragePath) -> dict[str, Any]:
    """List a part of a folder."""
    return {
        "DirectoryListing": {
            "partialListing": {"FileStatuses": {"FileStatus": _entries(listing, folder)}},
            "remainingEntries": listing.remaining,
        }
    }


def summary_answer(summary: Summary) -> dict[str, Any]:
    """Give what a tree holds."""
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
    """Give a file's checksum."""
    return {
        "FileChecksum": {
            "algorithm": checksum.algorithm,
            "bytes": checksum.bytes,
            "length": checksum.length,
        }
    }


def acl_answer(status: FileStatus) -> dict[str, Any]:
    """Give the rights where there are no others than the nine bits."""
    return {
        "AclStatus": {
            "entries": [],
            "group": status.group,
            "owner": status.owner,
            "permission": f"{status.permission:o}",
            "stickyBit": False,
        }
    }


def path_answer(path: StoragePath) -> dict[str, Any]:
    """Give a path."""
    return {"Path": str(path)}


def boolean_answer(value: bool) -> dict[str, Any]:
    """Say whether something was done."""
    return {"boolean": value}


def _entries(listing: Listing, folder: StoragePath) -> list[dict[str, Any]]:
    return [_status(entry, "" if entry.path == folder else entry.path.name) for entry in listing.entries]


def _status(status: FileStatus, name: str) -> dict[str, Any]:
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
