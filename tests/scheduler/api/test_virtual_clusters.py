"""What administrators do to virtual clusters over REST, durably, and what it means for everybody's jobs."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from pai_scheduler.client.rest import ApiError, Client
from tests.scheduler.conftest import checked
from tests.testbed.answers import check_answer
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

CLUSTER = """
nodes: [{name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 4}}]
virtualClusters: {default: {capacity: 60}, vision: {capacity: 30, maxCapacity: 50, groups: [vision]}}
"""


@pytest.fixture
def own(own_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler that no other test shares, with 10 per cent that no virtual cluster has."""
    return own_scheduler(cluster=CLUSTER)


def admin(scheduler: RunningScheduler) -> Client:
    return checked(Client(scheduler.url, "token-of-root"))


def plain(scheduler: RunningScheduler) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=f"{scheduler.url}/api/v1",
        headers={"Authorization": "Bearer token-of-root"},
        trust_env=False,
        timeout=30,
        event_hooks={"response": [check_answer]},
    )


async def capacities(client: Client) -> dict[str, float]:
    return {name: cluster["capacity"] for name, cluster in (await client.virtual_clusters()).items()}


async def test_a_new_cluster_is_there_after_a_power_cut(own: RunningScheduler) -> None:
    async with admin(own) as root:
        await root.set_virtual_cluster("speech", 25.5, users=["bob"])
        expected = {"default": 44.5, "vision": 30, "speech": 25.5}
        assert await capacities(root) == expected
        own.kill()
        own.start()
        assert await capacities(root) == expected
        # and only those who may use it can
        async with Client(own.url, "token-of-alice") as alice, Client(own.url, "token-of-bob") as bob:
            await bob.submit(hello_job("mine", virtualCluster="speech"))
            with pytest.raises(ApiError) as refusal:
                await alice.submit(hello_job("mine", virtualCluster="speech"))
            assert refusal.value.status == 403


async def test_what_is_not_said_stays_as_it_is(own: RunningScheduler) -> None:
    async with admin(own) as root:
        await root.set_virtual_cluster("vision", 20)
        vision = (await root.virtual_clusters())["vision"]
        assert (vision["capacity"], vision["maxCapacity"]) == (20, 50)
        assert (await capacities(root))["default"] == 70
        async with Client(own.url, "token-of-bob") as bob:
            with pytest.raises(ApiError, match="not open to you"):
                await bob.submit(hello_job("mine", virtualCluster="vision"))
        # a guarantee above the old limit lifts it
        await root.set_virtual_cluster("vision", 80)
        assert (await root.virtual_clusters())["vision"]["maxCapacity"] == 80
        # now for everybody
        await root.set_virtual_cluster("vision", 80, groups=[])
        async with Client(own.url, "token-of-bob") as bob:
            await bob.submit(hello_job("mine", virtualCluster="vision"))


async def test_a_form_says_the_same_as_json(own: RunningScheduler) -> None:
    async with plain(own) as http:
        form = {"vcCapacity": "12.5", "vcMaxCapacity": "40", "users[0]": "alice", "groups[]": "vision"}
        answer = await http.put("/virtual-clusters/speech", data=form)
        assert answer.status_code == 201, answer.text
        speech = (await http.get("/virtual-clusters/speech")).json()
        assert (speech["capacity"], speech["maxCapacity"]) == (12.5, 40)


@pytest.mark.parametrize(
    ("name", "body", "path"),
    [
        ("x", {}, "$.vcCapacity"),
        ("x", {"vcCapacity": True}, "$.vcCapacity"),
        ("x", {"vcCapacity": 101}, "$.vcCapacity"),
        ("x", {"vcCapacity": -1}, "$.vcCapacity"),
        ("x", {"vcCapacity": "1_0"}, "$.vcCapacity"),
        ("x", {"vcCapacity": "nan"}, "$.vcCapacity"),
        ("x", {"vcCapacity": 1e400}, "$.vcCapacity"),
        ("x", {"vcCapacity": 10, "vcMaxCapacity": 5}, "$.vcMaxCapacity"),
        ("x", {"vcCapacity": 10, "users": "alice"}, "$.users"),
        ("x", {"vcCapacity": 10, "groups": [""]}, "$.groups"),
        ("a b", {"vcCapacity": 10}, "virtualCluster"),
        ("%2E%2E", {"vcCapacity": 10}, "virtualCluster"),
    ],
)
async def test_a_wrong_share_is_refused_with_its_place(
    scheduler: RunningScheduler, name: str, body: dict[str, object], path: str
) -> None:
    async with plain(scheduler) as http:
        content = str(body).replace("'", '"').replace("True", "true").replace("inf", "1e400")
        answer = await http.put(f"/virtual-clusters/{name}", content=content)
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)


