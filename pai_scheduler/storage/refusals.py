"""What every storage says when something is not there, is there already, or is of the other kind."""

from __future__ import annotations

from pai_scheduler.i18n import msg

from .errors import Problem, StorageError
from .path import StoragePath


def not_found(path: StoragePath) -> StorageError:
    """Return the error that says that nothing is at a path."""
    return StorageError(Problem.NOT_FOUND, msg("There is no file or folder {path}.", path=str(path)))


def no_link(path: StoragePath) -> StorageError:
    """Return the error that what is at a path is neither a file nor a folder: it counts for nothing."""
    return StorageError(
        Problem.NOT_FOUND,
        msg(
            "{path} is no ordinary file or folder: symbolic links are not followed, and count for nothing.",
            path=str(path),
        ),
    )


def exists(path: StoragePath) -> StorageError:
    """Return the error that says that something is there already."""
    return StorageError(
        Problem.EXISTS,
        msg(
            "There is something called {path} already: choose another name, or overwrite it.", path=str(path)
        ),
    )


def is_folder(path: StoragePath) -> StorageError:
    """Return the error that says that a file was wanted."""
    return StorageError(Problem.IS_A_FOLDER, msg("{path} is a folder, not a file.", path=str(path)))


def no_folder(path: StoragePath) -> StorageError:
    """Return the error that says that a folder was wanted."""
    return StorageError(Problem.NOT_A_FOLDER, msg("{path} is a file, not a folder.", path=str(path)))


def ends_elsewhere(path: StoragePath, length: int, offset: int) -> StorageError:
    """Return the error that what was to be appended at `offset` does not follow what is there."""
    return StorageError(
        Problem.UNAVAILABLE,
        msg(
            "{path} has {size} bytes and cannot be written on from byte {offset} on: look again what is "
            "there, and go on from its end.",
            path=str(path),
            size=length,
            offset=offset,
        ),
    )


def closing(path: StoragePath) -> StorageError:
    """Return the error that says that the storage is being closed."""
    return StorageError(
        Problem.UNAVAILABLE, msg("The storage is being closed: ask for {path} later.", path=str(path))
    )
