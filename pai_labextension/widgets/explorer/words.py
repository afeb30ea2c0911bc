"""Sentences of the explorer about what could not be done."""

from __future__ import annotations

from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.storage.client import FilesError
from pai_scheduler.client.storage.transfer import LocalFileError

from ..language import Language

#: What may go wrong between a widget and the storage.
TROUBLE = (FilesError, UnreachableError, ApiError, OSError)


def reason(say: Language, error: Exception) -> str:
    """Return in words why something could not be done."""
    if isinstance(error, FilesError):
        return error.in_locale(say.locale)
    if isinstance(error, LocalFileError):
        return say.of(error.message)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)
