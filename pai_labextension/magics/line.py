"""The magic `%pai`: a command of `pai` in a notebook."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class

from pai_scheduler.client.blocking import Conversation
from pai_scheduler.client.calls.function import use_locale_of
from pai_scheduler.client.cli.parser import make_parser
from pai_scheduler.client.cli.program import run_command

from ..locales import default_locale
from ..messages import msg
from .cell import CommandError, parse, run_cell

# `%pai jobs`: the command `pai` in a cell, with its words and its tables.

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


# The magic itself: which of the two it is, and how what goes wrong is shown.


@magics_class
class PAIMagics(Magics):
    """`%pai COMMAND …` runs the command `pai`; a cell that begins with `%%pai` runs as a job."""

    @line_cell_magic
    def pai(self, line: str, cell: str | None = None) -> None:
        """Run the command `pai`, or the cell as a job. `%pai --help` and `%%pai --help` say more."""
        __tracebackhide__ = True
        locale = default_locale()
        if cell is None:
            run_line(line, locale)
            return
        shell: Any = self.shell
        shell.push(run_cell(line, cell, shell.user_ns, locale))


def register(shell: InteractiveShell) -> None:
    """Make the magics known to IPython."""
    shell.register_magics(PAIMagics(shell))
    # remote functions then speak the language that was chosen in JupyterLab, too
    use_locale_of(default_locale)
