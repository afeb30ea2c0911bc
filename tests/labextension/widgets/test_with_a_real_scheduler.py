"""Form and monitor with a real scheduler on the process engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pai_labextension.widgets import ClusterView, JobForm, JobMonitor, JobTable, NotSubmittedError
from pai_labextension.widgets.watch import Pace
from pai_scheduler.client.rest import Client
from tests.labextension.widgets.waiting import until
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

PACE = Pace(gap=0.05, first_retry=0.1, longest_retry=0.5, poll=5)


@pytest.fixture(scope="module")
def scheduler(module_scheduler: StartScheduler) -> RunningScheduler:
    return module_scheduler()


@pytest.fixture
async def client(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(scheduler.url, "token-of-alice") as client:
        yield client


async def test_the_documents_hello_world_runs_from_the_form(client: Client, fixtures: Path) -> None:
    text = (fixtures / "jobs" / "scm-helloworld.json").read_text(encoding="utf-8")
    form = JobForm(text, client, "en", quiet=0)
    try:
        await until(lambda: "fits now" in form.fit.value)
        assert "4 of 4 TITANX (simulated)" in form.free.value
        form.form.roles.boxes[0].field("command").entry.value = 'echo "hello from $PAI_JOB_NAME"'
        monitor = await form.submit()
        assert await asyncio.wait_for(monitor.wait(), 60) == "SUCCEEDED"
        await until(lambda: monitor.logs.view.text == "hello from helloworld_16be675e\n")
        assert "node-a" in monitor.tasks.value
    finally:
        form.close()


async def test_a_job_that_never_fits_and_a_name_that_is_taken_are_said(client: Client) -> None:
    await client.submit(hello_job("taken"))
    form = JobForm(hello_job("taken"), client, "zh_CN", quiet=0)
    try:
        role = form.form.roles.boxes[0]
        role.field("gpuNumber").entry.value = "64"
        await until(lambda: "此作业按目前的写法无法在此运行。" in form.fit.value)
        role.field("gpuNumber").entry.value = "0"
        with pytest.raises(NotSubmittedError):
            await form.submit()
        assert form.form.field("jobName").problem
        form.form.unique.click()
        await form.submit()
    finally:
        form.close()


async def test_what_is_shown_is_known_in_the_cell_that_makes_it(client: Client) -> None:
    for name in ("older", "newer"):
        await client.submit(hello_job(name))
    table, view = JobTable(client=client, locale="en", limit=1), ClusterView(client, "en")
    try:
        # nothing is awaited, as in a cell
        assert [job["name"] for job in table.jobs] == ["newer"]
        assert "JobTable(limit=2) shows twice as many" in table.as_text()
        assert view.free["P100"] == 4
        assert "default" in view.virtual_clusters
        assert view.as_text().splitlines()[1].startswith("node-a")
    finally:
        table.close()
        view.close()


async def test_a_failure_is_explained(client: Client) -> None:
    await client.submit(hello_job("fails", "echo about to fail; echo ValueError >&2; exit 3"))
    monitor = JobMonitor("fails", client=client, locale="en", pace=PACE)
    try:
        assert await asyncio.wait_for(monitor.wait(), 60) == "FAILED"
        assert "exit code 3" in monitor.ending.value
        assert "ValueError" in monitor.ending.value
    finally:
        monitor.close()


async def test_a_job_is_watched_across_a_kill_of_the_scheduler_and_stopped(
    scheduler: RunningScheduler, client: Client, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    command = f"echo one; until [ -e {gate} ]; do sleep 0.1; done; echo two; sleep 3600"
    await client.submit(hello_job("survivor", command))
    monitor = JobMonitor("survivor", client=client, locale="en", pace=PACE)
    try:
        await until(lambda: monitor.logs.view.text == "one\n")
        await asyncio.to_thread(scheduler.kill)
        await until(lambda: "does not answer" in monitor.trouble.value)
        gate.touch()
        await asyncio.to_thread(scheduler.start)
        await until(lambda: monitor.logs.view.text == "one\ntwo\n")
        assert monitor.state == "RUNNING"
        await monitor.stop()
        assert await asyncio.wait_for(monitor.wait(), 60) == "STOPPED"
    finally:
        monitor.close()


async def test_what_a_task_uses_is_drawn_while_it_runs_and_kept(client: Client) -> None:
    job = hello_job("busy", "sleep 3600", extras={"priority": 70, "maxRunSeconds": 3600})
    await client.submit(job)
    monitor = JobMonitor("busy", client=client, locale="en", pace=PACE)
    try:
        await until(lambda: "MB now" in monitor.usage.charts.value)
        assert "CPU (100 % is one core)" in monitor.usage.charts.value
        assert "Priority: 70" in monitor.head.value
        await monitor.stop()
        assert await asyncio.wait_for(monitor.wait(), 60) == "STOPPED"
        assert "What main 0 uses" in monitor.usage.charts.value
    finally:
        monitor.close()


async def test_a_debugged_failure_says_until_when_its_container_is_kept(client: Client) -> None:
    await client.submit(hello_job("debugged", "exit 7", jobEnvs={"isDebug": True}))
    monitor = JobMonitor("debugged", client=client, locale="en", pace=PACE)
    try:
        await until(lambda: "failed, container kept for debugging until " in monitor.head.value)
        await monitor.stop()
        assert await asyncio.wait_for(monitor.wait(), 60) == "STOPPED"
    finally:
        monitor.close()


async def test_a_preempted_attempt_is_told_in_words_while_the_job_waits_again(client: Client) -> None:
    role = {"name": "main", "command": "sleep 3600", "gpuNumber": 4}
    borrower: dict[str, Any] = {"virtualCluster": "vision", "gpuType": "P100", "taskRoles": [role]}
    await client.submit(hello_job("borrower", **borrower))
    monitor = JobMonitor("borrower", client=client, locale="en", pace=PACE)
    try:
        await until(lambda: monitor.state == "RUNNING")
        owner: dict[str, Any] = {"gpuType": "P100", "taskRoles": [{**role, "gpuNumber": 2}]}
        await client.submit(hello_job("owner", **owner))
        await until(lambda: "-7120" in monitor.history.value)
        assert "Preempted: virtual cluster vision had borrowed" in monitor.history.value
        await until(lambda: "Place 1 in the queue" in monitor.head.value)
        assert "P100" in monitor.head.value, "why it waits"
        await client.stop("alice", "owner")
        await until(lambda: monitor.state == "RUNNING")
        await until(lambda: monitor.history.value.count("<tr><td>") == 2)
    finally:
        monitor.close()
