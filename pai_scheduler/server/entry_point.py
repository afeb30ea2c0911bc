"""The command `pai-scheduler`: the scheduler, or what to install where its libraries are missing."""

from __future__ import annotations

import sys

from pai_scheduler.i18n import msg

CANNOT_START = 2


def main() -> int:
    """Run the scheduler; return the exit code."""
    try:
        from .main import main as run
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library.startswith("pai_"):
            raise
        missing = msg(
            "It needs the library {library}, which is not installed. Install what the scheduler needs: "
            "pip install '{package}'",
            library=library,
            package="pai-for-jupyter[scheduler]",
        )
        print(f"pai-scheduler: {missing}", file=sys.stderr)
        return CANNOT_START
    return run()
