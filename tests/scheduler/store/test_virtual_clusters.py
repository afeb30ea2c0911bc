"""What administrators changed of the virtual clusters is kept, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining, VirtualCluster
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.store.store import Store

VISION = VirtualCluster(
    "vision",
    33.333333,
    80.5,
    groups=("vision", "王"),
    users=("alice",),
    default_run_seconds=60,
    max_run_seconds=3600,
    gpus_per_user=4,
    stopped=True,
    least_attained=LeastAttained((0.5, 10.0), 0, 24),
)


def test_a_changed_cluster_comes_back_as_it_was(store: Store, open_store: Callable[[], Store]) -> None:
    assert store.virtual_clusters() == {}
    store.commit(Outcome(virtual_clusters={"vision": VISION, "speech": None}), {})
    assert open_store().virtual_clusters() == {"vision": VISION, "speech": None}


def test_by_what_need_jobs_are_ordered_comes_back_too(store: Store, open_store: Callable[[], Store]) -> None:
    cluster = replace(VISION, least_attained=None, shortest_remaining=ShortestRemaining(0, 24))
    store.commit(Outcome(virtual_clusters={"vision": cluster}), {})
    assert open_store().virtual_clusters() == {"vision": cluster}


def test_the_last_change_counts(store: Store) -> None:
    store.commit(Outcome(virtual_clusters={"vision": VISION, "speech": VISION}), {})
    running = replace(VISION, stopped=False)
    store.commit(Outcome(virtual_clusters={"vision": running, "speech": None}), {})
    assert store.virtual_clusters() == {"vision": running, "speech": None}
