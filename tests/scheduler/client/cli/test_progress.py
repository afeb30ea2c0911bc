"""How far a transfer is, as a terminal shows it."""

from __future__ import annotations

import io
import os
import pty
import struct
import termios
from collections.abc import Iterator
from contextlib import suppress
from fcntl import ioctl
from itertools import count
from typing import TextIO

import pytest

from pai_scheduler.client.cli.session import shown_progress, width
from pai_scheduler.client.storage.transfer import TransferProgress


@pytest.fixture
def terminal() -> Iterator[tuple[TextIO, int]]:
    """Return a terminal of 80 columns, and what shows what is written to it."""
    shown, descriptor = pty.openpty()
    ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        yield stream, shown
    os.close(shown)


def test_a_terminal_shows_how_much_of_how_much_and_which_file(
    terminal: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, shown = terminal
    seconds = count()
    monkeypatch.setattr("tqdm.std.time", lambda: float(next(seconds)))
    with shown_progress("zh_CN", stream) as tell:
        assert tell is not None
        for done in (0, 5_000_000, 10_000_000):
            tell(TransferProgress(done // 5_000_000, 2, done, 10_000_000, "数据" * 40 + "\x1b[2J"))
    stream.close()
    data = b""
    with suppress(OSError):  # that is how a terminal says that there is no more
        while piece := os.read(shown, 100_000):
            data += piece
    looks = data.decode().split("\r")
    assert any("10.0M/10.0M" in look and "文件 2/2, 数据" in look for look in looks), looks
    assert not any("\x1b[2J" in look for look in looks), "the name of a file moves no cursor"
    assert max(map(width, looks)) <= 80
    assert looks[-2].strip() == "", "it goes away"


def test_nothing_is_drawn_where_nobody_watches() -> None:
    with shown_progress("en", io.StringIO()) as tell:
        assert tell is None


def test_nothing_is_drawn_where_nothing_is_transferred(terminal: tuple[TextIO, int]) -> None:
    stream, shown = terminal
    with shown_progress("en", stream) as tell:
        assert tell is not None
    stream.write("the end")
    stream.flush()
    assert os.read(shown, 100_000) == b"the end"
