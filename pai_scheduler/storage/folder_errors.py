"""What the operating system refuses, in the words of a storage."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from ..job.messages import msg
from .errors import Problem, StorageError
from .path import StoragePath


@contextmanager
def naming(path: StoragePath) -> Iterator[None]:
    """Make StorageErrors about `path` of the OSErrors within."""
    try:
        yield
    except OSError as error:
        raise refusal(path, error) from error


def refusal(path: StoragePath, error: OSError) -> StorageError:
    """Give the StorageError for what went wrong at a path."""
    where = str(path)
    match error.errno:
        case errno.ENOENT:
            return not_found(path)
        case errno.ELOOP:
            return no_link(path)
        case errno.EEXIST:
            return exists(path)
        case errno.ENOTDIR:
            return no_folder(path)
        case errno.EISDIR:
            return is_folder(path)
        case errno.ENOTEMPTY:
            return StorageError(
                Problem.NOT_EMPTY,
                msg("The folder {path} is not empty: say that what is in it is meant too.", path=where),
            )
        case errno.ENOSPC | errno.EDQUOT:
            return StorageError(
                Problem.NO_SPACE, msg("There is no space left for {path}: delete something.", path=where)
            )
        case errno.EFBIG:
            return StorageError(Problem.TOO_LARGE, msg("{path} would become too large.", path=where))
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return StorageError(
                Problem.DENIED,
                msg(
                    "The machine does not let the storage do this with {path}: {error}.", **_said(path, error)
                ),
            )
        case errno.EXDEV:
            return StorageError(
                Problem.UNSUPPORTED,
                msg("{path} is on another disk: copy it there, and delete it here.", path=where),
            )
        case errno.EINVAL | errno.ENAMETOOLONG:
            return StorageError(
                Problem.INVALID, msg("{path} cannot be used for this: {error}.", **_said(path, error))
            )
    return StorageError(
        Problem.UNAVAILABLE, msg("The storage cannot do this with {path} now: {error}.", **_said(path, error))
    )


def _said(path: StoragePath, error: OSError) -> dict[str, str]:
    return {"path": str(path), "error": error.strerror or str(error)}


def not_found(path: StoragePath) -> StorageError:
    """Say that nothing is at a path."""
    return StorageError(Problem.NOT_FOUND, msg("There is no file or folder {path}.", path=str(path)))


def no_link(path: StoragePath) -> StorageError:
    """Say that what is at a path is neither a file nor a folder: it counts for nothing."""
    return StorageError(
        Problem.NOT_FOUND,
        msg(
            "{path} is no ordinary file or folder: symbolic links are not followed, and count for nothing.",
            path=str(path),
        ),
    )


def exists(path: StoragePath) -> StorageError:
    """Say that something is there already."""
    return StorageError(
        Problem.EXISTS,
        msg(
            "There is something called {path} already: choose another name, or overwrite it.", path=str(path)
        ),
    )


def is_folder(path: StoragePath) -> StorageError:
    """Say that a file was wanted."""
    return StorageError(Problem.IS_A_FOLDER, msg("{path} is a folder, not a file.", path=str(path)))


def no_folder(path: StoragePath) -> StorageError:
    """Say that a folder was wanted."""
    return StorageError(Problem.NOT_A_FOLDER, msg("{path} is a file, not a folder.", path=str(path)))


def closing(path: StoragePath) -> StorageError:
    """Say that the storage is being closed."""
    return StorageError(
        Problem.UNAVAILABLE, msg("The storage is being closed: ask for {path} later.", path=str(path))
    )
