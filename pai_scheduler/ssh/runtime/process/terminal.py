"""Pseudo-terminals as an SSH client asks for them: size and modes (RFC 4254, section 8)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Mapping

#: number in the protocol: index of the control character
_CHARACTERS = {
    1: termios.VINTR,
    2: termios.VQUIT,
    3: termios.VERASE,
    4: termios.VKILL,
    5: termios.VEOF,
    6: termios.VEOL,
    7: termios.VEOL2,
    8: termios.VSTART,
    9: termios.VSTOP,
    10: termios.VSUSP,
    12: termios.VREPRINT,
    13: termios.VWERASE,
    14: termios.VLNEXT,
    18: termios.VDISCARD,
}
_INPUT, _OUTPUT, _CONTROL, _LOCAL = range(4)
#: number in the protocol: which word of the terminal's attributes, and the flags in it
_FLAGS = {
    30: (_INPUT, termios.IGNPAR),
    31: (_INPUT, termios.PARMRK),
    32: (_INPUT, termios.INPCK),
    33: (_INPUT, termios.ISTRIP),
    34: (_INPUT, termios.INLCR),
    35: (_INPUT, termios.IGNCR),
    36: (_INPUT, termios.ICRNL),
    38: (_INPUT, termios.IXON),
    39: (_INPUT, termios.IXANY),
    40: (_INPUT, termios.IXOFF),
    41: (_INPUT, termios.IMAXBEL),
    42: (_INPUT, 0x4000),  # IUTF8, which the standard library has no name for
    50: (_LOCAL, termios.ISIG),
    51: (_LOCAL, termios.ICANON),
    53: (_LOCAL, termios.ECHO),
    54: (_LOCAL, termios.ECHOE),
    55: (_LOCAL, termios.ECHOK),
    56: (_LOCAL, termios.ECHONL),
    57: (_LOCAL, termios.NOFLSH),
    58: (_LOCAL, termios.TOSTOP),
    59: (_LOCAL, termios.IEXTEN),
    60: (_LOCAL, termios.ECHOCTL),
    61: (_LOCAL, termios.ECHOKE),
    62: (_LOCAL, termios.PENDIN),
    70: (_OUTPUT, termios.OPOST),
    72: (_OUTPUT, termios.ONLCR),
    73: (_OUTPUT, termios.OCRNL),
    74: (_OUTPUT, termios.ONOCR),
    75: (_OUTPUT, termios.ONLRET),
    92: (_CONTROL, termios.PARENB),
    93: (_CONTROL, termios.PARODD),
}
#: what a client says of a control character that it has none for
_NO_CHARACTER = 255


def open_terminal(size: tuple[int, int, int, int], modes: Mapping[int, int]) -> tuple[int, int]:
    """Make a terminal; return the descriptors of our side of it and of the programs'."""
    ours, theirs = os.openpty()
    set_size(ours, size)
    attributes = termios.tcgetattr(theirs)
    characters = attributes[6]
    for number, value in modes.items():
        if number in _CHARACTERS:
            characters[_CHARACTERS[number]] = bytes([0 if value == _NO_CHARACTER else value & 0xFF])
        elif number in _FLAGS:
            word, flags = _FLAGS[number]
            attributes[word] = attributes[word] | flags if value else attributes[word] & ~flags
    with contextlib.suppress(termios.error):
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    return ours, theirs


def set_size(terminal: int, size: tuple[int, int, int, int]) -> None:
    """Set width and height in characters, then in pixels; nonsense is cut to what a terminal can be."""
    columns, rows, width, height = (min(max(0, number), 0xFFFF) for number in size)
    with contextlib.suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, width, height))
