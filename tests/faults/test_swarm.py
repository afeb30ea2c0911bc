"""Bad days of a Swarm: a real scheduler on three real nodes, one of which dies, is cut off, or is drained."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pai_scheduler.testing.lab import processes_running
from tests.testbed.disk import mount_disk, unmount
from tests.testbed.fixtures import provide
from tests.testbed.postgres import with_passfile
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.swarm import Node, Swarm

CLUSTER = """
virtualClusters:
  default: {capacity: 100}
registries: ["*"]
"""
OPTIONS = ("--node-patience", "4")
PATIENCE = 90.0


@pytest.fixture
def scheduler(swarm_scheduler: Callable[..., RunningScheduler]) -> RunningScheduler:
    """Start a scheduler on the Swarm's manager for which a node is lost after four seconds."""
    running = swarm_scheduler(*OPTIONS, cluster=CLUSTER)
    Api(running).wait_until_all_are_ready()
    return running


@pytest.fixture
def patient(swarm_scheduler: Callable[..., RunningScheduler]) -> RunningScheduler:
    """Start one for which no node is lost, however long an agent takes to answer on a busy machine."""
    running = swarm_scheduler("--node-patience", "60", cluster=CLUSTER)
    Api(running).wait_until_all_are_ready()
    return running


@pytest.fixture
def api(scheduler: RunningScheduler) -> Api:
    """Ask the scheduler as alice."""
    return Api(scheduler)


