"""The meters of a service: what runs is measured from its start to its end, over a real core."""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import NodeState
from pai_scheduler.core.events import EndCause, Ended, Event, Started, Submitted
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.job.task import TaskRef
from pai_scheduler.monitoring.meters import Meters
from pai_scheduler.service.writer import Committed
from tests.scheduler.core.world import World
from tests.scheduler.making import make_node, make_spec

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
