"""What ends a cell whose magic did not do what was wanted: a line, without a traceback of ours."""

from __future__ import annotations

import argparse
import io
import shlex
from contextlib import redirect_stderr, redirect_stdout

from ..messages import msg


class CommandError(Exception):
    """A magic did not do what was wanted; the sentence says why."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this: where in our code it was raised helps nobody
        return [str(self)]


def parse(parser: argparse.ArgumentParser, line: str, locale: str) -> argparse.Namespace | None:
    """Take a magic's line apart; None: it asked for help, which is printed. CommandError if it is wrong."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise CommandError(
            msg("The line cannot be read: {reason}.", reason=error).in_locale(locale)
        ) from None
    said = io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            return parser.parse_args(words)
    except SystemExit as leaving:
        if leaving.code:
            raise CommandError(said.getvalue().rstrip()) from None
    print(said.getvalue(), end="")
    return None
