"""The curve remembers what was used, who waited, and where free GPUs lay, while by while."""

from __future__ import annotations

from pai_scheduler.simulator.simulation import Curve, Span
from tests.scheduler.making import make_node
from tests.scheduler.simulator.traces import make_job, run, two_nodes


def test_each_while_has_what_was_so_in_it() -> None:
    # b waits for four GPUs as two are free on a machine without any other task
    result = run([make_job("a", 0, 10, 1), make_job("b", 4, 10, 2, tasks=2)])
    assert list(result.curve) == [
        Span(0, 4000, used=1, waiting=0, scattered=1, idle=False),
        Span(4000, 10_000, used=1, waiting=1, scattered=1, idle=False),
        Span(10_000, 20_000 - 6000 + 6000, used=4, waiting=0, scattered=0, idle=False),
    ]


def test_gpus_are_idle_where_as_many_are_free_as_a_waiting_job_asks_for() -> None:
    # two machines have one GPU free each, and a task wants two on one
    nodes = two_nodes()
    jobs = [make_job("x", 0, 10, 2), make_job("y", 0, 20, 1), make_job("z", 0, 20, 1), make_job("w", 0, 5, 2)]
    waited = [span for span in run(jobs, nodes).curve if span.waiting]
    assert waited == [Span(0, 10_000, used=4, waiting=1, scattered=0, idle=False)]
    alone = [make_node("a", gpus={"t": 2}), make_node("b", gpus={"t": 2})]
    jobs = [make_job("x", 0, 20, 1, cpus=5), make_job("y", 0, 10, 1, cpus=5), make_job("w", 5, 5, 2)]
    waited = [span for span in run(jobs, alone).curve if span.waiting]
    assert waited == [Span(5000, 10_000, used=2, waiting=1, scattered=2, idle=True)]


def test_a_curve_of_nothing_has_no_while() -> None:
    curve = Curve(two_nodes())
    curve.close()
    assert list(curve) == []
