"""What is learned is what jobs took that are alike, the closest first, and no more than is kept."""

from __future__ import annotations

import pytest

from pai_scheduler.core import runtime_prediction
from pai_scheduler.core.queries import start_of_waiting
from pai_scheduler.core.runtime_prediction import LEAST_JOBS, MOST_JOBS, Durations
from pai_scheduler.job.spec import JobSpec, TaskRole
from tests.scheduler.core.world import World
from tests.scheduler.making import make_node, make_role


def job(image: str = "torch", command: str = "train") -> JobSpec:
    return JobSpec("j", image, (TaskRole("main", command),))


@pytest.fixture
def known() -> Durations:
    return Durations()


def test_a_job_takes_the_mean_of_what_the_same_took_before(known: Durations) -> None:
    for ran in (10, 30, 80):
        known.learn("alice", job(), ran, None)
    assert known.likely("alice", job(), None) == 40


def test_a_few_are_not_enough(known: Durations) -> None:
    for _ in range(LEAST_JOBS - 1):
        known.learn("alice", job(), 10, None)
    assert known.likely("alice", job(), None) is None


def test_of_a_limit_the_part_counts_that_the_same_image_took_then_the_same_user(known: Durations) -> None:
    for _ in range(3):
        known.learn("alice", job("torch", "train"), 10, 100)
    for _ in range(4):
        known.learn("alice", job("tensorflow"), 50, 100)
    assert known.likely("alice", job("torch", "test"), 1000) == 100
    assert known.likely("alice", job("mpi"), 1000) == 500
    assert known.likely("bob", job(), 1000) is None


def test_without_a_limit_other_jobs_say_nothing(known: Durations) -> None:
    for _ in range(3):
        known.learn("alice", job(), 10, None)
    assert known.likely("alice", job("torch", "test"), None) is None


def test_of_one_that_runs_already_those_count_that_took_longer(known: Durations) -> None:
    for ran in (10, 30, 50, 70):
        known.learn("alice", job(), ran, None)
    assert known.likely("alice", job(), None, ran_ms=40) == 60
    assert known.likely("alice", job(), None, ran_ms=70) is None


def test_of_a_time_limit_the_usual_part_is_taken(known: Durations) -> None:
    for ran in (100, 100, 400):
        known.learn("alice", job(), ran, 400)
        known.learn("alice", job("other"), 100, None)
    assert known.likely("alice", job(), 1000) == 250
    # of what they took without a limit nothing is known about limits
    assert known.likely("alice", job("other"), 1000) == 250


def test_the_last_ones_count(known: Durations) -> None:
    for ran in (10, *[99] * MOST_JOBS):
        known.learn("alice", job(), ran, None)
    assert known.likely("alice", job(), None) == 99


def test_kinds_of_jobs_are_not_remembered_without_end(
    known: Durations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_prediction, "MOST_KINDS", 6)
    for user in ("alice", "bob", "carol"):
        for _ in range(3):
            known.learn(user, job(), 10, None)
    assert [known.likely(user, job(), None) for user in ("alice", "bob", "carol")] == [None, 10, 10]


def test_who_waits_behind_a_job_without_a_limit_is_told_when_such_jobs_ended_before() -> None:
    world = World(make_node(gpus={"t": 1}))
    for number in range(3):
        (task,) = world.run(make_role(gpus=1), id=f"past{number}")
        world.now += 100_000
        world.exited(task)
    world.run(make_role(gpus=1), id="runs")
    world.submit(make_role(gpus=1), id="waits")
    world.now += 30_000
    assert start_of_waiting(world.core, "waits", world.now) == world.now + 70_000
    # it has taken longer than any before: nobody knows
    world.now += 80_000
    assert start_of_waiting(world.core, "waits", world.now) is None
