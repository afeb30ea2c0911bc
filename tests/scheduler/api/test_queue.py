"""Who waits in which order, who sees what of it, and who may move whom."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from pai_scheduler.client.cli.show import virtual_clusters_table
from pai_scheduler.client.rest import ApiError, Client
from tests.scheduler.conftest import checked
from tests.testbed.answers import check_answer
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

CLUSTER = """
nodes: [{name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 2}}]
virtualClusters: {default: {capacity: 60}, vision: {capacity: 40, groups: [vision]}}
"""
WAITS = [{"name": "main", "command": "true", "gpuNumber": 9}]


@pytest.fixture(scope="module")
def own(module_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler whose queues are these tests' alone."""
    return module_scheduler(cluster=CLUSTER)


@pytest.fixture
async def clients(own: RunningScheduler) -> AsyncIterator[tuple[Client, Client, Client]]:
    """Be alice, bob and an administrator; alice and bob wait by turns, and nobody else."""
    tokens = ("token-of-alice", "token-of-bob", "token-of-root")
    alice, bob, root = (checked(Client(own.url, token)) for token in tokens)
    for job in await root.jobs():
        await root.delete(job["username"], job["name"])
    for number in (1, 2):
        await alice.submit(hello_job(f"a{number}", taskRoles=WAITS))
        await bob.submit(hello_job(f"b{number}", taskRoles=WAITS))
    yield alice, bob, root
    for client in (alice, bob, root):
        await client.close()


async def order(client: Client, virtual_cluster: str = "default") -> list[str | None]:
    return [entry["name"] for entry in (await client.queue())[virtual_cluster]]


async def test_everybody_sees_the_order_and_the_names_of_their_own(
    clients: tuple[Client, Client, Client],
) -> None:
    alice, bob, root = clients
    assert await order(root) == ["a1", "b1", "a2", "b2"]
    assert await order(alice) == ["a1", None, "a2", None]
    assert await order(bob) == [None, "b1", None, "b2"]
    first, second, *_ = (await alice.queue())["default"]
    assert (first["place"], first["user"], first["priority"], first["totalGpuNumber"]) == (1, "alice", 50, 9)
    assert first["waitingReason"]
    assert (second["place"], second["user"], second["waitingReason"]) == (2, "bob", None)
    assert (await alice.queue())["vision"] == []
    assert list(await alice.queue("default")) == ["default"]
    with pytest.raises(ApiError) as refusal:
        await alice.queue("moon")
    assert (refusal.value.status, refusal.value.code) == (404, "NoVirtualClusterError")


async def test_the_list_and_the_detail_tell_place_and_priority(
    clients: tuple[Client, Client, Client],
) -> None:
    alice, *_ = clients
    places = {job["name"]: (job["queuePlace"], job["priority"]) for job in await alice.jobs()}
    assert places == {"a1": (1, 50), "a2": (3, 50)}
    status = (await alice.job("alice", "a2"))["jobStatus"]
    assert (status["queuePlace"], status["priority"]) == (3, 50)
    await alice.stop("alice", "a2")
    status = (await alice.job("alice", "a2"))["jobStatus"]
    assert (status["queuePlace"], status["priority"]) == (None, 50)


async def test_who_waits_is_told_when_the_time_limits_of_those_before_let_them_start(
    clients: tuple[Client, Client, Client],
) -> None:
    alice, bob, _ = clients
    one = [{"name": "main", "command": "sleep 1000", "gpuNumber": 2}]
    limited = {"preemptible": True, "maxRunSeconds": 600}
    await bob.submit(hello_job("holds", taskRoles=one, extras=limited))
    async for event in bob.events("bob", "holds"):
        if event["type"] == "running":
            break
    promised = (await alice.validate(hello_job("x", taskRoles=one)))["startsWithin"]
    await alice.submit(hello_job("next", taskRoles=one, extras=limited))
    await alice.submit(hello_job("last", taskRoles=one))
    told = {
        name: (await alice.job("alice", name))["jobStatus"]["startsWithin"] for name in ("next", "last", "a1")
    }
    assert promised is not None
    assert 590 < promised <= 600
    assert told["next"] is not None
    assert promised - 10 < told["next"] <= promised
    assert told["last"] is not None
    assert 0 <= told["last"] - told["next"] - 600 <= 10
    assert told["a1"] is None, "it never fits"
    queued = {entry["name"]: entry["startsWithin"] for entry in (await alice.queue())["default"]}
    assert queued["a1"] is None
    assert queued["next"] is not None
    assert queued["next"] <= told["next"]
    listed = {job["name"]: job["startsWithin"] for job in await alice.jobs(states=["WAITING"])}
    assert (listed["a1"], listed["next"] is not None) == (None, True)
    # what is another user's business stays so
    assert {entry["startsWithin"] for entry in (await bob.queue())["default"]} == {None}
    running = (await bob.job("bob", "holds"))["jobStatus"]
    assert running["startsWithin"] is None
    assert running["appLaunchedTime"] is not None
    assert running["latestEndTime"] == running["appLaunchedTime"] + 600_000
    assert (await alice.job("alice", "next"))["jobStatus"]["latestEndTime"] is None


