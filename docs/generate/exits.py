"""The exit table with its meanings, and the numbers of the retry rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pai_scheduler.core import completion
from pai_scheduler.core.model import State, SubState
from pai_scheduler.core.state_machine import CoreSettings
from pai_scheduler.core.states import FOLLOWS
from pai_scheduler.job import exit_codes as table
from pai_scheduler.job.exit_codes import meaning, what_follows


@dataclass(frozen=True)
class Row:
    """A row of the exit table as the page shows it."""

    code: int
    phrase: str
    type: str
    behavior: str
    meaning: str
    follows: str


def facts(locale: str) -> Mapping[str, Any]:
    """Return what the page about states and exit codes says in facts."""
    rows = [_row(spec, locale) for spec in table.exit_table().values()]
    ours = _rows_that_can_happen()
    return {
        "states": list(State),
        "sub_states": list(SubState),
        "follows": FOLLOWS,
        "here": sorted(
            (row for row in rows if row.code in ours), key=lambda row: (row.code < 0, abs(row.code))
        ),
        "elsewhere": [row for row in rows if row.code not in ours],
        "at_once": completion.AT_ONCE,
        "first_delay": _seconds(completion.FIRST_DELAY_MS),
        "longest_delay": _seconds(completion.LONGEST_DELAY_MS),
        "long_run": _seconds(completion.LONG_RUN_MS),
        "conflict_delay": [_seconds(delay) for delay in completion.CONFLICT_DELAY_MS],
        "grace_seconds": CoreSettings().grace_seconds,
        "max_grace_seconds": CoreSettings().max_grace_seconds,
        "hold_days": CoreSettings().debug_hold_seconds // 86400,
        "own_signals": _codes(table.Behavior.NON_TRANSIENT),
        "foreign_signals": _codes(table.Behavior.TRANSIENT_NORMAL),
    }


def _row(spec: table.ExitRow, locale: str) -> Row:
    follows = "" if spec.code == table.SUCCEEDED else what_follows(spec.code).in_locale(locale)
    return Row(
        spec.code,
        spec.phrase,
        spec.type,
        spec.behavior.value,
        meaning(spec.code).in_locale(locale),
        follows,
    )


def _rows_that_can_happen() -> set[int]:
    """Return the rows that this scheduler uses: those of a command's own exit, and its own findings."""
    own = {table.spec_of_user_exit(code).code for code in range(-1, 256)}
    named = {value for module in (completion, table) for value in vars(module).values() if type(value) is int}
    return (own | named) & table.exit_table().keys()


def _codes(behavior: table.Behavior) -> list[int]:
    """Return the exits of a command that this behaviour follows."""
    return [code for code in range(256) if table.spec_of_user_exit(code).behavior is behavior]


def _seconds(milliseconds: int) -> int:
    return milliseconds // 1000
