"""How true an estimate was is what one gets by hand from what was told and what came."""

from __future__ import annotations

import pytest

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.core.state_machine import CoreSettings
from pai_scheduler.simulator.simulation import Accuracy, Replayed, document, replay
from tests.scheduler.making import make_node
from tests.scheduler.simulator.traces import fared, make_job


def waited(submitted: int, said: int | None, started: int | None) -> Replayed:
    """Make a job that was said to start then, and did; seconds."""
    return Replayed(
        make_job("j", submitted, 1),
        first_started=None if started is None else 1000 * started,
        asked=True,
        said=None if said is None else 1000 * said,
    )


def test_an_estimate_is_true_within_half_and_twice() -> None:
    found = Accuracy.of(
        [
            Replayed(make_job("at once", 0, 1), first_started=0),
            waited(0, None, 50),
            waited(100, 110, 105),
            waited(100, 110, 120),
            waited(100, 110, 104),
            waited(100, 110, 121),
            waited(100, 110, None),
        ]
    )
    assert (found.at_once, found.waited, found.told, found.untold) == (1, 6, 5, 1)
    assert (found.true, found.sooner, found.later) == (2, 1, 2)
    assert found.ratio == 2.0
    assert document(found)["withinFactor2"] == 2


def test_waits_of_less_than_a_second_are_as_true_as_can_be_said() -> None:
    instant = Replayed(make_job("j", 0, 1), first_started=100, asked=True, said=900)
    assert Accuracy.of([instant]).ratio == 1.0


def test_who_never_starts_makes_no_number_that_json_does_not_have() -> None:
    assert document(Accuracy.of([waited(0, 5, None)]))["medianRatio"] is None
    assert document(Accuracy.of([]))["medianRatio"] is None


@pytest.mark.parametrize(("most", "said"), [(100, 100_000), (300, 300_000), (None, None)])
def test_what_a_job_is_told_at_its_submission_rests_on_the_limits_of_what_runs(
    most: int | None, said: int | None
) -> None:
    jobs = [make_job("runs", 0, 100, 2, most=most), make_job("waits", 10, 5, 1)]
    nodes = [make_node("a", gpus={"t": 2})]
    result = replay(
        jobs, nodes, [VirtualCluster("default", 100.0)], CoreSettings(grace_seconds=0), estimate=True
    )
    runs, waits = fared(result)["runs"], fared(result)["waits"]
    assert not runs.asked
    assert (waits.asked, waits.said, waits.first_started) == (True, said, 100_000)