async def test_an_owner_moves_a_job_among_their_own_only(clients: tuple[Client, Client, Client]) -> None:
    alice, bob, root = clients
    await alice.reorder("alice", "a2", place=1)
    assert await order(root) == ["a2", "b1", "a1", "b2"]
    with pytest.raises(ApiError) as refusal:
        await bob.reorder("alice", "a1", place=1)
    assert (refusal.value.status, refusal.value.code) == (404, "NoJobError")


async def test_an_administrator_moves_any_job_anywhere(clients: tuple[Client, Client, Client]) -> None:
    _, _, root = clients
    await root.reorder("bob", "b2", place=1)
    assert await order(root) == ["b2", "a1", "b1", "a2"]
    await root.reorder("bob", "b2", place=2**31 - 1)
    assert await order(root) == ["a1", "b1", "a2", "b2"]


async def test_a_higher_priority_comes_first(
    clients: tuple[Client, Client, Client], own: RunningScheduler
) -> None:
    alice, _, root = clients
    await alice.reorder("alice", "a2", priority=60)
    assert await order(root) == ["a2", "a1", "b1", "b2"]
    own.kill()
    own.start()
    assert await order(root) == ["a2", "a1", "b1", "b2"]
    assert (await alice.job("alice", "a2"))["jobStatus"]["priority"] == 60


async def test_an_ended_job_cannot_be_moved(clients: tuple[Client, Client, Client]) -> None:
    alice, *_ = clients
    await alice.stop("alice", "a1")
    for change in ({"place": 1}, {"priority": 1}):
        with pytest.raises(ApiError, match="Job a1 has ended") as refusal:
            await alice.reorder("alice", "a1", **change)
        assert (refusal.value.status, refusal.value.code) == (409, "ConflictJobError")


async def test_a_running_job_has_a_priority_and_no_place(clients: tuple[Client, Client, Client]) -> None:
    alice, *_ = clients
    await alice.submit(hello_job("runs", "sleep 600"))
    async for event in alice.events("alice", "runs"):
        if event["type"] == "running":
            break
    await alice.reorder("alice", "runs", priority=99)
    assert (await alice.job("alice", "runs"))["jobStatus"]["priority"] == 99
    with pytest.raises(ApiError, match="Its priority can be set") as refusal:
        await alice.reorder("alice", "runs", place=1)
    assert refusal.value.status == 409


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "$"),
        ({"place": 0}, "$.place"),
        ({"place": True}, "$.place"),
        ({"place": 1.5}, "$.place"),
        ({"place": 2**31}, "$.place"),
        ({"priority": 101}, "$.priority"),
        ({"priority": "high"}, "$.priority"),
    ],
)
async def test_a_wrong_place_is_refused_with_a_sentence(
    http: httpx.AsyncClient, body: dict[str, object], path: str
) -> None:
    answer = await http.put("/user/alice/jobs/any/queue", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)


async def test_a_form_moves_a_job_too(own: RunningScheduler, clients: tuple[Client, Client, Client]) -> None:
    async with httpx.AsyncClient(
        base_url=f"{own.url}/api/v1",
        headers={"Authorization": "Bearer token-of-root"},
        trust_env=False,
        event_hooks={"response": [check_answer]},
    ) as http:
        answer = await http.put("/user/bob/jobs/b2/queue", data={"place": "1", "priority": "50"})
        assert (answer.status_code, answer.json()) == (202, {"message": "move job b2 successfully"})
        # one's own jobs are shown wherever they are
        shown = (await http.get("/queue?virtualCluster=default&limit=1")).json()
        assert [entry["name"] for entry in shown["default"]] == ["b2"]
    alice, _, root = clients
    assert await order(root) == ["b2", "a1", "b1", "a2"]
    del alice


SHORTER_FIRST = """
nodes: [{name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 2}}]
virtualClusters: {default: {capacity: 100, shorterFirst: 10}}
"""


