"""This side of a command that runs elsewhere: the terminal or the files that `pai` was started with."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import cast

#: Bytes read at a time, and how many pieces may wait to be sent.
_PIECE, _WAITING = 65536, 8
_FALLBACK_SIZE = (80, 24)


async def read_pieces(descriptor: int) -> AsyncGenerator[bytes, None]:
    """Return what a descriptor has as it comes, until its end: a terminal, a pipe or a file.

    A thread reads, which may be left waiting for the keyboard when nobody wants any more.
    """
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_WAITING)

    def read() -> None:
        data = b" "
        while data:
            room.acquire()
            try:
                data = os.read(descriptor, _PIECE)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(pieces.put_nowait, data)
            except RuntimeError:
                # the loop is closed: nobody wants it
                return

    threading.Thread(target=read, name="pai-stdin", daemon=True).start()
    while piece := await pieces.get():
        yield piece
        room.release()


async def write_piece(descriptor: int, data: bytes) -> None:
    """Write everything; others run on while its reader is slow. OSError where nobody does."""
    await asyncio.to_thread(_write, descriptor, data)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def size() -> tuple[int, int]:
    """Return columns and rows of this terminal."""
    columns, rows = shutil.get_terminal_size(_FALLBACK_SIZE)
    return columns, rows


async def resized() -> AsyncGenerator[tuple[int, int], None]:
    """Return the size each time the terminal's window has another one."""
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, changed.set)
    try:
        while True:
            await changed.wait()
            changed.clear()
            # not shutil's: it would believe $COLUMNS, which stays as it was
            found = os.get_terminal_size(sys.stdin.fileno())
            yield found.columns, found.lines
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


@contextmanager
def raw_terminal(descriptor: int) -> Iterator[None]:
    """Pass every key on as it is, ^C too; afterwards the terminal is as before, also when we are ended."""
    before = termios.tcgetattr(descriptor)
    loop, task = asyncio.get_running_loop(), cast("asyncio.Task[object]", asyncio.current_task())
    ends = (signal.SIGTERM, signal.SIGHUP)
    # what was typed already is not lost
    tty.setraw(descriptor, termios.TCSADRAIN)
    try:
        for number in ends:
            loop.add_signal_handler(number, task.cancel)
        yield
    finally:
        for number in ends:
            loop.remove_signal_handler(number)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class Escape:
    """Finds `~.` at the begin of a line, which cuts a connection that no longer answers; `~~` is one `~`."""

    def __init__(self) -> None:
        self._line_begins, self._tilde = True, False

    def filter(self, data: bytes) -> bytes | None:
        """Return what is to be sent of some keys; None: the connection is to be cut."""
        sent = bytearray()
        for byte in data:
            if self._tilde:
                self._tilde = False
                if byte == ord("."):
                    return None
                sent += b"~" if byte == ord("~") else bytes([ord("~"), byte])
            elif self._line_begins and byte == ord("~"):
                self._tilde = True
                continue
            else:
                sent.append(byte)
            self._line_begins = byte in b"\r\n"
        return bytes(sent)
