"""Refusals as WebHDFS has them: the status, the exception that programs know, and the sentence for people."""

from __future__ import annotations

from collections.abc import Mapping

from pai_scheduler.i18n import Message
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.rest.webhdfs import RefusalAnswer
from pai_scheduler.storage.paths import Problem, StorageError

_BY_PROBLEM: Mapping[Problem, tuple[int, str]] = {
    Problem.NOT_FOUND: (404, "FileNotFoundException"),
    # as Hadoop says it of what is opened: "Path is not a file"
    Problem.IS_A_FOLDER: (404, "FileNotFoundException"),
    Problem.EXISTS: (403, "FileAlreadyExistsException"),
    Problem.DENIED: (403, "AccessControlException"),
    Problem.NOT_A_FOLDER: (403, "ParentNotDirectoryException"),
    Problem.NOT_EMPTY: (403, "PathIsNotEmptyDirectoryException"),
    Problem.INVALID: (400, "IllegalArgumentException"),
    Problem.UNSUPPORTED: (400, "UnsupportedOperationException"),
    Problem.TOO_LARGE: (403, "IOException"),
    Problem.NO_SPACE: (507, "IOException"),
    Problem.UNAVAILABLE: (503, "RetriableException"),
}

#: For refusals that are not the storage's own. A status that is not here: RuntimeException.
_BY_STATUS: Mapping[int, str] = {
    400: "IllegalArgumentException",
    401: "SecurityException",
    403: "AccessControlException",
    404: "FileNotFoundException",
    405: "UnsupportedOperationException",
    429: "RetriableException",
    503: "RetriableException",
}

_CLASSES: Mapping[str, str] = {
    "AccessControlException": "org.apache.hadoop.security.AccessControlException",
    "FileAlreadyExistsException": "org.apache.hadoop.fs.FileAlreadyExistsException",
    "FileNotFoundException": "java.io.FileNotFoundException",
    "IOException": "java.io.IOException",
    "IllegalArgumentException": "java.lang.IllegalArgumentException",
    "InvalidToken": "org.apache.hadoop.security.token.SecretManager$InvalidToken",
    "ParentNotDirectoryException": "org.apache.hadoop.fs.ParentNotDirectoryException",
    "PathIsNotEmptyDirectoryException": "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException",
    "RetriableException": "org.apache.hadoop.ipc.RetriableException",
    "RuntimeException": "java.lang.RuntimeException",
    "SecurityException": "java.lang.SecurityException",
    "StandbyException": "org.apache.hadoop.ipc.StandbyException",
    "UnsupportedOperationException": "java.lang.UnsupportedOperationException",
}

# The `hdfs` library looks for these words to tell whether something is there, and shows the whole to people.
_MISSING = "does not exist"


class StorageRefusal(RequestError):
    """What the storage refused, as an answer; `missing`: there is nothing at the path."""

    def __init__(self, status: int, exception: str, message: Message, *, missing: bool = False) -> None:
        super().__init__(status, exception, message)
        self.missing = missing


def refusal_of(error: StorageError) -> StorageRefusal:
    """Put what a storage said into an answer."""
    status, exception = _BY_PROBLEM[error.problem]
    return StorageRefusal(status, exception, error.message, missing=error.problem is Problem.NOT_FOUND)


def refusal_answer(refusal: RequestError, sentence: str) -> RefusalAnswer:
    """Return the body of a refusal whose message is `sentence` in the caller's language."""
    exception = refusal.code if refusal.code in _CLASSES else _BY_STATUS.get(refusal.status)
    if isinstance(refusal, StorageRefusal) and refusal.missing and _MISSING not in sentence:
        sentence = f"{sentence} (File {_MISSING}.)"
    return remote_exception(exception or "RuntimeException", sentence)


def remote_exception(exception: str, sentence: str) -> RefusalAnswer:
    """Return a body that names an exception of Hadoop's."""
    return {
        "RemoteException": {
            "exception": exception,
            "javaClassName": _CLASSES[exception],
            "message": sentence,
        }
    }
