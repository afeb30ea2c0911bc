"""What HDFS refuses, in the words of a storage: by its exceptions' names, and by what its sentences tell."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from pai_scheduler.i18n import msg
from pai_scheduler.storage.errors import Problem, StorageError
from pai_scheduler.storage.path import StoragePath
from pai_scheduler.storage.refusals import exists, is_folder, no_folder, not_found

#: Nothing was done, and another name node, or a later moment, may do it.
PASSING_NAMES = frozenset({"StandbyException", "RetriableException", "SafeModeException"})
_UNAUTHORIZED = 401
_SERVER_ERROR = 500

_PROBLEMS = {
    "ParentNotDirectoryException": Problem.NOT_A_FOLDER,
    "AccessControlException": Problem.DENIED,
    "AuthorizationException": Problem.DENIED,
    "SecurityException": Problem.DENIED,
    "PathIsNotEmptyDirectoryException": Problem.NOT_EMPTY,
    "DSQuotaExceededException": Problem.NO_SPACE,
    "NSQuotaExceededException": Problem.NO_SPACE,
    "QuotaByStorageTypeExceededException": Problem.NO_SPACE,
    "QuotaExceededException": Problem.NO_SPACE,
    "MaxDirectoryItemsExceededException": Problem.NO_SPACE,
    "PathComponentTooLongException": Problem.INVALID,
    "IllegalArgumentException": Problem.INVALID,
    "HadoopIllegalArgumentException": Problem.INVALID,
    "InvalidPathException": Problem.INVALID,
    "UnsupportedOperationException": Problem.UNSUPPORTED,
    "FileNotFoundException": Problem.NOT_FOUND,
    "FileAlreadyExistsException": Problem.EXISTS,
}
#: Sentences that say more than the exception's name, in the order in which they count.
_SENTENCES = (
    ("is not a directory", Problem.NOT_A_FOLDER),
    ("is not a file", Problem.IS_A_FOLDER),
    ("append to directory", Problem.IS_A_FOLDER),
    ("directory is not empty", Problem.NOT_EMPTY),
    ("is a directory under rename source", Problem.INVALID),
    ("out of the range", Problem.INVALID),
)
#: A folder was asked for, and this is a file: the same sentence of HDFS with another meaning.
_FILE_THERE = "Path is not a directory"
#: Nobody may go through a file (its mode begins with a hyphen).
_FILE_ON_THE_WAY = re.compile(r"access=EXECUTE, inode=.*:-[-r][-w][-x]")


@dataclass(frozen=True, slots=True)
class Remote:
    """What HDFS answered instead: the short name of its exception and the first line of its sentence."""

    status: int
    name: str
    sentence: str

    @property
    def may_pass(self) -> bool:
        """Return whether nothing was done, and it may be another time."""
        return (
            self.name in PASSING_NAMES or "in safe mode" in self.sentence or "startup mode" in self.sentence
        )


def remote(status: int, body: bytes) -> Remote:
    """Read an answer that is no success; one that is none of WebHDFS has no name."""
    try:
        told = json.loads(body)["RemoteException"]
        name, sentence = str(told["exception"]), str(told["message"])
    except (ValueError, KeyError, TypeError):
        name, sentence = "", ""
    return Remote(status, name, first_line(sentence))


def first_line(text: str) -> str:
    """Return a sentence without the Java that follows it."""
    return text.split("\n", 1)[0].strip()


def refusal(path: StoragePath, answer: Remote, account: str) -> StorageError:
    """Return the StorageError for what HDFS answered about a path."""
    if "not allowed to impersonate" in answer.sentence:
        return StorageError(
            Problem.DENIED,
            msg(
                "HDFS does not let {account} act for users. Its administrator sets "
                "hadoop.proxyuser.{account}.hosts and hadoop.proxyuser.{account}.groups in core-site.xml of "
                "every name node and data node, and runs hdfs dfsadmin "
                "-refreshSuperUserGroupsConfiguration ({reason}).",
                account=account,
                reason=answer.sentence,
            ),
        )
    if answer.status == _UNAUTHORIZED:
        return StorageError(
            Problem.DENIED,
            msg(
                "HDFS does not believe who the scheduler is (HTTP 401): it wants Kerberos "
                "(--storage-kerberos), or the scheduler's ticket has run out (kinit).",
            ),
        )
    if not answer.name:
        return StorageError(
            Problem.UNAVAILABLE,
            msg(
                "What answers as HDFS about {path} does not speak WebHDFS (HTTP {status}): check the address "
                "of the name nodes.",
                path=str(path),
                status=answer.status,
            ),
        )
    return _named(path, answer)


def _named(path: StoragePath, answer: Remote) -> StorageError:
    match _problem(answer):
        case Problem.NOT_FOUND:
            return not_found(path)
        case Problem.EXISTS:
            return exists(path)
        case Problem.IS_A_FOLDER:
            return is_folder(path)
        case Problem.NOT_A_FOLDER:
            return no_folder(path)
        case problem:
            return StorageError(
                problem,
                msg("HDFS does not do this with {path}: {reason}", path=str(path), reason=_reason(answer)),
            )


def _problem(answer: Remote) -> Problem:
    if answer.sentence.startswith(_FILE_THERE):
        return Problem.EXISTS
    if _FILE_ON_THE_WAY.search(answer.sentence):
        return Problem.NOT_A_FOLDER
    for part, problem in _SENTENCES:
        if part in answer.sentence:
            return problem
    if answer.name in _PROBLEMS:
        return _PROBLEMS[answer.name]
    return Problem.UNAVAILABLE


def _reason(answer: Remote) -> str:
    return answer.sentence or answer.name


def unavailable(path: StoragePath, reason: str) -> StorageError:
    """Return the error that says that HDFS does not answer."""
    return StorageError(
        Problem.UNAVAILABLE,
        msg(
            "HDFS does not answer about {path} now: {reason}. Try again later.", path=str(path), reason=reason
        ),
    )
