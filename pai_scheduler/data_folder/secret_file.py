"""A secret of this scheduler's in a file that nobody else reads: made once, and the same after a restart."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from pai_scheduler.data_folder.durable_file import sync_folder, write_aside
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import msg

_BYTES = 32


def kept_secret(path: Path) -> bytes:
    """Return the secret in a file, which is made where there is none.

    StartError: the file is not what was made, or neither can be. An empty one would be a secret that
    everybody knows.
    """
    try:
        if not path.exists():
            _make(path)
        secret = path.read_bytes()
    except OSError as error:
        message = msg("The key file {file} cannot be used: {reason}.", file=path, reason=error.strerror)
        raise StartError(message) from error
    if len(secret) != _BYTES:
        message = msg(
            "The key file {file} is damaged: it has {length} bytes instead of {bytes}. Put it back from a "
            "backup. To go on with a new key, remove the file and start once with --new-keys.",
            file=path,
            length=len(secret),
            bytes=_BYTES,
        )
        raise StartError(message)
    return secret


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = write_aside(path, secrets.token_bytes(_BYTES))
    # (another service may have been quicker)
    with suppress(FileExistsError):
        path.hardlink_to(fresh)
    fresh.unlink()
    sync_folder(path.parent)
