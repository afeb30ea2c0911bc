"""Who holds what goes beyond a guarantee, found step by step as a count of all finds it."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_scheduler.cluster.allocations import Borrowing
from pai_scheduler.cluster.preemption import JobHolding
from pai_scheduler.cluster.resources import Amounts, Assignment, Demand
from tests.testbed.properties import examples

LIMITS = {"cpus": 100, "gpu:A100": 20}


def job(job_id: str, since: int, *amounts: Amounts, preemptible: bool = True) -> JobHolding:
    """Make a job that holds these amounts, one a task."""
    tasks = {place: (Demand(1, 1), Assignment("n"), each) for place, each in enumerate(amounts)}
    return JobHolding(job_id, "u", "v", preemptible, since, tasks=tasks)


def count_all(jobs: list[JobHolding], limits: Amounts) -> list[JobHolding]:
    """Find who borrows by counting everybody."""
    counted: Counter[str] = Counter()
    over = []
    for one in sorted(jobs, key=lambda one: (one.preemptible, one.since, one.job_id)):
        beyond = any(counted[key] + count > limits.get(key, 0) for key, count in one.amounts.items())
        if one.preemptible and beyond:
            over.append(one)
        else:
            counted.update(one.amounts)
    return over


def test_the_youngest_borrow_and_smaller_ones_behind_them_may_not() -> None:
    borrowing = Borrowing()
    old, large, small = (
        job("old", 1, {"cpus": 60}),
        job("large", 2, {"cpus": 60}),
        job("small", 3, {"cpus": 40}),
    )
    for one in (small, large, old):
        borrowing.add(one)
    assert borrowing.over("v", LIMITS) == [large]


def test_a_job_that_must_not_be_preempted_counts_before_older_ones() -> None:
    borrowing = Borrowing()
    old, firm = job("old", 1, {"cpus": 60}), job("firm", 2, {"cpus": 60}, preemptible=False)
    borrowing.add(old)
    borrowing.add(firm)
    assert borrowing.over("v", LIMITS) == [old]


def test_a_job_that_is_stopped_does_not_count() -> None:
    borrowing = Borrowing()
    old, young = job("old", 1, {"cpus": 60}), job("young", 2, {"cpus": 60})
    borrowing.add(old)
    borrowing.add(young)
    assert borrowing.over("v", LIMITS) == [young]
    old.ending = True
    borrowing.change(old)
    assert borrowing.over("v", LIMITS) == []


def test_what_a_guarantee_does_not_name_is_borrowed() -> None:
    borrowing = Borrowing()
    one = job("one", 1, {"gpu:gone": 1})
    borrowing.add(one)
    assert borrowing.over("v", LIMITS) == [one]


def test_nobody_borrows_in_a_virtual_cluster_that_holds_nothing() -> None:
    assert Borrowing().over("v", LIMITS) == []


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_few_changes_at_a_time_are_found_as_a_count_of_all_finds_them(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  (no secret)
    borrowing, jobs, limits = Borrowing(), list[JobHolding](), dict(LIMITS)
    most = chance.choice((1, 5, 40))
    scale = chance.choice((1, 10, 100))
    for step in range(500):
        if chance.random() < (0.7 if len(jobs) < 300 else 0.4) or not jobs:
            types = ("gpu:A100", "gpu:K80") if chance.random() < 0.1 else ("gpu:A100",)
            tasks = [
                {"cpus": chance.randint(0, most), chance.choice(types): chance.choice((0, 1, 2))}
                for _ in range(chance.choice((1, 1, 3)))
            ]
            since = step if chance.random() < 0.7 else chance.randint(0, step)
            one = job(f"j{step}", since, *tasks, preemptible=chance.random() < 0.95)
            jobs.append(one)
            borrowing.add(one)
        else:
            one = chance.choice(jobs)
            if chance.random() < 0.2:
                one.ending = True
            else:
                del one.tasks[max(one.tasks)]
            if one.ending or not one.tasks:
                jobs.remove(one)
            borrowing.change(one)
        if chance.random() < 0.02:
            limits = {"cpus": chance.randint(0, 100 * scale), "gpu:A100": chance.randint(0, 20 * scale)}
            borrowing.forget()
        if chance.random() < 0.5:
            assert borrowing.over("v", limits) == count_all(jobs, limits)


def test_who_has_left_or_holds_less_by_the_time_of_the_question_is_counted_so() -> None:
    borrowing = Borrowing()
    gone, less = job("gone", 1, {"cpus": 60}), job("less", 2, {"cpus": 60}, {"cpus": 40})
    borrowing.add(gone)
    borrowing.add(less)
    gone.tasks.clear()
    borrowing.change(gone)
    del less.tasks[1]
    borrowing.change(less)
    last = job("last", 3, {"cpus": 50})
    borrowing.add(last)
    assert borrowing.over("v", LIMITS) == [last]


@given(st.integers(0, 1 << 32))
@settings(max_examples=examples(30), deadline=None)
def test_what_is_found_out_on_the_way_is_what_is_found_when_somebody_asks(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  (no secret)
    on_the_way, asked = Borrowing(), Borrowing()
    jobs: list[JobHolding] = []
    for number in range(200):
        if jobs and chance.random() < 0.3:
            gone = jobs.pop(chance.randrange(len(jobs)))
            gone.tasks.clear()
            on_the_way.change(gone, LIMITS)
            asked.change(gone)
        else:
            jobs.append(job(f"j{number}", number // 2, {"cpus": chance.randint(1, 8)}))
            on_the_way.add(jobs[-1], LIMITS)
            asked.add(jobs[-1])
    assert on_the_way.over("v", LIMITS) == asked.over("v", LIMITS) == count_all(jobs, LIMITS)
