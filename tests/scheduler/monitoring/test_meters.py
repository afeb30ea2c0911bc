"""The meters of a service: what runs is measured from its start to its end, over a real core."""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import DiskSpace, NodeState
from pai_scheduler.cluster.resources import Assignment
from pai_scheduler.core.events import EndCause, Ended, Event, Started, Submitted
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job, Task
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.protocol import Usage
from pai_scheduler.job.task import TaskRef
from pai_scheduler.monitoring.meters import Meters, Present, ServiceFacts, Tally
from pai_scheduler.service.writer import Committed
from tests.scheduler.core.world import World
from tests.scheduler.making import make_node, make_role, make_spec

REF = TaskRef("j", 0, "main", 0)


class Metered:
    def __init__(self, folder: Path) -> None:
        self.core = World(make_node()).core
        #: as a writer and a cluster
        self.failures = 1
        self.virtual_clusters = {"default": VirtualCluster("default", 100)}
        self.meters = Meters(ProcessEngine(folder), self, {"kill": 2}, self)
        self.meters.start([], [make_node()])

    def handle(self, *events: Event) -> None:
        outcome = Outcome()
        for event in events:
            self.core.handle(event, outcome)
        self.meters.committed(Committed(outcome, [], list(events), self.core, 0.0, 0.0))

    def value(self, name: str, **labels: str) -> float | None:
        return self.meters.monitor.registry.get_sample_value(name, labels)


@pytest.fixture
async def metered(tmp_path: Path) -> AsyncIterator[Metered]:
    made = Metered(tmp_path)
    yield made
    await made.meters.close()


async def test_a_task_is_measured_from_its_start_to_its_end(metered: Metered) -> None:
    metered.handle(Submitted(0, "j", "alice", make_spec(), 1))
    assert REF not in metered.meters.recorder.latest
    assert metered.value("pai_cpus_used", virtual_cluster="default") == 1
    metered.handle(Started(REF, 1, "127.0.0.1", "1"))
    assert REF in metered.meters.recorder.latest
    metered.handle(Ended(REF, 2, EndCause.EXITED, 0))
    assert REF not in metered.meters.recorder.latest
    assert metered.value("pai_cpus_used", virtual_cluster="default") == 0


async def test_what_ran_before_a_restart_is_taken_up(metered: Metered, tmp_path: Path) -> None:
    metered.handle(Submitted(0, "j", "alice", make_spec(), 1), Started(REF, 1, "127.0.0.1", "1"))
    again = Metered(tmp_path)
    again.meters.start(metered.core.jobs.values(), [make_node()])
    assert REF in again.meters.recorder.latest
    assert again.value("pai_cpus_used", virtual_cluster="default") == 1
    labels = {"virtual_cluster": "default", "state": "RUNNING", "sub_state": "RUNNING"}
    assert again.value("pai_jobs", **labels) == 1
    await again.meters.close()


async def test_the_disk_of_each_node_is_what_its_engine_says(metered: Metered, tmp_path: Path) -> None:
    size = metered.value("pai_node_disk_bytes", node=make_node().name)
    assert size == shutil.disk_usage(tmp_path).total // 2**20 * 2**20
    assert metered.value("pai_node_disk_bytes", node="another") is None


async def test_what_failed_elsewhere_is_shown(metered: Metered) -> None:
    assert metered.value("pai_engine_errors_total", call="kill") == 2
    assert metered.value("pai_engine_errors_total", call="usage") == 0
    assert metered.value("pai_store_errors_total") == 1
    assert metered.value("pai_nodes", state="ready") == 1
    metered.meters.note_nodes([make_node(state=NodeState.LOST)])
    assert metered.value("pai_nodes", state="ready") == 0


async def test_job_events_are_logged_for_those_who_ask(
    metered: Metered, caplog: pytest.LogCaptureFixture
) -> None:
    metered.handle(Submitted(0, "quiet", "alice", make_spec(name="quiet"), 1))
    assert not caplog.records
    with caplog.at_level(logging.DEBUG, "pai_scheduler.service.event_stream"):
        metered.handle(Submitted(0, "j", "alice", make_spec(name="told"), 2))
    first = caplog.records[0]
    assert (first.getMessage(), first.__dict__["event"], first.__dict__["job"]) == (
        "Submitted by alice.",
        "submitted",
        "j",
    )
    assert (first.__dict__["user"], first.__dict__["jobName"]) == ("alice", "told")


