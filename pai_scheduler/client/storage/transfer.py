"""Common parts of uploads and downloads: progress, several files at once, new tries, the result."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.i18n import Message

from .client import FilesError

#: Files that are transferred at the same time.
PARALLEL = 4
#: Bytes that are read, written or shown as progress at a time.
PIECE = 2**20
#: How often running a transfer is tried again that does not get on, and the first pause before it (seconds,
#: doubled each time).
_TRIES, _PAUSE = 6, 0.5
#: Bytes of the longest file name, as everywhere in the storage.
_LONGEST_NAME = 255
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True, slots=True)
class TransferProgress:
    """Progress of a transfer; what was the same already counts as done. `current`: what moved last."""

    files_done: int
    files_total: int
    bytes_done: int
    bytes_total: int
    current: str


Item = TypeVar("Item")

#: Is told how far a transfer is, on the event loop, often: once a piece.
Tell = Callable[[TransferProgress], None]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that was not transferred, and why; `failed`: it should have been."""

    path: str
    reason: Message | FilesError
    failed: bool

    def in_locale(self, locale: str) -> str:
        """Return the reason as a sentence."""
        return self.reason.in_locale(locale)


#: What became of a file: it was sent or fetched, was there already, or was copied within the storage.
FileOutcome = Literal["moved", "same", "copied"]


@dataclass(slots=True)
class TransferResult:
    """Result of a transfer: files that were moved (`length`: their bytes), were there already, or were
    copied within the storage."""

    files: int = 0
    same: int = 0
    copied: int = 0
    length: int = 0
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Return whether everything is there that should be."""
        return not any(item.failed for item in self.left_out)


class OneFileError(Exception):
    """One file or folder cannot be transferred, others may; `message` says which, and why."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class LocalFileError(OneFileError):
    """A file on this side cannot be read or written as it should."""


class TransferTally:
    """Counts what becomes of the files of a transfer, and tells how far it is."""

    def __init__(self, files: int, length: int, tell: Tell | None) -> None:
        self._files, self._length, self._tell = files, length, tell
        self._files_done = 0
        self._moved: dict[str, int] = {}
        self._sum = 0
        self.result = TransferResult()

    def at(self, name: str, offset: int) -> None:
        """Note that `offset` bytes of a file are over; a broken one may fall back."""
        self._sum += offset - self._moved.get(name, 0)
        self._moved[name] = offset
        self._say(name)

    async def count(self, name: str, path: str, length: int, work: Awaitable[FileOutcome]) -> None:
        """Transfer a file by `work`; what is wrong with it alone stands in the result, by its `path`."""
        try:
            match await work:
                case "moved":
                    self.result.files += 1
                    self.result.length += length
                case "same":
                    self.result.same += 1
                case "copied":
                    self.result.copied += 1
        except FilesError as error:
            if error.concerns_all:
                raise
            self.result.left_out.append(LeftOut(path, error, failed=True))
        except OneFileError as error:
            self.result.left_out.append(LeftOut(path, error.message, failed=True))
        finally:
            self._sum += length - self._moved.pop(name, 0)
            self._files_done += 1
            self._say(name)

    def _say(self, name: str) -> None:
        if self._tell is not None:
            self._tell(TransferProgress(self._files_done, self._files, self._sum, self._length, name))


class Trials:
    """Allows a transfer to be tried again where its connection broke, as long as it gets on now and then."""

    def __init__(self, pause: float = _PAUSE) -> None:
        self._pause = pause
        self._failures = 0

    def got_on(self) -> None:
        """Note that something was achieved: the count begins anew."""
        self._failures = 0

    async def after(self, error: UnreachableError | FilesError) -> None:
        """Wait until it may be tried again; raise the error where that is in vain."""
        passing = isinstance(error, UnreachableError) or error.may_pass
        if not passing or self._failures >= _TRIES:
            raise error
        await asyncio.sleep(self._pause * 2**self._failures)
        self._failures += 1


def amount(length: float) -> str:
    """Write a number of bytes: 812 B, 1.5 kB, 24 MB (of 1000 each)."""
    value, unit = length, 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 9.95 else f"{value:.0f} {_UNITS[unit]}"


def fingerprint(length: int, modified: int) -> str:
    """Return what differs between states of a file, of its length (bytes) and time of change (ms).

    The first 8 hexadecimal digits of the SHA-256 of `<length>:<modified>`; the browser makes the same.
    """
    return hashlib.sha256(f"{length}:{modified}".encode()).hexdigest()[:8]


def part_name(name: str, length: int, modified: int) -> str:
    """Name what is there of a file before it is whole; another state of the file has another one."""
    return f"{part_prefix(name)}{fingerprint(length, modified)}.part"


def part_prefix(name: str) -> str:
    """Return what the names of all parts of a file begin with."""
    room = _LONGEST_NAME - len("..01234567.part")
    if len(name.encode("utf-8", "surrogateescape")) > room:
        name = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
    return f".{name}."


def is_part_of(candidate: str, name: str) -> bool:
    """Return whether something is a part of a file, in whatever state of the file."""
    rest = candidate.removeprefix(part_prefix(name))
    return rest != candidate and re.fullmatch(r"[0-9a-f]{8}\.part", rest) is not None


async def side_by_side(
    items: Iterable[Item], work: Callable[[Item], Awaitable[None]], parallel: int = PARALLEL
) -> None:
    """Do `work` on every item, on `parallel` at a time; the first error ends all."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(parallel):
                group.create_task(worker())
    except ExceptionGroup as errors:
        # they are of the same kind: the caller handles one
        raise errors.exceptions[0] from None
