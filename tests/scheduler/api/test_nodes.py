"""Administrators close a node for new tasks and open it again over REST."""

from __future__ import annotations

import pytest

from pai_scheduler.client.rest import ApiError, Client
from tests.scheduler.conftest import checked
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

CLUSTER = "nodes: [{name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000}]"


@pytest.fixture
def own(own_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler that no other test shares."""
    return own_scheduler(cluster=CLUSTER)


async def _wait_for(client: Client, job: str, kind: str) -> None:
    async for event in client.events("alice", job):
        if event["type"] == kind:
            return
    raise AssertionError(f"{job} ended without {kind}")


async def test_on_a_closed_node_what_runs_goes_on_and_nothing_starts_until_it_is_opened(
    own: RunningScheduler,
) -> None:
    async with (
        checked(Client(own.url, "token-of-root")) as root,
        checked(Client(own.url, "token-of-alice")) as alice,
    ):
        await alice.submit(hello_job("runs", "sleep 600"))
        await _wait_for(alice, "runs", "running")
        await root.close_node("node-a", "disk  is\nreplaced")
        (node,) = await alice.nodes()
        closed = node["closed"]
        assert closed is not None
        assert (node["state"], closed["by"], closed["reason"]) == ("READY", "root", "disk is replaced")
        validation = await alice.validate(hello_job("waits"))
        assert validation["fits"] == "never"
        await alice.submit(hello_job("waits"))
        own.kill()
        own.start()
        assert (await alice.nodes())[0]["closed"] == closed
        waits = (await alice.job("alice", "waits"))["jobStatus"]
        assert waits["state"] == "WAITING"
        assert "node-a (closed by root: disk is replaced)" in str(waits)
        assert (await alice.job("alice", "runs"))["jobStatus"]["state"] == "RUNNING"
        await root.open_node("node-a")
        assert (await alice.nodes())[0]["closed"] is None
        await _wait_for(alice, "waits", "running")
        await alice.stop("alice", "runs")


async def test_a_small_disk_is_filled_by_what_tasks_ask_for_not_by_what_they_might_write(
    own_scheduler: StartScheduler,
) -> None:
    file = (
        "{nodes: [{name: node-a, cpus: 8, memoryMB: 8000, storageGB: 5}], defaults: {storageRequestGB: %d}}"
    )
    own = own_scheduler(cluster=file % 1)
    silent, named = hello_job("silent", "sleep 600"), hello_job("named", "sleep 600")
    silent["taskRoles"][0]["taskNumber"] = 4
    named["taskRoles"][0]["storageGB"] = 2
    async with checked(Client(own.url, "token-of-alice")) as alice:
        await alice.submit(silent)
        await _wait_for(alice, "silent", "running")
        (node,) = await alice.nodes()
        assert node["used"]["storageGB"] == 4
        await alice.submit(named)
        reason = str((await alice.job("alice", "named"))["jobStatus"]["waitingReason"])
        assert "2 GB of storage" in reason
        named["taskRoles"][0]["storageGB"] = 0
        named["jobName"] = "none"
        await alice.submit(named)
        await _wait_for(alice, "none", "running")
        (node,) = await alice.nodes()
        assert node["used"]["storageGB"] == 4
        # what runs is counted by the file that holds now
        own.kill()
        (own.folder / "cluster.yaml").write_text(file % 0)
        own.start()
        await _wait_for(alice, "named", "running")
        (node,) = await alice.nodes()
        assert node["used"]["storageGB"] == 2
        for job in ("silent", "named", "none"):
            await alice.stop("alice", job)


async def test_who_may_not_and_what_is_not_known_is_refused(alice: Client, root: Client) -> None:
    for client, name, reason, status, code in (
        (alice, "node-a", "why", 403, "ForbiddenUserError"),
        (root, "no-such", "why", 404, "NoNodeError"),
        (root, "node-a", " ", 400, "InvalidParametersError"),
        (root, "node-a", "x" * 10_000, 400, "InvalidParametersError"),
    ):
        with pytest.raises(ApiError) as refusal:
            await client.close_node(name, reason)
        assert (refusal.value.status, refusal.value.code) == (status, code)
    with pytest.raises(ApiError) as refusal:
        await alice.open_node("node-a")
    assert refusal.value.status == 403
    await root.open_node("node-a")
    assert (await alice.nodes())[0]["closed"] is None
