"""The states of a job, and which may follow which: job-contract.md, section 3."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """State of a job, an attempt or a task."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"

    @property
    def ended(self) -> bool:
        """Return whether this state is final: nothing runs, nothing is held, nothing more is told."""
        return self not in (State.WAITING, State.RUNNING)


class SubState(StrEnum):
    """Exact activity of a job within its state."""

    DEPENDENCY_WAIT = "DEPENDENCY_WAIT"  # waits for other jobs to end as it asks (extras.after)
    QUEUED = "QUEUED"  # waits for resources
    STARTING = "STARTING"  # has its resources; images are pulled, containers started
    RETRY_WAIT = "RETRY_WAIT"  # an attempt ended, the next one begins at `Job.not_before`
    RUNNING = "RUNNING"
    ENDING = "ENDING"  # the outcome is decided, the last tasks are being stopped
    DEBUG_HELD = "DEBUG_HELD"
    ENDED = "ENDED"


#: What may follow each sub-state: the documentation shows this table.
FOLLOWS: Mapping[SubState, tuple[SubState, ...]] = {
    SubState.DEPENDENCY_WAIT: (SubState.QUEUED, SubState.ENDED),
    SubState.QUEUED: (SubState.STARTING, SubState.ENDED),
    SubState.STARTING: (SubState.RUNNING, SubState.DEBUG_HELD, SubState.ENDING),
    SubState.RUNNING: (SubState.DEBUG_HELD, SubState.ENDING),
    SubState.DEBUG_HELD: (SubState.RUNNING, SubState.ENDING),
    SubState.ENDING: (SubState.RETRY_WAIT, SubState.QUEUED, SubState.ENDED),
    SubState.RETRY_WAIT: (SubState.QUEUED, SubState.ENDED),
    SubState.ENDED: (),
}

#: The state in which a job is while it does that. `ENDING` keeps the state; `ENDED` has the verdict's.
STATE_IN: Mapping[SubState, State] = {
    SubState.DEPENDENCY_WAIT: State.WAITING,
    SubState.QUEUED: State.WAITING,
    SubState.STARTING: State.WAITING,
    SubState.RETRY_WAIT: State.WAITING,
    SubState.RUNNING: State.RUNNING,
    SubState.DEBUG_HELD: State.RUNNING,
}
