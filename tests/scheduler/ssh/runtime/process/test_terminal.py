"""Terminals as clients ask for them."""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator

import asyncssh
import pytest

from pai_scheduler.ssh.runtime.process.server import open_terminal, set_size


@pytest.fixture
def opened() -> Iterator[list[int]]:
    descriptors: list[int] = []
    yield descriptors
    for descriptor in descriptors:
        os.close(descriptor)


def test_it_has_the_size_that_was_asked_for_and_then_another(opened: list[int]) -> None:
    ours, theirs = open_terminal((100, 40, 800, 600), {})
    opened += [ours, theirs]
    assert os.get_terminal_size(theirs) == (100, 40)
    set_size(ours, (20, 10, 0, 0))
    assert os.get_terminal_size(theirs) == (20, 10)


@pytest.mark.parametrize("size", [(2**32 - 1, -5, 0, 0), (0, 0, 0, 0)])
def test_a_size_that_cannot_be_is_no_end(opened: list[int], size: tuple[int, int, int, int]) -> None:
    ours, theirs = open_terminal(size, {})
    opened += [ours, theirs]
    columns, rows = os.get_terminal_size(theirs)
    assert 0 <= columns <= 0xFFFF
    assert rows == 0


def test_modes_are_set_and_what_was_not_named_stays(opened: list[int]) -> None:
    plain = open_terminal((80, 24, 0, 0), {})
    modes = {
        asyncssh.PTY_VINTR: 7,
        asyncssh.PTY_VERASE: 8,
        asyncssh.PTY_VSUSP: 255,
        asyncssh.PTY_ECHO: 0,
        asyncssh.PTY_ICANON: 0,
        asyncssh.PTY_IUTF8: 1,
        asyncssh.PTY_IXANY: 1,
        asyncssh.PTY_ONLCR: 0,
        asyncssh.PTY_OP_ISPEED: 38400,
        200: 1,
    }
    asked = open_terminal((80, 24, 0, 0), modes)
    opened += [*plain, *asked]
    before, after = termios.tcgetattr(plain[1]), termios.tcgetattr(asked[1])
    characters = after[6]
    assert characters[termios.VINTR] == b"\x07"
    assert characters[termios.VERASE] == b"\x08"
    assert characters[termios.VSUSP] == b"\0"
    assert characters[termios.VQUIT] == before[6][termios.VQUIT]
    assert not after[3] & (termios.ECHO | termios.ICANON)
    assert after[0] & termios.IXANY
    assert after[0] & 0x4000
    assert not after[1] & termios.ONLCR
    assert after[3] | termios.ECHO | termios.ICANON == before[3]
