"""What the operating system refuses, in the words of a storage."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from pai_scheduler.i18n import msg
from pai_scheduler.storage.errors import Problem, StorageError
from pai_scheduler.storage.path import StoragePath
from pai_scheduler.storage.refusals import exists, is_folder, no_folder, no_link, not_found


@contextmanager
def naming(path: StoragePath) -> Iterator[None]:
    """Make StorageErrors about `path` of the OSErrors within."""
    try:
        yield
    except OSError as error:
        raise refusal(path, error) from error


def refusal(path: StoragePath, error: OSError) -> StorageError:
    """Return the StorageError for what went wrong at a path."""
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
