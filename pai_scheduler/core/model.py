"""The model of a job: its state, its attempts, their tasks, and its events.

States and their meaning: job-contract.md, section 3. Times are ms since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pai_scheduler.cluster.resources import Assignment
from pai_scheduler.cluster.sort_key import SortKey
from pai_scheduler.i18n import Message
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.task import TaskRef

from .events import EndCause
from .states import FOLLOWS, STATE_IN, State, SubState

__all__ = ["ACCESS", "Attempt", "Job", "JobEvent", "RetryCounts", "State", "SubState", "Task", "Verdict"]


@dataclass(slots=True)
class Task:
    """One task of an attempt."""

    ref: TaskRef
    assignment: Assignment
    state: State = State.WAITING
    started: int | None = None
    ended: int | None = None
    exit_code: int | None = None
    address: str = ""
    container_id: str = ""
    #: The scheduler has asked for its end.
    killing: bool = False
    #: since when, and with which end of its command, a failed task of a debugged job keeps its container
    held: int | None = None
    held_cause: EndCause | None = None
    reason: Message | None = None

    @property
    def shown_container_id(self) -> str:
        """Return what it has as PAI_CONTAINER_ID; empty before it started. Docker takes it for its own id."""
        return self.ref.name if self.container_id else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of an attempt, and the exit that decided it."""

    state: State
    #: the real exit code of the user's command, or the platform's own
    exit_code: int
    #: the row of the exit table that decides about a retry
    exit_row: int
    trigger: tuple[str, int] | None
    reason: Message


@dataclass(slots=True)
class Attempt:
    """One try at running all tasks of a job."""

    number: int
    created: int
    #: when all tasks ran
    launched: int | None = None
    completed: int | None = None
    verdict: Verdict | None = None
    #: when its tasks that still run are killed, once they are being stopped
    ending_until: int | None = None
    tasks: dict[tuple[str, int], Task] = field(default_factory=dict)

    @property
    def state(self) -> State:
        """Return the attempt's state: how it came out only when all its tasks have ended."""
        if self.verdict is not None and self.completed is not None:
            return self.verdict.state
        return State.RUNNING if self.launched is not None else State.WAITING

    @property
    def is_released(self) -> bool:
        """Return whether nothing of it runs or may still be started."""
        return self.verdict is not None and all(task.state.ended for task in self.tasks.values())

    @property
    def running_sub_state(self) -> SubState:
        """Return what a job does whose tasks have all started."""
        held = any(task.held is not None and not task.state.ended for task in self.tasks.values())
        return SubState.DEBUG_HELD if held else SubState.RUNNING


class RetryCounts(msgspec.Struct, gc=False):
    """Numbers of attempts that were followed by a retry, by its cause."""

    user: int = 0
    platform: int = 0
    resource: int = 0
    #: attempts in a row that ended early: the base of the back-off
    streak: int = 0

    @property
    def total(self) -> int:
        """Return the number of retries."""
        return self.user + self.platform + self.resource


