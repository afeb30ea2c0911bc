"""Hands bytes on between an SSH channel and a program, as fast as the slower of the two takes them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import termios

import asyncssh

from .child import StartedProgram, signal_group
from .terminal import set_size

_CHUNK = 32 * 1024
#: Most that is still read of a terminal whose shell has ended, when something else goes on writing to it.
_LAST_WORDS = 256 * 1024
#: The protocol's signals; another has a name of OpenSSH's making.
_SIGNALS = (
    "ABRT",
    "ALRM",
    "FPE",
    "HUP",
    "ILL",
    "INT",
    "KILL",
    "PIPE",
    "QUIT",
    "SEGV",
    "TERM",
    "USR1",
    "USR2",
)


class Relay:
    """A program and its channel, which is told how the program ended. `terminal`: it has one, not pipes."""

    def __init__(
        self, channel: asyncssh.SSHServerChannel[bytes], started: StartedProgram, *, terminal: bool
    ) -> None:
        self._channel, self._process, self._terminal = channel, started.process, terminal
        self._loop = asyncio.get_running_loop()
        self._stdin: int | None = started.stdin
        #: those that are not at their end: True where errors are read
        self._outputs = dict(started.outputs)
        self._waiting = bytearray()
        self._input_ends = False
        self._over = False
        for descriptor in {started.stdin, *started.outputs}:
            os.set_blocking(descriptor, False)
        self.resume()

    # from the client to the program

    def feed(self, data: bytes) -> None:
        """Hand input on; while the program does not read, the client may send no more than a window."""
        if self._stdin is None:
            return
        self._waiting += data
        if len(self._waiting) == len(data):
            self._write(self._stdin)

    def end_input(self) -> None:
        """Close the program's input once it has read what there is; a terminal has no end."""
        self._input_ends = True
        if not self._waiting:
            self._close_input()

    def _write(self, stdin: int) -> None:
        try:
            while self._waiting:
                del self._waiting[: os.write(stdin, self._waiting[:_CHUNK])]
        except BlockingIOError:
            self._loop.add_writer(stdin, self._write, stdin)
            self._channel.pause_reading()
            return
        except OSError:  # nobody reads it any more
            self._waiting.clear()
            self._input_ends = True
        self._loop.remove_writer(stdin)
        # which may bring more at once, and the end of it
        self._channel.resume_reading()
        if self._input_ends and not self._waiting:
            self._close_input()

    def _close_input(self) -> None:
        if self._stdin is not None and not self._terminal:
            self._loop.remove_writer(self._stdin)
            os.close(self._stdin)
            self._stdin = None

    def resize(self, size: tuple[int, int, int, int]) -> None:
        """Resize the terminal, which signals its programs."""
        if self._terminal and self._stdin is not None:
            set_size(self._stdin, size)

    def signal(self, name: str) -> None:
        """Send a signal to the program and its group; one that there is not is left out."""
        found = getattr(signal, f"SIG{name}", None) if name.isalnum() else None
        if isinstance(found, signal.Signals):
            signal_group(self._process, found)

    def send_break(self) -> bool:
        """Send a break, which only a terminal knows."""
        if not self._terminal or self._stdin is None:
            return False
        with contextlib.suppress(termios.error):
            termios.tcsendbreak(self._stdin, 0)
        return True

    # from the program to the client

    def pause(self) -> None:
        """Stop reading the program's output: the client does not take it."""
        for descriptor in self._outputs:
            self._loop.remove_reader(descriptor)

    def resume(self) -> None:
        """Read the program's output again."""
        for descriptor in self._outputs:
            self._loop.add_reader(descriptor, self._read, descriptor)

    def _read(self, descriptor: int) -> int:
        """Pass one piece of output on; return its length, 0 where there is none now or any more."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:  # a terminal that nobody has open any more
            data = b""
        if data:
            (self._channel.write_stderr if self._outputs[descriptor] else self._channel.write)(data)
        else:
            self._at_end(descriptor)
        return len(data)

    def _at_end(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        del self._outputs[descriptor]
        if not self._terminal:
            os.close(descriptor)
        if self._outputs:
            return
        if self._process.returncode is not None:
            self._tell_end(self._process.returncode)
        elif not self._terminal:
            self._channel.write_eof()

    # ends

    def ended(self) -> None:
        """Return how the program ended, after all that it wrote.

        Of pipes the end is waited for, as OpenSSH does: who still has them may write. A terminal is not: a
        shell leaves programs behind that keep it open.
        """
        read = 0
        for descriptor in list(self._outputs if self._terminal else ()):
            while descriptor in self._outputs and read < _LAST_WORDS and (size := self._read(descriptor)):
                read += size
        if self._terminal or not self._outputs:
            self._tell_end(self._process.returncode)

    def _tell_end(self, status: int) -> None:
        if self._over:
            return
        self._over = True
        if status < 0:
            self._channel.exit_with_signal(_signal_name(-status))
        else:
            self._channel.exit(status)

    def hang_up(self) -> None:
        """Hang up: the program and its group get the signal that a closed terminal sends."""
        self._over = True
        signal_group(self._process, signal.SIGHUP)
        # one that is stopped hears it only when it goes on
        signal_group(self._process, signal.SIGCONT)
        for descriptor in {*self._outputs, *([] if self._stdin is None else [self._stdin])}:
            self._loop.remove_reader(descriptor)
            self._loop.remove_writer(descriptor)
            os.close(descriptor)
        self._outputs, self._stdin = {}, None


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name.removeprefix("SIG")
    except ValueError:  # a real-time signal between those with names
        name = f"RTMIN+{number - signal.SIGRTMIN}"
    return name if name in _SIGNALS else f"{name}@openssh.com"
