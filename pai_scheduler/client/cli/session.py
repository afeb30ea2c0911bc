"""One call of `pai`: who is asked, files read, tables and progress printed."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from wcwidth import wcswidth

from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.client.storage.transfer import Tell, TransferProgress
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.json_text import JsonTextError, loads_jsonc

if TYPE_CHECKING:
    from tqdm.auto import tqdm


# Text for terminals: aligned tables (a Chinese character takes two columns), times and amounts.

_GAP = "  "
#: Whether times are written with their distance from UTC behind them.
zone_shown: ContextVar[bool] = ContextVar("zone_shown", default=False)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out rows under their header; a column of numbers stands to the right."""
    lines = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    numeric = [len(lines) > 1 and all(_is_number(line[i]) for line in lines[1:]) for i in range(len(header))]
    return "\n".join(
        _GAP.join(_pad(cell, widths[i], right=numeric[i]) for i, cell in enumerate(line)).rstrip()
        for line in lines
    )


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Lay out names and their values, one a line; an empty value leaves its line out."""
    shown = [(name, printable(value)) for name, value in rows if value]
    longest = max((width(name) for name, _ in shown), default=0)
    return "\n".join(f"{_pad(name, longest, right=False)}{_GAP}{value}" for name, value in shown)


def width(text: str) -> int:
    """Count the columns that a printable text takes on a terminal."""
    return max(0, wcswidth(text))


def printable(text: str) -> str:
    """Take out what would move the cursor or change the colours: a text may come from another user."""
    return "".join(" " if unicodedata.category(char).startswith("C") else char for char in text)


def printable_lines(text: str) -> str:
    """Do the same for a text of several lines, which stay apart."""
    return "\n".join(map(printable, text.split("\n")))


def moment(milliseconds: int | None) -> str:
    """Write a time (ms since the epoch) as this machine's clock shows it; with its zone if `zone_shown`."""
    if milliseconds is None:
        return "-"
    local = datetime.fromtimestamp(milliseconds // 1000, UTC).astimezone()
    return (local if zone_shown.get() else local.replace(tzinfo=None)).isoformat(" ")


def duration(milliseconds: int) -> str:
    """Write how long something took: 42s, 3m 05s, 2h 07m, 3d 04h."""
    seconds = max(0, milliseconds) // 1000
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02}s"
    if seconds < 86400:
        return f"{seconds // 3600}h {seconds % 3600 // 60:02}m"
    return f"{seconds // 86400}d {seconds % 86400 // 3600:02}h"


def _pad(text: str, columns: int, *, right: bool) -> str:
    blanks = " " * (columns - width(text))
    return blanks + text if right else text + blanks


def _is_number(text: str) -> bool:
    return text in ("", "-") or text.removeprefix("-").replace(".", "", 1).isdigit()


# Reads a job's file: JSON with comments and trailing commas, from a path or the standard input.


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


# Shows on a terminal how far a transfer is; nothing when piped.


@contextmanager
def shown_progress(locale: str, stream: TextIO | None = None) -> Iterator[Tell | None]:
    """Return what a transfer tells its progress to; None where nobody would see it.

    Nothing is shown before the first of it is told: there may be nothing to transfer.
    """
    stream = stream or sys.stderr
    if not stream.isatty():
        yield None
        return
    with ExitStack() as stack:
        bar: tqdm[NoReturn] | None = None

        def tell(progress: TransferProgress) -> None:
            nonlocal bar
            if bar is None:
                from tqdm.auto import tqdm  # only for who watches a transfer

                bar = stack.enter_context(
                    tqdm(
                        total=progress.bytes_total,
                        file=stream,
                        unit="B",
                        unit_scale=True,
                        dynamic_ncols=True,
                        leave=False,
                        miniters=0,
                    )
                )
            files = msg("files {done}/{all}", done=progress.files_done, all=progress.files_total)
            words = f"{files.in_locale(locale)}, {printable(progress.current)}"
            bar.set_postfix_str(words, refresh=False)
            bar.total = progress.bytes_total
            bar.update(progress.bytes_done - bar.n)
            if progress.bytes_done == progress.bytes_total:
                bar.refresh()  # tqdm draws ten times a second: the end may come between

        yield tell


# One call of `pai`: who is asked, and how what it says is printed.

OK, REFUSED = 0, 1
#: What `ssh` says where it is not the command that failed.
NO_WAY = 255


@dataclass(frozen=True, slots=True)
class CliSession:
    """One call of `pai`."""

    client: Client
    files: FilesClient
    locale: str
    as_json: bool

    def say(self, template: str, /, **values: Any) -> None:
        """Print a sentence in the user's language."""
        print(printable_lines(msg(template, **values).in_locale(self.locale)))

    def print_json(self, value: Any) -> None:
        """Print an answer for programs."""
        print(json.dumps(value, ensure_ascii=False, indent=2))

    async def owner(self, user: str | None) -> str:
        """Return the user whose job is meant: who is named, else who asks."""
        return user or (await self.client.whoami())["username"]


def complain(text: str) -> None:
    """Print a sentence about what went wrong."""
    print(printable_lines(text), file=sys.stderr)