class Api:
    """What alice asks a scheduler."""

    def __init__(self, scheduler: RunningScheduler) -> None:
        self._scheduler = scheduler

    def get(self, path: str) -> Any:
        """Return an answer."""
        headers = {"Authorization": "Bearer token-of-alice"}
        url = f"{self._scheduler.url}/api/v1{path}"
        response = httpx.get(url, headers=headers, trust_env=False, timeout=30)
        if response.status_code == 503:  # a standby that does not lead yet
            return None
        response.raise_for_status()
        return response.json() if "json" in response.headers["Content-Type"] else response.text

    def set_schedulable(self, node: str, schedulable: bool) -> None:
        """Close a node for new tasks, or open it again, as an administrator."""
        headers = {"Authorization": "Bearer token-of-root"}
        url = f"{self._scheduler.url}/api/v1/nodes/{node}"
        body = {"schedulable": schedulable, **({} if schedulable else {"reason": "disk is replaced"})}
        httpx.put(url, json=body, headers=headers, trust_env=False, timeout=30).raise_for_status()

    def submit(self, job: dict[str, object]) -> None:
        """Submit a job."""
        headers = {"Authorization": "Bearer token-of-alice"}
        url = f"{self._scheduler.url}/api/v1/jobs"
        response = httpx.post(url, json=job, headers=headers, trust_env=False, timeout=30)
        assert response.status_code == 202, response.text

    def states(self) -> dict[str, str]:
        """Return the state of each node."""
        return {node["name"]: node["state"] for node in self.get("/nodes") or ()}

    def job(self, name: str) -> Any:
        """Return a job as it is."""
        return self.get(f"/user/alice/jobs/{name}")

    def attempts(self, name: str) -> list[str | None]:
        """Return why each attempt of a job has ended."""
        return [attempt["reason"] for attempt in self.get(f"/user/alice/jobs/{name}/attempts")]

    def log(self, name: str, task: int) -> str:
        """Return what a worker has written."""
        return str(self.get(f"/user/alice/jobs/{name}/taskRoles/worker/tasks/{task}/logs/all"))

    def places(self, name: str) -> list[str]:
        """Return the node of each worker."""
        tasks = self.job(name)["taskRoles"]["worker"]["taskStatuses"]
        return [task["node"] for task in tasks]

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds."""
        give_up = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < give_up, self.states()
            time.sleep(0.1)

    def wait_until_all_are_ready(self) -> None:
        """Wait until every node may get something."""
        self.wait_for(lambda: self.states() == dict.fromkeys(("node-a", "node-b", "node-c"), "READY"))

    def runs(self, name: str) -> bool:
        """Return whether all of a job runs."""
        return bool(self.job(name)["jobStatus"]["subState"] == "RUNNING")

    def has_ended(self, name: str) -> bool:
        """Return whether a job is over, and somebody there who knows."""
        try:
            job = self.job(name)
        except httpx.TimeoutException:  # it begins to lead, and the Swarm looks for a leader of its own, too
            return False
        return job is not None and bool(job["jobStatus"]["subState"] == "ENDED")


def workers(name: str, command: str, count: int = 2, cores: int = 2) -> dict[str, object]:
    """Return a job whose workers are on a node each: every one takes all cores of its node, unless told."""
    role = {"name": "worker", "taskNumber": count, "cpuNumber": cores, "memoryMB": 256, "command": command}
    return {"jobName": name, "image": "local/debian:bookworm", "taskRoles": [role]}


def other_than_the_manager(swarm: Swarm, names: list[str]) -> Node:
    """Return a node of these that does not manage the Swarm."""
    return swarm.node(next(name for name in names if name != swarm.manager.name))


def test_the_tasks_of_a_node_that_dies_are_lost_and_tried_again_at_once_elsewhere(
    three_nodes: Swarm, api: Api
) -> None:
    first = "case $PAI_CONTAINER_ID in *-0-worker-*) echo first; exec sleep 100000;; esac; echo next"
    api.submit(workers("pair", first))
    api.wait_for(lambda: api.runs("pair") and "first" in api.log("pair", 0) + api.log("pair", 1))
    node = other_than_the_manager(three_nodes, api.places("pair"))
    node.power_off()
    try:
        api.wait_for(lambda: api.has_ended("pair"))
        job = api.job("pair")
        assert job["jobStatus"]["state"] == "SUCCEEDED"
        assert job["jobStatus"]["retries"] == 1
        attempts = api.get("/user/alice/jobs/pair/attempts")
        assert attempts[0]["exitCode"] == -7111
        assert node.name not in api.places("pair")
        assert api.states()[node.name] == "LOST"
    finally:
        node.power_on()
    api.wait_for(lambda: api.states()[node.name] == "READY")


def test_a_node_that_was_cut_off_for_a_moment_has_lost_nothing(
    three_nodes: Swarm, patient: RunningScheduler
) -> None:
    api = Api(patient)
    count = "n=0; while [ $n -lt 60 ]; do n=$((n + 1)); echo line $n; sleep 0.1; done"
    api.submit(workers("count", count))
    api.wait_for(lambda: api.runs("count") and "line 3\n" in api.log("count", 1))
    # Swarm needs a while to give a node that has just come back its networks: the first start may have failed
    before = api.attempts("count")
    node = other_than_the_manager(three_nodes, api.places("count"))
    node.cut_off()
    time.sleep(2)
    node.heal()
    api.wait_for(lambda: api.has_ended("count"))
    assert api.attempts("count") == [*before[:-1], "All tasks have completed."]
    assert api.job("count")["jobStatus"]["state"] == "SUCCEEDED"
    for task in range(2):
        assert api.log("count", task) == "".join(f"line {number}\n" for number in range(1, 61))


def test_what_runs_on_a_node_that_was_cut_off_for_long_is_ended_when_it_is_back(
    three_nodes: Swarm, api: Api
) -> None:
    sleep = "sleep 100000.4711"
    first = f"case $PAI_CONTAINER_ID in *-0-worker-*) echo first; exec {sleep};; esac; sleep 4"
    api.submit(workers("long", first))
    api.wait_for(lambda: api.runs("long") and len(processes_running(sleep)) == 2)
    node = other_than_the_manager(three_nodes, api.places("long"))
    node.cut_off()
    try:
        api.wait_for(lambda: api.job("long")["jobStatus"]["retries"] == 1)
        api.wait_for(lambda: len(processes_running(sleep)) == 1)  # nobody can end this one yet
    finally:
        node.heal()
    api.wait_for(lambda: not processes_running(sleep))
    api.wait_for(lambda: api.has_ended("long"))
    assert api.job("long")["jobStatus"]["state"] == "SUCCEEDED"


def test_nothing_new_comes_to_a_node_that_is_paused_or_drained_and_what_runs_goes_on(
    three_nodes: Swarm, api: Api
) -> None:
    api.submit(workers("stays", "echo here; sleep 6", 1))
    api.wait_for(lambda: api.runs("stays"))
    (place,) = api.places("stays")
    for availability, state in (("pause", "PAUSED"), ("drain", "DRAINED")):
        three_nodes.set(place, Availability=availability)
        try:
            api.wait_for(lambda state=state: api.states()[place] == state)  # type: ignore[misc]
            api.submit(workers(f"other-{availability}", "true", 1))
            api.wait_for(lambda name=f"other-{availability}": api.has_ended(name))  # type: ignore[misc]
            assert api.places(f"other-{availability}") != [place]
        finally:
            three_nodes.set(place, Availability="active")
    api.wait_for(lambda: api.states()[place] == "READY")
    api.wait_for(lambda: api.has_ended("stays"))
    assert api.job("stays")["jobStatus"]["state"] == "SUCCEEDED"
    assert api.job("stays")["jobStatus"]["retries"] == 0


def test_nothing_new_comes_to_a_node_that_an_administrator_closed_and_what_runs_goes_on(
    scheduler: RunningScheduler, api: Api
) -> None:
    api.submit(workers("stays", "echo here; sleep 15", 1))
    api.wait_for(lambda: api.runs("stays"))
    (place,) = api.places("stays")
    api.set_schedulable(place, False)
    api.submit(workers("elsewhere", "true", 2))
    api.wait_for(lambda: api.has_ended("elsewhere"))
    assert place not in api.places("elsewhere")
    # all three at once: there is no room without it
    api.submit(workers("everywhere", "true", 3))
    scheduler.kill()
    scheduler.start()
    api.wait_until_all_are_ready()
    api.wait_for(lambda: api.has_ended("stays"))
    waits = api.job("everywhere")["jobStatus"]
    assert waits["state"] == "WAITING"
    assert f"{place} (closed by root: disk is replaced)" in str(waits)
    assert api.job("stays")["jobStatus"]["retries"] == 0
    api.set_schedulable(place, True)
    api.wait_for(lambda: api.has_ended("everywhere"))
    assert place in api.places("everywhere")


def test_a_scheduler_that_was_killed_takes_up_the_tasks_of_every_node(
    scheduler: RunningScheduler, api: Api
) -> None:
    count = "n=0; while [ $n -lt 60 ]; do n=$((n + 1)); echo line $n; sleep 0.1; done"
    api.submit(workers("goes-on", count, 3))
    api.wait_for(lambda: api.runs("goes-on") and "line 3\n" in api.log("goes-on", 2))
    scheduler.kill()
    time.sleep(1)
    scheduler.start()
    api.wait_for(lambda: api.has_ended("goes-on"))
    assert api.job("goes-on")["jobStatus"]["state"] == "SUCCEEDED"
    assert api.job("goes-on")["jobStatus"]["retries"] == 0
    for task in range(3):
        assert api.log("goes-on", task) == "".join(f"line {number}\n" for number in range(1, 61))


@pytest.mark.long
def test_engines_that_are_restarted_one_after_the_other_cost_an_attempt_only_of_what_runs_there(
    three_nodes: Swarm, api: Api
) -> None:
    names = ("first", "second", "third")
    for name in names:
        api.submit(workers(name, "echo here; sleep 100000", 1))
    api.wait_for(lambda: all(api.runs(name) for name in names))
    retries = dict.fromkeys(names, 0)
    for node in reversed(three_nodes.nodes):  # the manager last
        (there,) = (name for name in names if api.places(name) == [node.name])
        retries[there] += 1
        node.restart_docker()
        api.wait_for(lambda: {name: api.job(name)["jobStatus"]["retries"] for name in names} == retries)
        api.wait_until_all_are_ready()
        api.wait_for(lambda: all(api.runs(name) for name in names))
    assert {name: api.job(name)["jobStatus"]["retries"] for name in names} == dict.fromkeys(names, 1)


@pytest.mark.long
def test_agents_and_schedulers_that_are_killed_at_any_moment_lose_nothing_and_run_nothing_twice(
    three_nodes: Swarm, patient: RunningScheduler
) -> None:
    api = Api(patient)
    chance = random.Random(20261123)  # noqa: S311 (nothing secret)
    names = [f"job-{number}" for number in range(8)]
    for name in names:
        api.submit(workers(name, "echo begin; sleep 3; echo end"))
    for _ in range(12):
        time.sleep(chance.uniform(0, 1.5))
        victim: Any = chance.choice([*three_nodes.nodes, patient])
        if isinstance(victim, RunningScheduler):
            victim.kill()
            victim.start()
        else:
            victim.kill("agent")
            time.sleep(chance.uniform(0, 1))
            victim.start_agent(three_nodes.agent_port)
    api.wait_for(lambda: all(api.has_ended(name) for name in names))
    for name in names:
        status = api.job(name)["jobStatus"]
        assert (name, status["state"], status["retries"]) == (name, "SUCCEEDED", 0), api.attempts(name)
        assert [api.log(name, task) for task in range(2)] == ["begin\nend\n"] * 2


@pytest.fixture
def small_node(three_nodes: Swarm) -> Iterator[Node]:
    """Give a node's agent a disk of 40 MB for what it keeps of its tasks."""
    node, folder = three_nodes.node("node-b"), three_nodes.node("node-b").folder / "agent"
    node.kill("agent")
    provide(mount_disk, str(folder))
    node.start_agent(three_nodes.agent_port)
    yield node
    node.kill("agent")
    unmount(folder)
    node.start_agent(three_nodes.agent_port)