# What is looked up when Prometheus asks.


NODES = (
    make_node("a", cpus=8, memory_mb=1000, gpus={"P100": 4}),
    make_node("b", cpus=4, state=NodeState.LOST),
)


def make_registry(**facts: Any) -> CollectorRegistry:
    usual: dict[str, Any] = {
        "nodes": NODES,
        "virtual_clusters": (VirtualCluster("default", 60, 80),),
        "tally": Tally(),
        "usages": {},
        "engine_errors": {},
        "store_errors": 0,
        "disks": {},
    }
    registry = CollectorRegistry()
    registry.register(Present(lambda: ServiceFacts(**{**usual, **facts})))
    return registry


def make_tally(*gangs: tuple[str, str, int]) -> Tally:
    """Place one task per (job, virtual cluster, GPUs)."""
    tally = Tally()
    for job_id, vc, gpus in gangs:
        spec = make_spec(make_role(cpus=2, memory_mb=500, gpus=gpus), virtualCluster=vc)
        job = Job(job_id, "alice", spec, 0)
        tally.note_jobs([job])
        task = Task(TaskRef(job_id, 0, "main", 0), Assignment("a", tuple(range(gpus))))
        tally.note_task(job, task, {node.name: node for node in NODES})
    return tally


def test_metrics_show_what_there_is_and_what_is_held() -> None:
    value = make_registry(tally=make_tally(("x", "default", 2), ("y", "vision", 0))).get_sample_value
    assert value("pai_nodes", {"state": "ready"}) == 1
    assert value("pai_nodes", {"state": "lost"}) == 1
    assert value("pai_cpus") == 12
    assert value("pai_memory_bytes") == (1000 + 10_000) * 2**20
    assert value("pai_gpus", {"gpu_type": "P100"}) == 4
    assert value("pai_gpus_used", {"gpu_type": "P100", "virtual_cluster": "default"}) == 2
    assert value("pai_cpus_used", {"virtual_cluster": "vision"}) == 2
    assert value("pai_memory_used_bytes", {"virtual_cluster": "vision"}) == 500 * 2**20
    labels = {"virtual_cluster": "vision", "state": "WAITING", "sub_state": "QUEUED"}
    assert value("pai_jobs", labels) == 1


def test_the_room_on_each_disk_is_shown_where_it_is_known() -> None:
    value = make_registry(disks={"a": DiskSpace(3, 10)}).get_sample_value
    assert value("pai_node_disk_free_bytes", {"node": "a"}) == 3 * 2**20
    assert value("pai_node_disk_bytes", {"node": "a"}) == 10 * 2**20
    assert value("pai_node_disk_bytes", {"node": "b"}) is None


def test_shares_are_ratios() -> None:
    value = make_registry().get_sample_value
    assert value("pai_virtual_cluster_guaranteed_ratio", {"virtual_cluster": "default"}) == 0.6
    assert value("pai_virtual_cluster_max_ratio", {"virtual_cluster": "default"}) == 0.8


def test_how_busy_tasks_are_is_added_up_by_virtual_cluster() -> None:
    tally = make_tally(("x", "default", 2), ("y", "default", 1), ("z", "vision", 0))
    usages = {
        TaskRef("x", 0, "main", 0): Usage(1, 150, 100, gpu_percent=75),
        TaskRef("y", 0, "main", 0): Usage(1, 50, 20, gpu_percent=100),
        TaskRef("z", 0, "main", 0): None,
        TaskRef("gone", 0, "main", 0): Usage(1, 999, 999),
    }
    value = make_registry(tally=tally, usages=usages).get_sample_value
    assert value("pai_cpus_busy", {"virtual_cluster": "default"}) == 2
    assert value("pai_memory_busy_bytes", {"virtual_cluster": "default"}) == 120 * 2**20
    # two GPUs at 75 per cent, one at 100
    assert value("pai_gpus_busy", {"virtual_cluster": "default"}) == 2.5
    assert value("pai_cpus_busy", {"virtual_cluster": "vision"}) is None


def test_errors_are_counters() -> None:
    registry = make_registry(engine_errors={"launch": 3}, store_errors=2)
    assert registry.get_sample_value("pai_engine_errors_total", {"call": "launch"}) == 3
    assert registry.get_sample_value("pai_store_errors_total") == 2
    assert b"# TYPE pai_store_errors_total counter" in generate_latest(registry)
