"""The launcher (`distributed/launch.py`) for tasks whose command names it: it is in no image."""

from __future__ import annotations

from functools import cache
from importlib import resources

#: What a command names it by: the variable with its path.
VARIABLE = "PAI_LAUNCH"
LAUNCHER = "launch.py"


def launcher_files(command: str) -> dict[str, bytes]:
    """Return the files that a command needs to start a program in several tasks; most need none."""
    return {LAUNCHER: _source()} if VARIABLE in command else {}


@cache
def _source() -> bytes:
    return resources.files("pai_scheduler.distributed").joinpath(LAUNCHER).read_bytes()