def test_the_task_that_fills_the_disk_of_its_node_is_ended_and_no_other(small_node: Node, api: Api) -> None:
    extras = {"placement": "spread"}
    calm = workers("calm", "echo begun; exec sleep 1000", 3, cores=1)
    api.submit({**calm, "extras": extras})
    api.wait_for(lambda: api.runs("calm"))
    # (the others write as much, to disks with room)
    line = "x" * 4000
    flood = workers("flood", f"yes {line} | head -c 100000000; exec sleep 1000", 3, cores=1)
    api.submit({**flood, "extras": extras})
    states: list[str] = []

    def has_ended() -> bool:
        # (what it wrote is removed soon after its end, and there is room again)
        states.append(api.states()[small_node.name])
        return api.has_ended("flood")

    api.wait_for(has_ended)
    job = api.job("flood")
    assert job["jobStatus"]["appExitSpec"]["code"] == 198
    assert "was filling it fastest" in job["jobStatus"]["appExitDiagnostics"]
    tasks = job["taskRoles"]["worker"]["taskStatuses"]
    assert [task["node"] for task in tasks if task["containerExitCode"] == 137] == [small_node.name]
    assert "FULL" in states
    assert api.job("calm")["jobStatus"]["subState"] == "RUNNING"
    assert set(api.places("calm")) == {"node-a", "node-b", "node-c"}


