"""`%pai jobs`: the command `pai` in a cell, with its words and its tables."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout

from pai_scheduler.client.blocking import Conversation
from pai_scheduler.client.cli.main import run_command
from pai_scheduler.client.cli.parser import make_parser

from ..messages import msg
from .command_error import CommandError, parse

#: These need a terminal, or go on until somebody ends them.
_FOR_TERMINALS = frozenset({"ssh", "exec", "port-forward"})

#: A piece of output, and whether it belongs to the standard error.
Piece = tuple[str, bool]


def run_line(line: str, locale: str) -> None:
    """Run the command; its output appears as it comes. CommandError where it has failed."""
    __tracebackhide__ = True
    options = parse(make_parser(locale), line if line.strip() else "--help", locale)
    if options is None:
        return
    if options.command in _FOR_TERMINALS:
        words = msg("Run pai {command} in a terminal: File, New, Terminal.", command=options.command)
        raise CommandError(words.in_locale(locale))

    async def work(tell: Callable[[Piece], None]) -> int:
        with (
            redirect_stdout(_Told(lambda text: tell((text, False)))),
            redirect_stderr(_Told(lambda text: tell((text, True)))),
        ):
            return await run_command(locale, **vars(options))

    out, err = sys.stdout, sys.stderr

    def hear(piece: Piece) -> None:
        text, wrong = piece
        stream = err if wrong else out
        stream.write(text)
        stream.flush()

    talk = Conversation(work)
    try:
        code = talk.listen(hear)
    except KeyboardInterrupt:
        talk.cancel()
        words = msg("Interrupted. What runs in the cluster runs on.")
        raise CommandError(words.in_locale(locale)) from None
    if code:
        raise CommandError(
            msg("pai {command}: exit code {code}", command=options.command, code=code).in_locale(locale)
        )


class _Told(io.TextIOBase):
    """Takes what is printed, as text or as bytes, and tells it."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.buffer = _ToldBytes(tell)

    def write(self, text: str) -> int:
        self._tell(text)
        return len(text)


class _ToldBytes(io.RawIOBase):
    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._tell(self._decoder.decode(bytes(data)))
        return len(data)
