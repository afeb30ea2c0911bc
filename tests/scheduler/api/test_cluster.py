"""Machines and virtual clusters over REST."""

from __future__ import annotations

import shutil

import httpx

from pai_scheduler.client.rest import Client
from tests.testbed.scheduler import RunningScheduler, hello_job


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
    task = (await alice.job("alice", "has-a-gpu"))["taskRoles"]["main"]["taskStatuses"][0]
    (node,) = await alice.nodes()
    mine = {gpu["index"] for gpu in node["gpus"] if gpu["job"] == "alice~has-a-gpu"}
    assert {i for i in range(8) if task["containerGpus"] >> i & 1} == mine
    await alice.stop("alice", "has-a-gpu")


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
