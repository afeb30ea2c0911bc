"""How the explorer writes sizes, and why something could not be done."""

from __future__ import annotations

from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.storage.errors import FilesError
from pai_scheduler.client.storage.transfer import LocalFileError

from ..language import Language

#: What may go wrong between a widget and the storage.
TROUBLE = (FilesError, UnreachableError, ApiError, OSError)

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def size(length: float) -> str:
    """Write a number of bytes with three digits at most and its unit, a kB being 1000 bytes."""
    power = 0
    while length >= 999.5 and power < len(_UNITS) - 1:
        length /= 1000
        power += 1
    digits = 1 if power and length < 99.95 else 0
    return f"{length:.{digits}f} {_UNITS[power]}"


def reason(say: Language, error: Exception) -> str:
    """Return in words why something could not be done."""
    if isinstance(error, FilesError):
        return error.in_locale(say.locale)
    if isinstance(error, LocalFileError):
        return say.of(error.message)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)
