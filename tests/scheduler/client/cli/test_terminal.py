"""This side's keyboard and screen; the tests of `pai ssh` use them at a real terminal."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

import pytest

from pai_scheduler.client.cli.ssh import Escape, read_pieces, write_piece


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        ([b"~."], None),
        ([b"ls\r", b"~", b"."], None),
        ([b"ls\n~."], None),
        ([b"~~."], b"~."),
        ([b"a~.b"], b"a~.b"),
        ([b"~", b"x"], b"~x"),
        ([b"~\r~."], None),
        ([b"\r~~\r"], b"\r~\r"),
    ],
)
def test_a_tilde_at_the_begin_of_a_line_is_told_from_others(keys: list[bytes], sent: bytes | None) -> None:
    escape, got = Escape(), b""
    for piece in keys:
        filtered = escape.filter(piece)
        if filtered is None:
            assert sent is None
            return
        got += filtered
    assert got == sent


async def read(descriptor: int) -> bytes:
    async with aclosing(read_pieces(descriptor)) as pieces:
        return b"".join([piece async for piece in pieces])


async def test_files_and_pipes_are_read_to_their_end(tmp_path: Path) -> None:
    data = os.urandom(2_000_000)
    (tmp_path / "file").write_bytes(data)
    with (tmp_path / "file").open("rb") as file:
        assert await read(file.fileno()) == data
    reading, writing = os.pipe()
    reader = asyncio.ensure_future(read(reading))
    await write_piece(writing, data)
    os.close(writing)
    assert await reader == data
    os.close(reading)


async def test_what_cannot_be_read_is_at_its_end(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        assert await read(file.fileno()) == b""


async def test_no_more_is_read_than_is_wanted() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    async with aclosing(read_pieces(reading)) as pieces:
        written = 0
        blocked = 0
        # somebody who takes nothing is waited for: the pipe fills
        while blocked < 20:
            try:
                written += os.write(writing, b"x" * 65536)
                blocked = 0
            except BlockingIOError:
                blocked += 1
                await asyncio.sleep(0.02)
            if written == 65536:
                assert await anext(pieces)
        assert written < 4_000_000
    os.close(writing)


async def test_a_reader_that_does_not_read_is_named() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        await write_piece(writing, b"x")
    os.close(writing)