@pytest.fixture
def three_managers(three_nodes: Swarm) -> Iterator[Swarm]:
    """Make every node a manager; in the end one is left, the one that was."""
    for name in ("node-b", "node-c"):
        three_nodes.set(name, Role="manager")
    yield three_nodes
    for name in ("node-c", "node-b"):
        three_nodes.set(name, Role="worker")


@pytest.mark.long
def test_a_standby_on_another_machine_takes_over_when_the_leaders_machine_dies(
    three_managers: Swarm, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = three_managers.give_key(tmp_path / "data")
    options = ("--engine", "swarm", *OPTIONS, "--database", with_passfile(postgres_url, tmp_path))
    with contextlib.ExitStack() as stack:
        schedulers = []
        for node in three_managers.nodes[:2]:
            monkeypatch.setenv("DOCKER_HOST", node.host)
            (folder := tmp_path / node.name).mkdir()
            schedulers.append(RunningScheduler(folder, *options, cluster=CLUSTER, data_dir=data_dir))
            stack.callback(schedulers[-1].terminate)
        leader, standby = schedulers
        api = Api(leader)
        api.wait_until_all_are_ready()
        count = "n=0; while [ $n -lt 150 ]; do n=$((n + 1)); echo line $n; sleep 0.1; done"
        names = ("first", "second", "third")
        for name in names:
            api.submit(workers(name, count, 1))
        api.wait_for(lambda: all(api.runs(name) and "line 3\n" in api.log(name, 0) for name in names))
        places = {name: api.places(name)[0] for name in names}
        leader.kill()
        three_managers.manager.power_off()
        try:
            leads = Api(standby)
            leads.wait_for(lambda: all(leads.has_ended(name) for name in names))
            for name in names:
                status = leads.job(name)["jobStatus"]
                lost = places[name] == three_managers.manager.name
                assert (status["state"], status["retries"]) == ("SUCCEEDED", int(lost))
                assert leads.log(name, 0) == "".join(f"line {number}\n" for number in range(1, 151))
        finally:
            three_managers.manager.power_on()
        leader.start()  # it is the standby now
