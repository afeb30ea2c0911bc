"""Exit codes: the table of OpenPAI v0.14, and each row in words a person can act on."""

from __future__ import annotations

import csv
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

from pai_scheduler.i18n import Message, msg

# What an exit code means: the table of OpenPAI v0.14, and which of its rows decides for a user's command.


class Behavior(StrEnum):
    """Retry behavior for an exit code (job-contract.md, section 3)."""

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


# What each row of the exit table means, in words a person can act on.
#
# The rows that can happen here say what to do. The others are findings of YARN and of OpenPAI's launcher;
# they are in the table because clients know them.

#: What a shell says of a command that it cannot run, and one that it cannot find.
_CANNOT_RUN, _NOT_FOUND = 126, 127
#: A shell adds this to the number of the signal that ended a command.
_SIGNAL_BASE = 128

#: What ends tasks in OpenPAI; here the kernel or the scheduler does, whichever the engine.
_PARTS_OF_OPENPAI = re.compile("_BY_(DOCKER|DISKCLEANER)$")

_LOST_TOUCH = msg("OpenPAI's launcher lost touch with YARN.")
_NEVER_STARTED = msg("YARN did not start the container.")
_NO_RESOURCES = msg("YARN did not give the resources in time.")
_REFUSED_BY_YARN = msg("YARN refused the job.")
_KILLED_BY_YARN = msg("YARN or OpenPAI's launcher ended the container.")
_MEMORY_BY_YARN = msg("YARN ended the container for the memory it used.")
_UNKNOWN_TO_LAUNCHER = msg("OpenPAI's launcher failed for a cause that it did not know.")
_HOW_IT_ENDED_IS_LOST = msg("YARN lost what the job had left to say.")

#: What happened, by the code of the table's row.
_MEANINGS: Mapping[int, Message] = {
    0: msg("It succeeded."),
    130: msg("It was ended by SIGINT, which neither you nor the scheduler asked for."),
    132: msg(
        "It used an instruction that this processor does not have (SIGILL): it was built for another one."
    ),
    134: msg("It gave up by itself (SIGABRT): the end of its log says why."),
    135: msg(
        "It touched memory that is not there (SIGBUS): often /dev/shm is full, which a larger shmMB mends."
    ),
    136: msg("It made an arithmetic error, such as a division by zero (SIGFPE)."),
    137: msg("It was killed (SIGKILL), by something other than the scheduler and not for its memory."),
    139: msg(
        "It touched memory that is not its own (SIGSEGV): a fault of the program or one of its libraries."
    ),
    141: msg("It wrote to a pipe or connection whose other end was closed (SIGPIPE)."),
    143: msg("It was ended by SIGTERM, which neither you nor the scheduler asked for."),
    154: msg("How it ended is not known: what watched over it was ended, or the machine was."),
    193: msg("It could not be started: the sentence beside it says why."),
    196: msg("It used more memory than it asked for: ask for more (memoryMB), or use less."),
    198: msg(
        "It wrote more to its disk than it asked for, or was what filled the machine's disk: raise "
        "storageGB, or write less."
    ),
    USER_COMMAND_FAILED: msg("Its command failed: the end of its log says why."),
    256: msg("What runs tasks in OpenPAI failed itself."),
    -7100: _NEVER_STARTED,
    -7101: _NEVER_STARTED,
    -7102: msg("The machine's disks failed."),
    -7103: msg(
        "One of its ports was taken by another program. Where the job names it, give another beginAt, or 0; "
        "one that was chosen is another one at the next try."
    ),
    -7110: _KILLED_BY_YARN,
    -7111: msg("The machine it ran on was lost."),
    -7112: _NO_RESOURCES,
    -7113: _NO_RESOURCES,
    -7120: msg(
        "It was stopped because a job that comes first needed its resources: one within its own guaranteed "
        "share, or one of the same virtual cluster that has had, or needs, less."
    ),
    -7121: _MEMORY_BY_YARN,
    -7122: _MEMORY_BY_YARN,
    -7123: _KILLED_BY_YARN,
    -7124: _KILLED_BY_YARN,
    -7125: _KILLED_BY_YARN,
    -7126: _KILLED_BY_YARN,
    -7150: _NEVER_STARTED,
    -7151: _LOST_TOUCH,
    -7152: _LOST_TOUCH,
    -7153: msg("Somebody asked OpenPAI to move it elsewhere."),
    -7154: _LOST_TOUCH,
    -7200: _REFUSED_BY_YARN,
    -7201: _LOST_TOUCH,
    -7202: _LOST_TOUCH,
    -7203: _LOST_TOUCH,
    -7250: _UNKNOWN_TO_LAUNCHER,
    -7251: _REFUSED_BY_YARN,
    -7252: _NO_RESOURCES,
    -7300: msg(
        "It cannot run as it is written, for example because its image does not exist: change the job."
    ),
    -7301: _LOST_TOUCH,
    -7302: _UNKNOWN_TO_LAUNCHER,
    -7303: _KILLED_BY_YARN,
    -7350: _LOST_TOUCH,
    -7351: msg("A user stopped the job, or it ran for as long as its time limit allows."),
    -7352: _HOW_IT_ENDED_IS_LOST,
    -7353: _HOW_IT_ENDED_IS_LOST,
    -7360: msg(
        "It never started: a job that it waits for (extras.after) did not end as asked, or was deleted. "
        "Submit it again once that job has."
    ),
    -7400: msg("It was stopped because the job was decided without it."),
    -8000: msg("Its command failed with a negative number: the end of its log says why."),
}

#: What follows, by the behaviour of the row.
_NEXT: Mapping[Behavior, Message] = {
    Behavior.TRANSIENT_NORMAL: msg("It is tried again, and that is not counted."),
    Behavior.TRANSIENT_CONFLICT: msg("It is tried again after a pause, and that is not counted."),
    Behavior.NON_TRANSIENT: msg("It is not tried again."),
    Behavior.UNKNOWN: msg("It is tried again until retryCount is used up."),
}


def meaning(row: int) -> Message:
    """Return what a row of the exit table means; KeyError where there is none."""
    return _MEANINGS[row]


def what_follows(row: int) -> Message:
    """Return what the scheduler does after an end of this kind; KeyError where the table has no such row."""
    return _NEXT[exit_spec(row).behavior]


def meaning_of_exit(row: int, code: int) -> Message:
    """Return what an end means that this row decides, where the command itself ended with `code`."""
    if row == USER_COMMAND_FAILED:
        if code == _CANNOT_RUN:
            return msg(
                "A command was found but cannot be run: is it executable, and built for this kind of machine?"
            )
        if code == _NOT_FOUND:
            return msg(
                "A command was not found: is it spelled right, and is it in the image? The log names it."
            )
        if name := _signal_name(code - _SIGNAL_BASE):
            return msg("Its command was ended by the signal {signal}.", signal=name)
    return meaning(row)


def shown_name(phrase: str) -> str:
    """Return the table's word for an end without the part of OpenPAI that did it: here that is another."""
    return _PARTS_OF_OPENPAI.sub("", phrase)


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