class Job(msgspec.Struct, eq=False, gc=False):
    """A job with its present attempt. Earlier attempts are in the store only.

    Nothing that it holds leads back to it, so that Python need not look for cycles among jobs, of which there
    may be a million.
    """

    id: str
    user: str
    spec: JobSpec
    created: int
    #: place among those of the same priority: submission order, kept over retries, unless somebody moved it
    order: int = 0
    #: 0–100, higher comes first; None: as the job says
    priority: int | None = None
    #: its key by the queue policy, where it has one; made when it is put in line, not stored
    policy_key: int | None = None
    #: how often a job behind it has started before it
    overtaken: int = 0
    #: what its earlier attempts had, where service decides who comes first: eighths of a GPU for one ms
    attained: int = 0
    #: as it waited for long it comes first until it has had so much
    uncounted: int = 0
    #: when the jobs that it waited for had ended as asked (ms); None: they have not, or there are none
    eligible: int | None = None
    state: State = State.WAITING
    sub_state: SubState = SubState.QUEUED
    completed: int | None = None
    attempt: Attempt | None = None
    retries: RetryCounts = msgspec.field(default_factory=RetryCounts)
    #: when the next attempt may begin
    not_before: int | None = None
    #: how the job comes out, known before its last tasks have ended
    verdict: Verdict | None = None
    #: why the attempt before the present one failed, and what its start is busy with; for people, not stored
    last_failure: Message | None = None
    progress: Message | None = None
    #: the latest time that is told of it: nothing is told with an earlier one
    latest: int = 0
    #: delete it once its tasks are gone
    doomed: bool = False

    def __eq__(self, other: object) -> bool:
        """Compare all but what is made anew at each start."""
        if not isinstance(other, Job):
            return NotImplemented
        fields = (name for name in self.__struct_fields__ if name not in ("policy_key", "latest"))
        return all(getattr(self, name) == getattr(other, name) for name in fields)

    @property
    def name(self) -> str:
        """Return the jobName."""
        return self.spec.name

    @property
    def eligible_since(self) -> int:
        """Return since when it could have resources (ms): its submission, or the ends that it waited for."""
        return self.created if self.eligible is None else self.eligible

    @property
    def is_decided(self) -> bool:
        """Return whether the job has ended, or is ending: no other attempt follows."""
        return self.verdict is not None

    def enter(self, sub_state: SubState) -> None:
        """Go on to another sub-state, and to the state that belongs to it; ValueError: it cannot follow."""
        if sub_state is not self.sub_state and sub_state not in FOLLOWS[self.sub_state]:
            raise ValueError(f"{self.id}: {sub_state} cannot follow {self.sub_state}")
        if sub_state is SubState.ENDED:
            if self.verdict is None:
                raise ValueError(f"{self.id}: it cannot end without a verdict")
            self.state = self.verdict.state
        else:
            self.state = STATE_IN.get(sub_state, self.state)
        self.sub_state = sub_state

    @property
    def ending_until(self) -> int | None:
        """Return when its tasks will have ended at the latest (ms); None: it is not ending."""
        if self.sub_state is not SubState.ENDING or self.attempt is None:
            return None
        return self.attempt.ending_until

    @property
    def present_priority(self) -> int:
        """Return its priority (0–100): what it was given, else what the job says."""
        return self.spec.priority if self.priority is None else self.priority

    @property
    def sort_key(self) -> SortKey:
        """Return what decides where it waits in its virtual cluster, but for the key of its user."""
        return SortKey.of(self.present_priority, self.policy_key, self.order)

    def latest_time(self) -> int:
        """Find the latest time in what is known of the job and its present attempt."""
        if self.attempt is None:
            return self.created
        times: list[int | None] = [self.created]
        if (attempt := self.attempt) is not None:
            times += [attempt.created, attempt.launched, attempt.completed]
            for task in attempt.tasks.values():
                times += [task.started, task.held, task.ended]
        return max(time for time in times if time is not None)

    def in_gang_order(self, attempt: Attempt) -> list[Task]:
        """List an attempt's tasks in the order of the job's gang: by role, then by index."""
        roles = self.spec.task_roles
        return [attempt.tasks[role.name, index] for role in roles for index in range(role.task_number)]

    def place_in_gang(self, ref: TaskRef) -> int:
        """Return a task's place in that order."""
        before = 0
        for role in self.spec.task_roles:
            if role.name == ref.role:
                break
            before += role.task_number
        return before + int(ref.index)


#: the type of a job event: who opened a way into a task, or closed it, perhaps after the job's end
ACCESS = "access"


class JobEvent(msgspec.Struct, frozen=True, gc=False):
    """Something that happened to a job, with its cause. `type` is a stable word, `message` is for people."""

    job_id: str
    time: int
    type: str
    message: Message
    attempt: int | None = None
    role: str | None = None
    index: int | None = None
    data: Mapping[str, Any] = {}
