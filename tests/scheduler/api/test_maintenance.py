"""Administrators plan maintenance over REST; machines are closed and opened in time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pai_scheduler.client.rest import ApiError, Client
from tests.scheduler.conftest import checked
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

CLUSTER = "nodes: [{name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000}]"
HOUR = 3_600_000


@pytest.fixture
def own(own_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler that no other test shares."""
    return own_scheduler(cluster=CLUSTER)


def now() -> int:
    return round(time.time() * 1000)


def limited(name: str, seconds: int, command: str = "true") -> dict[str, Any]:
    return {**hello_job(name, command), "extras": {"maxRunSeconds": seconds}}


async def _wait_for(client: Client, job: str, kind: str) -> int:
    async for event in client.events("alice", job):
        if event["type"] == kind:
            return event["time"]
    raise AssertionError(f"{job} ended without {kind}")


async def test_before_maintenance_only_what_ends_before_starts_and_who_may_still_run_is_told(
    own: RunningScheduler,
) -> None:
    async with (
        checked(Client(own.url, "token-of-root")) as root,
        checked(Client(own.url, "token-of-alice")) as alice,
    ):
        await alice.submit(hello_job("runs", "sleep 600"))
        await _wait_for(alice, "runs", "running")
        begin, end = now() + HOUR, now() + 2 * HOUR
        await root.set_maintenance("disks", ["node-*"], begin=begin, end=end, reason="disks  are\nreplaced")
        await _wait_for(alice, "runs", "maintenance")
        planned = await alice.maintenance()
        assert [(one["name"], one["reason"], one["by"]) for one in planned] == [
            ("disks", "disks are replaced", "root")
        ]
        (node,) = await alice.nodes()
        assert (node["closed"], node.get("maintenance")) == (None, planned)
        validation = await alice.validate(limited("long", 7200))
        assert (validation["fits"], "disks are replaced" in str(validation["reason"])) == ("later", True)
        assert validation["startsWithin"] is not None
        assert 3600 < validation["startsWithin"] <= 7200
        assert (await alice.validate(limited("short", 60)))["fits"] == "now"
        await alice.submit(limited("long", 7200, "sleep 600"))
        own.kill()
        own.start()
        assert await alice.maintenance() == planned
        assert (await alice.job("alice", "long"))["jobStatus"]["state"] == "WAITING"
        await alice.submit(limited("short", 60))
        await _wait_for(alice, "short", "running")
        await root.delete_maintenance("disks")
        await _wait_for(alice, "long", "running")
        assert "maintenance" not in (await alice.nodes())[0]
        for job in ("runs", "long"):
            await alice.stop("alice", job)


async def test_during_maintenance_nothing_starts_and_at_its_end_the_machine_is_open_by_itself(
    own: RunningScheduler,
) -> None:
    async with (
        checked(Client(own.url, "token-of-root")) as root,
        checked(Client(own.url, "token-of-alice")) as alice,
    ):
        end = now() + 8_000
        await root.set_maintenance("now", ["node-a"], begin=now() - 1, end=end, reason="disk")
        await alice.submit(limited("waits", 60))
        assert await _wait_for(alice, "waits", "placed") >= end
        assert (await alice.nodes())[0]["closed"] is None
        assert await alice.maintenance() == []
        await root.set_maintenance("now", ["node-a"], begin=now() - 1, end=now() + HOUR, reason="disk")
        (node,) = await alice.nodes()
        assert node["closed"] is not None
        assert node["closed"].get("until", 0) > now()
        assert (await alice.validate(limited("never", 60)))["fits"] == "never"
        with pytest.raises(ApiError, match="in maintenance now until"):
            await root.open_node("node-a")


async def test_who_may_not_and_what_is_wrong_is_refused(alice: Client, root: Client) -> None:
    good: dict[str, Any] = {"nodes": ["node-a"], "begin": now(), "end": now() + HOUR, "reason": "why"}
    for client, name, change, status, code in (
        (alice, "x", {}, 403, "ForbiddenUserError"),
        (root, "a b", {}, 400, "InvalidParametersError"),
        (root, "x", {"nodes": ["no-such*"]}, 404, "NoNodeError"),
        (root, "x", {"nodes": []}, 400, "InvalidParametersError"),
        (root, "x", {"reason": " "}, 400, "InvalidParametersError"),
        (root, "x", {"begin": -1}, 400, "InvalidParametersError"),
        (root, "x", {"end": good["begin"]}, 400, "InvalidParametersError"),
        (root, "x", {"begin": 1, "end": 2}, 400, "InvalidParametersError"),
    ):
        wanted = {**good, **change}
        with pytest.raises(ApiError) as refusal:
            await client.set_maintenance(name, **wanted)
        assert (refusal.value.status, refusal.value.code) == (status, code)
    for client, status in ((alice, 403), (root, 404)):
        with pytest.raises(ApiError) as refusal:
            await client.delete_maintenance("x")
        assert refusal.value.status == status