async def test_where_shorter_jobs_come_first_pages_go_on_and_a_place_is_refused(
    module_scheduler: StartScheduler,
) -> None:
    scheduler = module_scheduler(cluster=SHORTER_FIRST)
    async with checked(Client(scheduler.url, "token-of-alice")) as alice:
        for name, seconds in (("day", 86_400), ("minute", 60), ("hour", 3600)):
            await alice.submit(hello_job(name, taskRoles=WAITS, extras={"maxRunSeconds": seconds}))
        assert await order(alice) == ["minute", "hour", "day"]
        with pytest.raises(ApiError) as refusal:
            await alice.reorder("alice", "day", place=1)
        assert "shorter jobs come first, so that nobody chooses a place" in str(refusal.value)
        await alice.reorder("alice", "day", priority=60)
        assert await order(alice) == ["day", "minute", "hour"]
    found, address = [], f"{scheduler.url}/api/v1/queue?limit=1"
    async with httpx.AsyncClient(headers={"Authorization": "Bearer token-of-alice"}, trust_env=False) as http:
        while address:
            answer = await http.get(address)
            assert answer.status_code == 200, answer.text
            found += [entry["name"] for entry in answer.json()["default"]]
            address = str(httpx.URL(answer.url).join(answer.links["next"]["url"])) if answer.links else ""
    assert found == ["day", "minute", "hour"]


FAIR_SHARE = """
nodes: [{name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 1}}]
virtualClusters: {default: {capacity: 100, fairShare: {halfLifeHours: 168}, placement: spread}}
"""
SLEEPS = [{"name": "main", "command": "sleep 600", "gpuNumber": 1}]


async def test_where_users_share_who_has_used_less_comes_first_and_everybody_is_told(
    module_scheduler: StartScheduler,
) -> None:
    scheduler = module_scheduler(cluster=FAIR_SHARE)
    alice = checked(Client(scheduler.url, "token-of-alice"))
    bob = checked(Client(scheduler.url, "token-of-bob"))
    async with alice as first, bob as second:
        for name in ("a1", "a2", "a3"):
            await first.submit(hello_job(name, taskRoles=SLEEPS))
        await second.submit(hello_job("b1", taskRoles=SLEEPS))
        entries = (await second.queue())["default"]
        assert [entry["user"] for entry in entries] == ["bob", "alice", "alice"]
        assert "who has used less comes first (bob: 0.0 GPU hours lately)" in str(entries[0]["waitingReason"])
        for client, percent in ((first, 100), (second, 0)):
            cluster = (await client.virtual_clusters())["default"]
            assert (cluster["fairShareHours"], cluster["placement"]) == (168, "spread")
            assert cluster["usedLately"]["percent"] == percent


LEVELS = """
nodes: [{name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 1}}]
virtualClusters: {default: {capacity: 100, leastAttained: {gpuHours: [0.5, 10]}}}
"""


async def test_where_there_are_levels_who_waits_is_told_its_own(module_scheduler: StartScheduler) -> None:
    scheduler = module_scheduler(cluster=LEVELS)
    async with checked(Client(scheduler.url, "token-of-alice")) as alice:
        for name in ("l1", "l2"):
            await alice.submit(hello_job(name, taskRoles=SLEEPS))
        (entry,) = (await alice.queue())["default"]
        assert "who has had less comes first (level 1 of 3: 0.0 GPU hours so far)" in str(
            entry["waitingReason"]
        )
        cluster = (await alice.virtual_clusters())["default"]
        assert cluster["levelGpuHours"] == [0.5, 10]
        assert not cluster["shortestRemaining"]
        assert "0.5, 10" in virtual_clusters_table({"default": cluster}, "en")


REMAINING = """
nodes: [{name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 1}}]
virtualClusters: {default: {capacity: 100, shortestRemaining: {}}}
"""


async def test_where_who_needs_least_comes_first_who_waits_is_told_what_it_needs(
    module_scheduler: StartScheduler,
) -> None:
    scheduler = module_scheduler(cluster=REMAINING)
    async with checked(Client(scheduler.url, "token-of-alice")) as alice:
        for name, hours in (("r1", 1), ("r2", 5), ("r3", 2)):
            limit = {"maxRunSeconds": 3600 * hours}
            await alice.submit(hello_job(name, taskRoles=SLEEPS, extras=limit))
        entries = (await alice.queue())["default"]
        assert [str(entry["name"]) for entry in entries] == ["r3", "r2"]
        assert "who needs least to its end comes first (about 2.0 GPU hours)" in str(
            entries[0]["waitingReason"]
        )
        cluster = (await alice.virtual_clusters())["default"]
        assert cluster["shortestRemaining"]
        assert "yes" in virtual_clusters_table({"default": cluster}, "en")
