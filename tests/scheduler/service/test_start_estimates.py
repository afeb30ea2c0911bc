"""What a waiting job is told about its start, how often that is estimated, and what it may cost."""

from __future__ import annotations

import pytest

from pai_scheduler.core.model import SubState
from pai_scheduler.core.queries import seconds_until, start_of_waiting
from pai_scheduler.core.state_machine import Core
from pai_scheduler.service import queues
from pai_scheduler.service.queues import FRESH_MS, KEPT_MS, SAVED_SECONDS, SHARE, StartEstimates
from tests.scheduler.core.world import World, make_node, make_role


class Reader:
    """Reads estimates of a world in which a job runs for 600 s at most; each takes `cost` seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cost: float = 0.0) -> None:
        self.world = World(make_node(gpus={"P100": 2}))
        self.world.started(
            *self.world.run(make_role(gpus=2), id="runs", extras={"maxRunSeconds": 600, "preemptible": False})
        )
        for name in ("first", "second"):
            self.world.submit(make_role(gpus=2), id=name, extras={"maxRunSeconds": 300})
        self.begin, self.seconds, self.made = self.world.now, 0.0, 0

        def estimate(core: Core, job_id: str, now: int) -> int | None:
            self.made += 1
            self.seconds += cost
            return start_of_waiting(core, job_id, now)

        monkeypatch.setattr(queues, "start_of_waiting", estimate)
        self.estimates = StartEstimates(lambda: self.world.core, self.now, lambda: self.seconds)

    def now(self) -> int:
        return self.begin + int(self.seconds * 1000)

    def read(self, job_id: str = "first") -> int | None:
        return self.estimates.starts_within(job_id)


def test_who_is_in_line_is_told_the_seconds_and_everybody_else_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = Reader(monkeypatch)
    assert [reader.read(name) for name in ("first", "second", "runs", "nobody")] == [600, 900, None, None]


def test_an_estimate_is_kept_for_a_moment_and_the_time_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(monkeypatch)
    assert reader.read() == 600
    reader.seconds += FRESH_MS / 1000 - 0.5
    assert (reader.read(), reader.made) == (599, 1)
    reader.seconds += 1
    assert (reader.read(), reader.made) == (598, 2)


def test_a_job_that_has_left_the_line_is_told_nothing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(monkeypatch)
    assert reader.read() == 600
    reader.world.stop("first")
    assert reader.read() is None
    assert reader.read("second") == 600


def test_all_estimates_together_take_a_small_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = 0.05
    reader = Reader(monkeypatch, cost)
    while reader.seconds < 100:
        reader.read("first")
        reader.read("second")
        reader.seconds += 0.01  # who reads asks a hundred times a second
    assert reader.made * cost <= SAVED_SECONDS + 100 * SHARE + cost


def test_where_there_is_no_time_for_another_what_was_found_before_is_told_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = Reader(monkeypatch, cost=60.0)
    assert reader.read() == 600  # it took a minute
    assert reader.read("second") is None
    reader.seconds += 10
    assert (reader.read(), reader.made) == (530, 1)
    reader.seconds += KEPT_MS / 1000
    assert (reader.read(), reader.made) == (None, 1)


def test_few_estimates_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "_MOST_KEPT", 1)
    reader = Reader(monkeypatch)
    assert reader.read("second") == 900
    reader.seconds += 3
    assert (reader.read(), reader.read("second"), reader.made) == (597, 897, 3)


def test_who_waits_for_another_try_is_told_when_that_begins_if_it_fits_now() -> None:
    world = World(make_node(gpus={"P100": 2}))
    world.submit(make_role(gpus=2), id="tries", retryCount=-1)
    while world.job("tries").sub_state is not SubState.RETRY_WAIT:
        (task,) = world.refs("tries")
        world.started(task)
        world.exited(task, 1)
    estimates = StartEstimates(lambda: world.core, lambda: world.now)
    due = world.job("tries").not_before
    assert due is not None
    assert estimates.starts_within("tries") == seconds_until(due, world.now)

    # whoever takes its GPUs meanwhile may keep them
    world.submit(make_role(gpus=2), id="other")
    estimates = StartEstimates(lambda: world.core, lambda: world.now)
    assert estimates.starts_within("tries") is None
