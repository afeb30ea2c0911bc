"""Failures of a command of `pai`: the sentences for them, and the exit codes."""

from __future__ import annotations

from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError, UnreachableGatewayError
from pai_scheduler.client.ssh.sftp import RemoteFileError
from pai_scheduler.client.storage.client import FilesError
from pai_scheduler.client.storage.code import CodeError, SubmitRefusedError
from pai_scheduler.client.storage.transfer import LocalFileError
from pai_scheduler.i18n import msg

from .session import REFUSED, FileError, complain

USAGE, UNREACHABLE = 2, 3
#: What a command raises where something is not as it should be; everything else is our mistake.
EXPECTED = (
    ApiError,
    FilesError,
    CodeError,
    RemoteError,
    RemoteFileError,
    LocalFileError,
    FileError,
    UnreachableError,
)


def tell(error: Exception, url: str, locale: str) -> int:
    """Print what has gone wrong; return the exit code."""
    match error:
        case ApiError():
            complain(error.message)
            # where there is only one, the sentence above has it
            for field in error.errors if len(error.errors) > 1 else ():
                complain(f"  {field['path']}: {field['message']}")
            if isinstance(error, SubmitRefusedError):
                there = msg(
                    "The code is uploaded to {folder}; the job is not submitted.", folder=error.code_folder
                )
                complain(there.in_locale(locale))
            _explain(error.status, locale)
            return REFUSED
        case FilesError():
            complain(error.in_locale(locale))
            _explain(error.status, locale)
            return REFUSED
        case UnreachableGatewayError():
            complain(error.message.in_locale(locale))
            return UNREACHABLE
        case CodeError() | RemoteError() | RemoteFileError():
            complain(error.message.in_locale(locale))
            return REFUSED
        case LocalFileError():
            complain(error.message.in_locale(locale))
            return USAGE
        case FileError():
            complain(error.message.in_locale(locale))
            return REFUSED if error.readable else USAGE
        case _:
            complain(
                msg(
                    "The scheduler at {url} does not answer: {reason}",
                    url=url,
                    reason=error.__cause__ or error,
                ).in_locale(locale)
            )
            return UNREACHABLE


def _explain(status: int, locale: str) -> None:
    if status == 401:
        complain(msg("Set PAI_TOKEN to your token, or give it with --token.").in_locale(locale))
