"""Check of what must be true of a core between two events: `World` asks after each one.

After `Scheduler.validate_state` of Dask's distributed.
"""

from __future__ import annotations

from collections import Counter

from pai_scheduler.cluster.feasibility import Fits, obstacle
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.model import Job
from pai_scheduler.core.queries import waiting_reason
from pai_scheduler.core.state_machine import Core
from pai_scheduler.core.states import State, SubState
from pai_scheduler.core.timers import Timer


def validate(core: Core) -> None:
    """Raise AssertionError where a core contradicts itself. Takes time for each job; decides nothing."""
    with core.state.without_reservations():
        _validate_cluster(core)
    for job in core.jobs.values():
        _validate_place(core, job)
        _validate_attempt(core, job)
        if job.id in core.queue:
            assert obstacle(core.state, job.id).fits is not Fits.NOW, f"{job.id} waits, and would fit"
        reason = waiting_reason(core, job, core.state.now)
        waits = job.state is State.WAITING or job.sub_state is SubState.ENDING
        assert (reason is not None) == waits, f"{job.id} is {job.sub_state}, the reason: {reason}"
    queued = sum(job.sub_state is SubState.QUEUED for job in core.jobs.values())
    assert len(core.queue) == queued, f"{len(core.queue)} in the queue, {queued} queued"
    assert core.timers.all(Timer.RETRY).keys() <= core.jobs.keys(), "a job that is gone awaits its retry"
    assert core.state.holdings.keys() <= core.jobs.keys(), "a job that is gone holds something"


def _validate_cluster(core: Core) -> None:
    """What is free is what the tasks leave."""
    fresh = Cluster(core.cluster.nodes, shares_host_ports=core.cluster.shares_host_ports)
    gpus, ports = Counter[tuple[str, int]](), Counter[int]()
    for job in core.jobs.values():
        for task in job.attempt.tasks.values() if job.attempt else ():
            if not task.state.ended:
                place = task.assignment
                fresh.occupy(core.demand(job, task), place)
                gpus.update((place.node, index) for index in place.gpus)
                ports.update(port for label in place.ports.values() for port in label)
    for name, use in core.cluster.uses.items():
        again = fresh.uses[name]
        free, expected = ((one.cpus, one.memory_mb, one.storage_gb) for one in (use, again))
        assert free == expected, f"{name}: {free} is free, not {expected}"
        assert min(free) >= 0, f"{name}: more is given than there is: {free}"
        assert (use.gpus, use.ports) == (again.gpus, again.ports), f"{name}: other GPUs or ports are free"
    assert set(gpus.values()) <= {1}, "a GPU is given twice"
    if core.cluster.shares_host_ports:
        assert set(ports.values()) <= {1}, "a port is given twice"


def _validate_place(core: Core, job: Job) -> None:
    """Each job waits, holds something, or sleeps, as its state says."""
    holds = job.attempt is not None and any(not task.state.ended for task in job.attempt.tasks.values())
    places = [job.id in core.queue, job.id in core.timers.all(Timer.RETRY), holds]
    if job.sub_state is SubState.DEPENDENCY_WAIT:
        missing = [one for one in core.dependencies.of(job.id) if not one.holds]
        assert not any(places), f"{job.id} waits for jobs, and {places}"
        assert missing, f"{job.id} waits for no job"
        assert all(one.job_id in core.jobs for one in missing), f"{job.id} waits for what has ended"
        return
    assert not core.dependencies.of(job.id), f"{job.id} waits for jobs no more"
    expected = {SubState.QUEUED: 0, SubState.RETRY_WAIT: 1}.get(job.sub_state, 2)
    assert [place for place, there in enumerate(places) if there] == [expected], (job, places)
    sleeps = job.sub_state in (SubState.RETRY_WAIT, SubState.ENDING)
    assert (job.not_before is not None) <= sleeps, f"{job.id} is {job.sub_state}, not before {job.not_before}"


def _validate_attempt(core: Core, job: Job) -> None:
    """A gang is whole, and what the dispatcher knows of it is what its tasks say."""
    held = core.state.holdings.get(job.id)
    if job.attempt is None:
        assert held is None, f"{job.id} has no attempt, and holds something"
        return
    tasks = job.attempt.tasks
    keys = [(role.name, index) for role in job.spec.task_roles for index in range(role.task_number)]
    assert tasks.keys() == set(keys), f"{job.id} lacks tasks"
    live = {place for place, key in enumerate(keys) if not tasks[key].state.ended}
    assert (set(held.tasks) if held is not None else set()) == live, f"{job.id}: tasks hold, others live"
    if held is not None:
        assert held.ending == (job.attempt.verdict is not None), f"{job.id} is ending, or is it not"
    if job.state is State.RUNNING:
        assert all(task.started is not None for task in tasks.values()), f"{job.id} runs in part"
        if job.sub_state is not SubState.ENDING:
            failed = any(task.held and not task.state.ended for task in tasks.values())
            assert (job.sub_state is SubState.DEBUG_HELD) == failed, f"{job.id} is held, or is it not"
