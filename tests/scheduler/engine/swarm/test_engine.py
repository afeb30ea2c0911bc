"""The engine for many hosts, over a real Swarm of three: what every engine promises, and what nodes add."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from pai_scheduler.cluster.shared_folders import SharedMount
from pai_scheduler.engine.protocol import EndCause
from pai_scheduler.engine.swarm.engine import SwarmEngine
from pai_scheduler.testing.engine import Reopen, ServiceConformance, TaskConformance
from pai_scheduler.testing.lab import Lab, make_task
from tests.scheduler.engine.swarm.gangs import ASKED, OpenSwarm


class OnSwarm:
    """What the conformance suite asks for."""

    @pytest.fixture
    def reopen(self, open_swarm: OpenSwarm) -> Reopen:
        return open_swarm

    @pytest.fixture
    async def engine(self, open_swarm: OpenSwarm) -> SwarmEngine:
        return await open_swarm()

    @pytest.fixture
    def image(self, debian_image: str) -> str:
        return debian_image


class TestSwarmEngine(OnSwarm, ServiceConformance):
    """What the service is promised goes through the Swarm, the agents and the copies of logs."""


# (on each node the agent runs tasks with the Docker engine: docker/test_engine.py holds it to the same)
@pytest.mark.long
class TestTasksOfASwarm(OnSwarm, TaskConformance):
    """What is promised of tasks where they run."""


@pytest.fixture
async def swarm_lab(open_swarm: OpenSwarm, debian_image: str) -> AsyncIterator[Lab]:
    """Work on a Swarm."""
    lab = await Lab.over(await open_swarm(), debian_image)
    await lab.adopt([])
    yield lab
    await lab.clean()


async def test_the_nodes_are_those_of_the_swarm(swarm_lab: Lab) -> None:
    nodes = await swarm_lab.engine.nodes()
    assert [(node.name, node.ready) for node in nodes] == [
        ("node-a", True),
        ("node-b", True),
        ("node-c", True),
    ]


async def test_the_tasks_of_a_gang_reach_each_other_by_name_and_address_across_nodes(swarm_lab: Lab) -> None:
    serve = "echo -n hello > greeting; exec python3 -m http.server 8000"
    fetch = (
        "python3 -c 'import time, urllib.request as u\n"
        'for name in ("main-0", "{address}"):\n'
        "    for _ in range(100):\n"
        '        try: print(u.urlopen(f"http://{{name}}:8000/greeting").read().decode()); break\n'
        "        except OSError: time.sleep(0.1)'"
    )
    first = make_task()
    engine = swarm_lab.engine
    launches = await swarm_lab.prepare(
        swarm_lab.make(serve, task=first, node="node-b"),
        swarm_lab.make("true", task=first._replace(index=1), node="node-c"),
    )
    for launch in launches:
        command = fetch.format(address=launches[0].address) if launch.node == "node-c" else launch.command
        await engine.launch(replace(launch, command=command))
    assert (await swarm_lab.ended(launches[1].task)).exit_code == 0
    assert swarm_lab.output(launches[1].task) == "hello\nhello\n"


async def test_a_home_in_a_shared_folder_is_the_same_on_every_node(
    open_swarm: OpenSwarm, debian_image: str, tmp_path: Path
) -> None:
    homes = tmp_path / "homes"
    homes.mkdir()
    lab = await Lab.over(await open_swarm(replace(ASKED, homes=homes)), debian_image)
    await lab.adopt([])
    await lab.run("echo mine > /home/me/file", home="/home/me", node="node-a")
    task, ended = await lab.run("cat /home/me/file", home="/home/me", node="node-b")
    assert (ended.exit_code, lab.output(task)) == (0, "mine\n")
    other, ended = await lab.run("ls -A /home/me", home="/home/me", node="node-b", user="bob")
    assert (ended.exit_code, lab.output(other)) == (0, "")
    await lab.clean()


async def test_shared_folders_are_those_of_each_node_and_a_missing_one_is_said(
    swarm_lab: Lab, tmp_path: Path
) -> None:
    # (the nodes of the tests have one file system)
    for name in ("sets", "vision"):
        (tmp_path / name).mkdir()
    (tmp_path / "sets" / "mnist").write_text("numbers\n")
    shared = (
        SharedMount("sets", str(tmp_path / "sets"), "/data/sets"),
        SharedMount("groups", str(tmp_path / "vision"), "/data/vision", read_only=False, optional=True),
        SharedMount("groups", str(tmp_path / "speech"), "/data/speech", read_only=False, optional=True),
    )
    command = "echo x > /data/vision/$PAI_NODE; cat /data/sets/mnist; touch /data/sets/x || ls /data"
    for node in ("node-a", "node-b"):
        task, ended = await swarm_lab.run(command, node=node, shared=shared, env={"PAI_NODE": node})
        assert (ended.exit_code, swarm_lab.output(task, "stdout")) == (0, "numbers\nsets\nvision\n")
    assert sorted(file.name for file in (tmp_path / "vision").iterdir()) == ["node-a", "node-b"]

    missing = SharedMount("sets", str(tmp_path / "nowhere"), "/data/sets")
    _, ended = await swarm_lab.run("true", node="node-b", shared=(missing,))
    assert ended.cause is EndCause.LAUNCH_FAILED
    assert "The shared folder sets is not on the machine node-b" in str(ended.reason)


async def test_a_home_that_is_on_another_node_is_refused_and_not_begun_anew(swarm_lab: Lab) -> None:
    await swarm_lab.run("echo mine > /home/me/file", home="/home/me", node="node-b", user="carol")
    _, refused = await swarm_lab.run("cat /home/me/file", home="/home/me", node="node-c", user="carol")
    assert refused.cause is EndCause.REFUSED
    assert "Your home is on the node node-b only" in str(refused.reason)
    again, ended = await swarm_lab.run("cat /home/me/file", home="/home/me", node="node-b", user="carol")
    assert (ended.exit_code, swarm_lab.output(again)) == (0, "mine\n")
