"""Pseudo-terminals as an SSH client asks for them: size and modes (RFC 4254, section 8)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Mapping

import asyncssh

#: number in the protocol: index of the control character, or flag; those that this machine has
_MODES: dict[int, int] = {
    number: getattr(termios, name.removeprefix("PTY_"))
    for name, number in vars(asyncssh).items()
    if name.startswith("PTY_") and hasattr(termios, name.removeprefix("PTY_"))
} | {
    # one that the library calls otherwise, and one that the standard library has no name for
    asyncssh.PTY_WERASE: termios.VWERASE,
    asyncssh.PTY_IUTF8: 0x4000,
}
#: tens of a flag's number: which word of the terminal's attributes it is in (0 input, 1 output, 3 local)
_WORDS = {3: 0, 4: 0, 5: 3, 6: 3, 7: 1}
_LAST_CHARACTER = asyncssh.PTY_VDISCARD
#: what a client says of a control character that it has none for
_NO_CHARACTER = 255


def open_terminal(size: tuple[int, int, int, int], modes: Mapping[int, int]) -> tuple[int, int]:
    """Make a terminal; return the descriptors of our side of it and of the programs'."""
    ours, theirs = os.openpty()
    set_size(ours, size)
    attributes = termios.tcgetattr(theirs)
    characters = attributes[6]
    for number, value in modes.items():
        if (mode := _MODES.get(number)) is None:
            continue
        if number <= _LAST_CHARACTER:
            characters[mode] = bytes([0 if value == _NO_CHARACTER else value & 0xFF])
        elif (word := _WORDS.get(number // 10)) is not None:
            attributes[word] = attributes[word] | mode if value else attributes[word] & ~mode
    with contextlib.suppress(termios.error):
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    return ours, theirs


def set_size(terminal: int, size: tuple[int, int, int, int]) -> None:
    """Set width and height in characters, then in pixels; nonsense is cut to what a terminal can be."""
    columns, rows, width, height = (min(max(0, number), 0xFFFF) for number in size)
    with contextlib.suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, width, height))
