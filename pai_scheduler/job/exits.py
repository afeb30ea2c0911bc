"""What an exit code means: the table of OpenPAI v0.14, and which of its rows decides for a user's command."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources


class Behavior(StrEnum):
    """Whether an attempt that ended so is tried again (job-contract.md, section 3)."""

    TRANSIENT_NORMAL = "TRANSIENT_NORMAL"  # again at once, not counted
    TRANSIENT_CONFLICT = "TRANSIENT_CONFLICT"  # again after a random back-off, not counted
    NON_TRANSIENT = "NON_TRANSIENT"  # never
    UNKNOWN = "UNKNOWN"  # until `retryCount` is used up


@dataclass(frozen=True, slots=True)
class ExitRow:
    """A row of the exit table; who noticed (`issuer`), who is to blame (`causer`), and what follows."""

    code: int
    phrase: str
    issuer: str
    causer: str
    type: str
    stage: str
    behavior: Behavior
    reaction: str


SUCCEEDED = 0
CONTAINER_START_FAILED = 193
OUT_OF_MEMORY = 196
OUT_OF_DISK = 198
#: Row of an ordinary failure of the user's command.
USER_COMMAND_FAILED = 255
NODE_LOST = -7111
PREEMPTED = -7120
STOPPED_BY_USER = -7351
DEPENDENCY_NEVER_SATISFIED = -7360
STOPPED_ON_COMPLETION = -7400
#: Row of a user's command whose exit code is negative.
USER_COMMAND_FAILED_NEGATIVE = -8000

#: Signals (128 + n) that decide by themselves; every other row is a finding of the platform's own.
_SIGNALS = frozenset({130, 132, 134, 135, 136, 137, 139, 141, 143})


@cache
def exit_table() -> Mapping[int, ExitRow]:
    """Return the whole table by code; read once."""
    text = (resources.files(__package__) / "exit-spec.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    specs = (ExitRow(int(row.pop("code")), behavior=Behavior(row.pop("behavior")), **row) for row in rows)
    return {spec.code: spec for spec in specs}


def exit_spec(code: int) -> ExitRow:
    """Return the row of a code that the platform itself found; KeyError where the table has none."""
    return exit_table()[code]


def spec_of_user_exit(code: int, oom: bool = False) -> ExitRow:
    """Return the row that decides for a user's command that ended with `code` (128 + n for signal n).

    `oom`: the kernel ended it for its memory limit. A command that itself exits with the number of a
    finding of the platform (154, 193, 196, 198, 255, 256, or a negative one) failed like any other.
    """
    if oom:
        return exit_spec(OUT_OF_MEMORY)
    if code < 0:
        return exit_spec(USER_COMMAND_FAILED_NEGATIVE)
    if code == SUCCEEDED or code in _SIGNALS:
        return exit_spec(code)
    return exit_spec(USER_COMMAND_FAILED)
