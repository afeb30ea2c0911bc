"""A secret of this scheduler's in a file that nobody else reads: made once, and the same after a restart."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

_BYTES = 32


def kept_secret(path: Path) -> bytes:
    """Give the secret in a file, which is made where there is none; OSError where neither can be."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
            file.flush()
            os.fsync(file.fileno())
        # (another service may have been quicker)
        with suppress(FileExistsError):
            os.link(fresh, path)
        fresh.unlink()
    return path.read_bytes()
