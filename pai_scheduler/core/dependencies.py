"""Dependencies between jobs (`extras.after`), and whether they are satisfied: job-contract.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.dependencies import On

from .states import State

_STATES = {On.SUCCEEDED: State.SUCCEEDED, On.FAILED: State.FAILED}
#: So many jobs are named in a sentence.
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Dependency:
    """One job that another waits for, bound when that one was submitted: a later job of its name is another.

    `holds`: whether it has ended as `on` asks; None: it has not ended.
    """

    job_id: str
    name: str
    on: On
    holds: bool | None = None

    def after(self, state: State | None) -> Dependency:
        """Return it once the job has ended in `state`; None: the job was deleted."""
        holds = state is not None and (self.on is On.ENDED or state is _STATES[self.on])
        return replace(self, holds=holds)


class Dependencies:
    """The dependencies of jobs that wait for others, and who waits for a job; each found in constant time."""

    def __init__(self) -> None:
        #: by waiting job: its dependencies, and how many of them have not come yet
        self._waiting: dict[str, tuple[list[Dependency], int]] = {}
        #: by job: who waits for it, and with which entry
        self._waiters: dict[str, dict[tuple[str, int], None]] = {}

    def add(self, job_id: str, dependencies: Sequence[Dependency]) -> None:
        """Let a job wait until all of these hold; none of them has failed to."""
        missing = 0
        for place, dependency in enumerate(dependencies):
            if dependency.holds is None:
                missing += 1
                self._waiters.setdefault(dependency.job_id, {})[job_id, place] = None
        self._waiting[job_id] = list(dependencies), missing

    def drop(self, job_id: str) -> None:
        """Let a job wait for others no more, if it does."""
        dependencies, _ = self._waiting.pop(job_id, ((), 0))
        for place, dependency in enumerate(dependencies):
            if dependency.holds is None:
                self._forget((job_id, place), dependency)

    def of(self, job_id: str) -> Sequence[Dependency]:
        """Return what a job waits for, or has waited for while another dependency is missing."""
        return self._waiting.get(job_id, ((), 0))[0]

    def waiters(self, job_id: str) -> Sequence[tuple[str, int]]:
        """Return who waits for a job, first come first, and with which entry of their own."""
        return tuple(self._waiters.get(job_id, ()))

    def settle(self, waiter: tuple[str, int], state: State) -> Dependency:
        """Take in that the job of a waiter's entry has ended; return the dependency as it is now."""
        job_id, place = waiter
        dependencies, missing = self._waiting[job_id]
        dependency = dependencies[place] = dependencies[place].after(state)
        self._waiting[job_id] = dependencies, missing - 1
        self._forget(waiter, dependency)
        return dependency

    def is_satisfied(self, job_id: str) -> bool:
        """Return whether nothing is missing any more of what a job waits for."""
        return self._waiting[job_id][1] == 0

    def _forget(self, waiter: tuple[str, int], dependency: Dependency) -> None:
        waiters = self._waiters[dependency.job_id]
        del waiters[waiter]
        if not waiters:
            del self._waiters[dependency.job_id]


def waits_for(dependencies: Sequence[Dependency]) -> Message:
    """Return the reason for which a job waits with these, of which one or more have not come yet."""
    missing = [dependency for dependency in dependencies if dependency.holds is None]
    if len(missing) == 1:
        name, on = missing[0].name, missing[0].on
        if on is On.ENDED:
            return msg("Waiting for job {job} to end.", job=name)
        if on is On.SUCCEEDED:
            return msg("Waiting for job {job} to succeed.", job=name)
        return msg("Waiting for job {job} to fail.", job=name)
    named = [f"{one.name} ({one.on})" for one in missing[:_NAMED]]
    return msg(
        "Waiting for {count} jobs: {jobs}.",
        count=len(missing),
        jobs=", ".join([*named, "…"] if len(missing) > _NAMED else named),
    )


def never_satisfied(dependency: Dependency, state: State | None) -> Message:
    """Return why a job that waits with this one can never start; `state` None: the other job was deleted."""
    name = dependency.name
    if state is None:
        return msg("Job {job} was deleted, and this one waited for its end.", job=name)
    if dependency.on is On.SUCCEEDED:
        return msg("Job {job} is {state}, and this one waited for it to succeed.", job=name, state=state)
    return msg("Job {job} is {state}, and this one waited for it to fail.", job=name, state=state)
