"""Answers of WebHDFS, as types: the names are those of Hadoop's "WebHDFS REST API", lengths are bytes."""

from __future__ import annotations

from typing import Literal, TypedDict

from .models import Time


class RemoteException(TypedDict):
    """Why something was refused: Hadoop's name for it, and a sentence for people."""

    exception: str
    javaClassName: str
    message: str


class RefusalAnswer(TypedDict):
    """A refusal."""

    RemoteException: RemoteException


class FileStatus(TypedDict):
    """A file or folder; `pathSuffix`: its name within the folder that was listed, empty for itself."""

    accessTime: Time
    blockSize: int
    childrenNum: int
    fileId: int
    group: str
    length: int
    modificationTime: Time
    owner: str
    pathSuffix: str
    permission: str
    replication: int
    storagePolicy: int
    type: Literal["FILE", "DIRECTORY"]


class StatusAnswer(TypedDict):
    """One file or folder."""

    FileStatus: FileStatus


class FileStatuses(TypedDict):
    """Those of a listing."""

    FileStatus: list[FileStatus]


class PartialListing(TypedDict):
    """Those of a part of a listing."""

    FileStatuses: FileStatuses


class DirectoryListing(TypedDict):
    """A part of a folder, and how many come after it."""

    partialListing: PartialListing
    remainingEntries: int


class ListingAnswer(TypedDict):
    """A part of a folder."""

    DirectoryListing: DirectoryListing


class ContentSummary(TypedDict):
    """What a tree holds."""

    directoryCount: int
    fileCount: int
    length: int
    quota: int
    spaceConsumed: int
    spaceQuota: int


class SummaryAnswer(TypedDict):
    """What a tree holds."""

    ContentSummary: ContentSummary


class PathAnswer(TypedDict):
    """A path."""

    Path: str


class BooleanAnswer(TypedDict):
    """Whether something was done."""

    boolean: bool
