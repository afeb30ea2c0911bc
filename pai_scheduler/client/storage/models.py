"""What the storage's client gives of what WebHDFS answers: files and folders, a page of a listing, a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pai_scheduler.rest.webhdfs import ContentSummary, DirectoryListing, FileStatus


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file or folder. `length` in bytes (0 for a folder), `modified` in ms since the epoch."""

    path: str
    is_folder: bool
    length: int
    modified: int
    #: nine bits, as of chmod
    permission: int
    owner: str
    group: str

    @property
    def name(self) -> str:
        """Return the last part of the path; empty for the root."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class FolderPage:
    """A part of what is in a folder, in the order of names; `remaining`: how many follow."""

    entries: Sequence[FileInfo]
    remaining: int


@dataclass(frozen=True, slots=True)
class TreeSummary:
    """What is in a tree, its own folder counted; `length` in bytes."""

    files: int
    folders: int
    length: int


def file_info(path: str, status: FileStatus) -> FileInfo:
    """Read a FileStatus of what is at `path`."""
    return FileInfo(
        path=path,
        is_folder=status["type"] == "DIRECTORY",
        length=status["length"],
        modified=status["modificationTime"],
        permission=int(status["permission"], 8) & 0o777,
        owner=status["owner"],
        group=status["group"],
    )


def folder_page(path: str, listing: DirectoryListing) -> FolderPage:
    """Read a DirectoryListing of the folder at `path`; a file lists as itself."""
    entries = [
        file_info(f"{path.rstrip('/')}/{status['pathSuffix']}" if status["pathSuffix"] else path, status)
        for status in listing["partialListing"]["FileStatuses"]["FileStatus"]
    ]
    return FolderPage(entries, listing["remainingEntries"])


def tree_summary(summary: ContentSummary) -> TreeSummary:
    """Read a ContentSummary."""
    return TreeSummary(summary["fileCount"], summary["directoryCount"], summary["length"])
