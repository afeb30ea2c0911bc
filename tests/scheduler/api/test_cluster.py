"""Machines and virtual clusters over REST."""

from __future__ import annotations

import shutil
from contextlib import AsyncExitStack

import httpx

from pai_scheduler.client.rest import Client
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

SHARED = """
nodes: [{name: n, cpus: 8, memoryMB: 8000, storageGB: 100, gpus: {P100: 5}}]
virtualClusters:
  default: {capacity: 40}
  lab: {capacity: 20, users: [alice]}
  open: {capacity: 20, users: [alice], holdersVisible: everybody}
  secret: {capacity: 20, holdersVisible: nobody}
"""


async def test_a_node_shows_what_it_has_and_that_its_gpus_are_simulated(alice: Client) -> None:
    (node,) = await alice.nodes()
    assert (node["name"], node["state"]) == ("node-a", "READY")
    assert node["total"] == {
        "cpus": 64,
        "memoryMB": 400000,
        "storageGB": 1000,
        "gpus": {"TITANX": 4, "P100": 4},
    }
    assert {gpu["simulated"] for gpu in node["gpus"]} == {True}
    assert sorted(gpu["index"] for gpu in node["gpus"]) == list(range(8))


async def test_a_node_shows_the_room_on_the_disk_that_tasks_fill(
    alice: Client, scheduler: RunningScheduler
) -> None:
    (node,) = await alice.nodes()
    disk = node["disk"]
    assert disk is not None
    assert disk["totalMB"] == shutil.disk_usage(scheduler.data_dir).total // 2**20
    assert 0 < disk["freeMB"] < disk["totalMB"]


async def test_who_has_a_gpu_is_told_to_its_owner_and_to_admins(
    alice: Client, bob: Client, root: Client
) -> None:
    job = hello_job("has-a-gpu", "sleep 600", gpuType="TITANX")
    job["taskRoles"][0]["gpuNumber"] = 2
    await alice.submit(job)
    async for event in alice.events("alice", "has-a-gpu"):
        if event["type"] == "running":
            break
    for client, shown in ((alice, "alice~has-a-gpu"), (bob, "busy"), (root, "alice~has-a-gpu")):
        (node,) = await client.nodes()
        holders = [gpu["job"] for gpu in node["gpus"] if gpu["type"] == "TITANX"]
        assert holders.count(shown) == 2
        assert holders.count(None) == 2
        assert node["used"]["gpus"]["TITANX"] == 2
        # the virtual cluster default is open to everybody, so everybody is one of its members
        assert [gpu["user"] for gpu in node["gpus"]].count("alice") == 2
    task = (await alice.job("alice", "has-a-gpu"))["taskRoles"]["main"]["taskStatuses"][0]
    (node,) = await alice.nodes()
    mine = {gpu["index"] for gpu in node["gpus"] if gpu["job"] == "alice~has-a-gpu"}
    assert {i for i in range(8) if task["containerGpus"] >> i & 1} == mine
    await alice.stop("alice", "has-a-gpu")


async def test_holders_of_gpus_are_shown_as_the_virtual_cluster_of_their_jobs_has_it(
    own_scheduler: StartScheduler,
) -> None:
    running = own_scheduler(cluster=SHARED)
    async with AsyncExitStack() as stack:
        alice, bob, root = [
            await stack.enter_async_context(Client(running.url, f"token-of-{name}"))
            for name in ("alice", "bob", "root")
        ]
        for virtual_cluster in ("default", "lab", "open", "secret"):
            job = hello_job(virtual_cluster, "sleep 600", virtualCluster=virtual_cluster)
            job["taskRoles"][0]["gpuNumber"] = 1
            await alice.submit(job)
            async for event in alice.events("alice", virtual_cluster):
                if event["type"] == "running":
                    break
        for client, shown in ((alice, 4), (root, 4), (bob, 2)):
            (node,) = await client.nodes()
            assert [gpu["user"] for gpu in node["gpus"]].count("alice") == shown
        job = hello_job("waits", gpuType="P100")
        job["taskRoles"][0]["gpuNumber"] = 2
        await bob.submit(job)
        for client in (bob, root):
            reason = (await client.job("bob", "waits"))["jobStatus"]["waitingReason"]
            assert reason.endswith(" P100 GPUs are held by alice (2).")
        (entry,) = (await bob.queue("default"))["default"]
        assert entry["waitingReason"] == reason


async def test_virtual_clusters_are_shown_by_name(http: httpx.AsyncClient, alice: Client) -> None:
    clusters = await alice.virtual_clusters()
    assert set(clusters) == {"default", "vision", "your_virtual_cluster"}
    vision = clusters["vision"]
    assert (vision["capacity"], vision["maxCapacity"], vision["status"]) == (20, 100, "RUNNING")
    assert vision["nodeList"] == ["node-a"]
    assert (await http.get("/virtual-clusters/vision")).json() == vision
    answer = await http.get("/virtual-clusters/moon")
    assert (answer.status_code, answer.json()["code"]) == (404, "NoVirtualClusterError")


async def test_the_use_of_the_gpus_over_the_day_is_open_to_everybody(bob: Client) -> None:
    answer = await bob.cluster_usage()
    assert answer["interval"] == 60
    time, used, total = answer["gpus"][0]
    assert (used <= total, total) == (True, 8)
    assert (await bob.cluster_usage(after=time))["gpus"] == answer["gpus"][1:]
