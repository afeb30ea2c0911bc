"""Before maintenance only such jobs start on a node as will have ended by then."""

from __future__ import annotations

from dataclasses import replace

from pai_scheduler.cluster.feasibility import feasibility
from pai_scheduler.cluster.node import Barring, Maintenance, Node, in_words
from pai_scheduler.cluster.resources import Demand
from pai_scheduler.cluster.sort_key import SortKey
from pai_scheduler.cluster.start_estimate import estimate_start

from .harness import Harness, gpu, gpu_node, on

HOUR = 3_600_000


def planned(node: Node, begin: int = HOUR, end: int = 2 * HOUR) -> Node:
    return replace(node, maintenance=(Maintenance("disks", (node.name,), begin, end, "disk", "root"),))


def wait(harness: Harness, job_id: str, run_ms: int | None, *gang: Demand, submission: int = 0) -> list[str]:
    harness.state.wait(job_id, "alice", "x", gang, SortKey(0, 0, submission), run_ms=run_ms)
    return harness.decide()


def where(harness: Harness, job_id: str) -> list[str]:
    return list(harness.state.holdings[job_id].nodes)


def test_patterns_cover_the_nodes_that_they_match() -> None:
    window = Maintenance("disks", ("a-*", "b?"), 1, 2, "", "")
    assert [window.covers(name) for name in ("a-1", "a", "b1", "b12")] == [True, False, True, False]


def test_times_that_no_calendar_has_are_written_as_numbers() -> None:
    assert (in_words(0), in_words(1 << 60)) == ("1970-01-01 00:00 UTC", str(1 << 60))


def test_nodes_are_barred_by_when_a_job_would_end_and_no_longer_than_the_maintenance() -> None:
    first, second = (Maintenance("", (), begin, end, "", "") for begin, end in ((10, 20), (30, 40)))
    barring = Barring([(0, (first, second)), (1, (second,))], notice_ms=5)
    assert barring
    assert barring.ends == [20, 40]
    assert barring.numbers(0, 10) == frozenset()
    assert barring.numbers(0, 11) == barring.numbers(1, 11) == {0}
    assert barring.numbers(0, 31) == {0, 1}
    assert barring.numbers(20, 10) == frozenset()
    assert barring.numbers(20, 11) == {0, 1}
    assert (barring.numbers(5, None), barring.numbers(6, None)) == (frozenset(), {0})
    assert barring.numbers(40, 100) == frozenset()
    assert not Barring([], 5)


def test_a_job_starts_where_its_time_limit_ends_before_maintenance() -> None:
    harness = Harness(planned(gpu_node("a", 1)), gpu_node("b", 4))
    wait(harness, "long", HOUR, gpu(1))
    wait(harness, "short", HOUR // 2, gpu(1))
    wait(harness, "unlimited", None, gpu(1))
    assert [where(harness, job) for job in ("long", "short", "unlimited")] == [["b"], ["a"], ["b"]]


def test_one_that_is_too_long_lets_shorter_ones_past_and_starts_when_maintenance_is_over() -> None:
    harness = Harness(planned(gpu_node("a", 2)))
    wait(harness, "long", 2 * HOUR, gpu(1), submission=1)
    wait(harness, "short", HOUR // 2, gpu(1), submission=2)
    assert (len(harness.state.holdings), where(harness, "short")) == (1, ["a"])
    harness.state.set_nodes([gpu_node("a", 2)])
    harness.decide()
    assert where(harness, "long") == ["a"]


def test_without_a_time_limit_nothing_starts_within_the_notice() -> None:
    harness = Harness(planned(gpu_node("a", 2), begin=48 * HOUR, end=49 * HOUR))
    wait(harness, "early", None, gpu(1))
    assert where(harness, "early") == ["a"]
    harness.now = 25 * HOUR
    wait(harness, "late", None, gpu(1))
    assert "late" not in harness.state.holdings


def test_the_tasks_of_a_gang_are_kept_from_such_nodes_when_they_are_brought_nearer_or_spread() -> None:
    for spread in ("", "main"):
        nodes = [gpu_node("a", 2), planned(gpu_node("b", 4)), gpu_node("c", 2)]
        harness = Harness(*(replace(node, rack="r") for node in nodes))
        tasks = [replace(gpu(1), spread=spread) for _ in range(3)]
        wait(harness, "job", 2 * HOUR, *tasks)
        assert sorted(where(harness, "job")) == ["a", "c"]


def test_what_is_kept_for_a_job_is_kept_elsewhere_once_maintenance_comes_too_near() -> None:
    harness = Harness(planned(gpu_node("a", 1)), gpu_node("b", 1), limit=0)
    harness.hold("one", (gpu(1), on("a", 0)))
    harness.hold("other", (gpu(1), on("b", 0)))
    harness.state.expect("one", HOUR // 2)
    wait(harness, "waits", HOUR // 2, gpu(1))
    reservation = harness.state.reservations.get("waits")
    assert reservation is not None
    assert reservation.nodes == ["a"]
    harness.now = HOUR // 2 + 10
    harness.decide()
    reservation = harness.state.reservations.get("waits")
    assert reservation is not None
    assert reservation.nodes == ["b"]


def test_the_reason_says_which_maintenance_and_what_would_start_at_once() -> None:
    harness = Harness(planned(gpu_node("a", 2)))
    for run_ms, words in ((2 * HOUR, "its time limit of 7200 s"), (None, "nothing without a time limit")):
        found = feasibility(harness.state, "alice", "x", [gpu(1)], preemptible=True, run_ms=run_ms)
        assert (found.fits, words in str(found.reason)) == ("later", True)
        assert "a from 1970-01-01 01:00 UTC to 1970-01-01 02:00 UTC: disk" in str(found.reason)
    found = feasibility(harness.state, "alice", "x", [gpu(1)], preemptible=True, run_ms=HOUR // 2)
    assert found.fits == "now"


def test_an_estimated_start_waits_for_the_end_of_maintenance() -> None:
    harness = Harness(planned(gpu_node("a", 2)))
    shape = harness.state.shape("alice", "x", [gpu(1)], True, 2 * HOUR)
    assert estimate_start(harness.state, "alice", "x", shape, (), 0, lambda _: None) == 2 * HOUR
