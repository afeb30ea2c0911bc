"""Reads a job's file: JSON with comments and trailing commas, from a path or the standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.json_text import JsonTextError, loads_jsonc


class FileError(Exception):
    """A file is no use; `readable`: it is there, but what stands in it is wrong."""

    def __init__(self, message: Message, *, readable: bool) -> None:
        super().__init__(str(message))
        self.message = message
        self.readable = readable


def read_job_file(name: str) -> dict[str, Any]:
    """Read the JSON object in a file (`-`: the standard input); FileError where there is none."""
    return read_job_text(name)[0]


def read_job_text(name: str) -> tuple[dict[str, Any], str]:
    """Read the JSON object in a file as `read_job_file`, and its text."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise FileError(
            msg("{file} cannot be read: {reason}.", file=name, reason=error.strerror), readable=False
        ) from None
    try:
        text = data.decode("utf-8")
        job = loads_jsonc(text)
    except UnicodeDecodeError as error:
        raise FileError(
            msg("{file} is not UTF-8 text (byte {position}).", file=name, position=error.start), readable=True
        ) from None
    except JsonTextError as error:
        message = msg(
            "{file}, line {line}, column {column}: {reason}",
            file=name,
            line=error.line,
            column=error.column,
            reason=error.message,
        )
        raise FileError(message, readable=True) from None
    if not isinstance(job, dict):
        raise FileError(msg("{file} holds no JSON object.", file=name), readable=True)
    return job, text