async def test_a_stopped_cluster_refuses_jobs_and_keeps_what_it_has(own: RunningScheduler) -> None:
    async with admin(own) as root, Client(own.url, "token-of-alice") as alice:
        await alice.submit(hello_job("runs", "sleep 600", virtualCluster="vision"))
        async for event in alice.events("alice", "runs"):
            if event["type"] == "running":
                break
        too_big = [{"name": "main", "command": "true", "cpuNumber": 8}]
        await alice.submit(hello_job("waits", virtualCluster="vision", taskRoles=too_big))
        await root.stop_virtual_cluster("vision")
        assert (await root.virtual_clusters())["vision"]["status"] == "STOPPED"
        with pytest.raises(ApiError, match="Virtual cluster vision is stopped") as refusal:
            await alice.submit(hello_job("late", virtualCluster="vision"))
        assert (refusal.value.status, refusal.value.code) == (403, "ForbiddenUserError")
        forecast = await alice.validate(hello_job("late", virtualCluster="vision"))
        assert [error["path"] for error in forecast["errors"]] == ["$.virtualCluster"]
        # what runs goes on, over a restart too; what waits waits
        own.kill()
        own.start()
        assert (await alice.job("alice", "runs"))["jobStatus"]["state"] == "RUNNING"
        assert (await root.virtual_clusters())["vision"]["status"] == "STOPPED"
        await alice.stop("alice", "runs")
        async for _ in alice.events("alice", "runs"):
            pass
        await root.set_virtual_cluster("vision", 40)
        waits = (await alice.job("alice", "waits"))["jobStatus"]
        assert waits["state"] == "WAITING"
        assert "stopped" in waits["waitingReason"]
        await root.start_virtual_cluster("vision")
        await root.set_virtual_cluster("vision", 60, max_capacity=100)
        async for _ in alice.events("alice", "waits"):
            pass
        assert (await alice.job("alice", "waits"))["jobStatus"]["state"] == "SUCCEEDED"


async def test_a_cluster_goes_when_its_last_job_has_ended(own: RunningScheduler) -> None:
    async with admin(own) as root, Client(own.url, "token-of-alice") as alice:
        await alice.submit(hello_job("runs", "sleep 600", virtualCluster="vision"))
        with pytest.raises(ApiError, match=r"has jobs that have not ended \(1\)") as refusal:
            await root.delete_virtual_cluster("vision")
        assert (refusal.value.status, refusal.value.code) == (403, "RemoveRunningVcError")
        await alice.stop("alice", "runs")
        async for _ in alice.events("alice", "runs"):
            pass
        await root.delete_virtual_cluster("vision")
        assert await capacities(root) == {"default": 90}
        own.kill()
        own.start()
        # although the cluster file has it
        assert await capacities(root) == {"default": 90}
        with pytest.raises(ApiError) as refusal:
            await alice.submit(hello_job("late", virtualCluster="vision"))
        assert (refusal.value.status, refusal.value.code) == (404, "NoVirtualClusterError")
        # the ended job is still there to be looked at
        assert (await alice.job("alice", "runs"))["jobStatus"]["virtualCluster"] == "vision"


async def test_many_changes_at_once_leave_nobody_with_what_another_has(own: RunningScheduler) -> None:
    async with admin(own) as root:
        results = await asyncio.gather(
            *(root.set_virtual_cluster(f"vc-{number}", 30) for number in range(5)), return_exceptions=True
        )
        refused = [result for result in results if isinstance(result, ApiError)]
        assert [refusal.code for refusal in refused] == ["NoEnoughQuotaError"] * 3
        shares = await capacities(root)
        assert sum(shares.values()) == 100
        assert len(shares) == 4
