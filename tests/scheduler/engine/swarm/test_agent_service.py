"""How the agent comes to each node of a real Swarm, and that only its scheduler is heard."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.engine.protocol import Ended, Started
from pai_scheduler.engine.swarm.agent_deployment import SERVICE, AgentPlan, deploy
from pai_scheduler.engine.swarm.certificates import Authority
from pai_scheduler.engine.swarm.connection import AgentConnection, AgentRefusedError, AgentUnreachableError
from pai_scheduler.engine.swarm.engine import SwarmEngine, SwarmSettings, members, why_agents_end
from pai_scheduler.engine.swarm.protocol import Open
from pai_scheduler.engine.swarm.tunnel import scheduler_tls
from pai_scheduler.server.doctor.checks import Agents, look_at_nodes
from pai_scheduler.server.engines import tunnel_servers
from pai_scheduler.testing.lab import Lab
from tests.testbed.docker import client
from tests.testbed.swarm import Node, Swarm

PORT = 7950


@pytest.fixture(scope="module")
def plan(three_nodes: Swarm, agent_image: str, runtime_image: str) -> AgentPlan:
    """Return what is to run on each node, in folders of its own."""
    folder = f"{three_nodes.folder}/{{{{.Node.Hostname}}}}"
    return AgentPlan(
        agent_image, runtime_image, PORT, f"{folder}/service", docker_socket=f"{folder}/docker.sock"
    )


@pytest.fixture
def authority(three_nodes: Swarm) -> Iterator[Authority]:
    """Remove from the Swarm what a test has brought."""
    yield Authority(three_nodes.secret)
    with client(three_nodes.manager.host) as manager:
        for service in manager.services.list(filters={"name": SERVICE}):
            service.remove()
        for node in three_nodes.nodes:
            with client(node.host) as engine:
                for container in engine.containers.list(all=True, ignore_removed=True):
                    # (Swarm may be removing it at the same time)
                    with contextlib.suppress(docker.errors.APIError):
                        container.remove(force=True)
        for secret in manager.secrets.list():
            secret.remove()


def agent_of(node: Node) -> str:
    """Return the id of the agent's container; empty where there is none."""
    with client(node.host) as engine:
        try:
            return str(engine.containers.get("pai-agent").id)
        except docker.errors.NotFound:
            return ""


async def wait_for(node: Node, *, other_than: str = "") -> str:
    """Wait until a node has an agent; return its container's id."""
    async with asyncio.timeout(90):
        while (found := await asyncio.to_thread(agent_of, node)) in ("", other_than):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    return found


async def test_the_agent_comes_to_every_node_and_stays_when_its_node_is_drained(
    three_nodes: Swarm, plan: AgentPlan, authority: Authority, tmp_path: Path, debian_image: str
) -> None:
    await asyncio.to_thread(deploy, plan, authority, three_nodes.manager.host)
    agents = [await wait_for(node) for node in three_nodes.nodes]
    credentials = authority.scheduler().write(tmp_path / "credentials")
    engine = SwarmEngine(
        tmp_path / "data",
        scheduler_tls(credentials),
        tunnel_servers(credentials, 1),
        Open("fedcba9876543210", LogKeeping()),
        SwarmSettings(host=three_nodes.manager.host, agent_port=PORT),
    )
    await engine.start()
    lab = await Lab.over(engine, debian_image)
    await lab.adopt([])
    try:
        task, ended = await lab.run("echo by an agent", node="node-c")
        assert isinstance(ended, Ended)
        assert (ended.exit_code, lab.output(task)) == (0, "by an agent\n")

        # the same again changes nothing
        await asyncio.to_thread(deploy, plan, authority, three_nodes.manager.host)
        with client(three_nodes.manager.host) as manager:
            (drained,) = (
                each for each in manager.nodes.list() if each.attrs["Description"]["Hostname"] == "node-c"
            )
            spec = drained.attrs["Spec"]
            drained.update({**spec, "Availability": "drain"})
            try:
                await asyncio.sleep(3)
                assert [await wait_for(node) for node in three_nodes.nodes] == agents
            finally:
                drained.reload()
                drained.update({**spec, "Availability": "active"})
    finally:
        await lab.clean()
        await engine.close()


async def test_an_agent_that_cannot_work_says_why_and_the_doctor_shows_it(
    three_nodes: Swarm, plan: AgentPlan, authority: Authority, tmp_path: Path
) -> None:
    other = f"{three_nodes.folder}/node-a/docker.sock"
    await asyncio.to_thread(deploy, replace(plan, docker_socket=other), authority, three_nodes.manager.host)
    with client(three_nodes.manager.host) as manager:
        (node_b,) = (member for member in members(manager).values() if member.name == "node-b")
        async with asyncio.timeout(90):
            while not (why := (await asyncio.to_thread(why_agents_end, manager)).get(node_b.id)):  # noqa: ASYNC110
                await asyncio.sleep(0.5)
        credentials = authority.scheduler().write(tmp_path / "credentials")
        agents = Agents("", PORT, tmp_path, credentials)
        ((_, findings),) = look_at_nodes(manager, agents, "node-b")
        said = [str(finding.text) for finding in await asyncio.to_thread(list, findings)]
    assert why.startswith("The Docker Engine at /var/run/docker.sock of this node does not know this")
    assert any(text.startswith("Its agent does not run: The Docker Engine at") for text in said)


@pytest.mark.long
async def test_a_new_version_replaces_the_agents_one_by_one_while_tasks_run_on(
    three_nodes: Swarm, plan: AgentPlan, authority: Authority, tmp_path: Path, debian_image: str
) -> None:
    manager = three_nodes.manager.host
    await asyncio.to_thread(deploy, plan, authority, manager)
    agents = {node.name: await wait_for(node) for node in three_nodes.nodes}
    credentials = authority.scheduler().write(tmp_path / "credentials")
    engine = SwarmEngine(
        tmp_path / "data",
        scheduler_tls(credentials),
        tunnel_servers(credentials, 1),
        Open("fedcba9876543211", LogKeeping()),
        SwarmSettings(host=manager, agent_port=PORT, patience=60),
    )
    await engine.start()
    lab = await Lab.over(engine, debian_image)
    await lab.adopt([])
    try:
        count = "n=0; while [ ! -e stop ]; do n=$((n + 1)); echo line $n; sleep 0.1; done"
        tasks = [await lab.start(count, node=node.name) for node in three_nodes.nodes]
        for task in tasks:
            await lab.printed(task, "line 3\n")
        await asyncio.to_thread(deploy, replace(plan, homes="/var/empty"), authority, manager)
        for node in three_nodes.nodes:
            await wait_for(node, other_than=agents[node.name])
        for task in tasks:
            # they have run on, and are still told of
            lines = lab.output(task).count("\n")
            await lab.printed(task, f"line {lines + 30}\n")
            assert [type(event) for event in lab.told(task)] == [Started]
            assert lab.output(task).startswith("".join(f"line {n}\n" for n in range(1, lines + 1)))
    finally:
        await lab.clean()
        await engine.close()


async def test_an_agent_hears_nobody_but_its_scheduler(three_nodes: Swarm, tmp_path: Path) -> None:
    node = three_nodes.nodes[1]
    own, other = Authority(three_nodes.secret), Authority(b"somebody else's secret, 32 bytes")
    strangers: list[ssl.SSLContext] = [
        scheduler_tls(other.scheduler().write(tmp_path / "other")),
        # an agent's own certificate, such as that of a node that was broken into
        scheduler_tls(own.agent().write(tmp_path / "agent")),
        _nobody(own, tmp_path / "nobody"),
    ]
    for tls in strangers:
        connection = AgentConnection(node.address, three_nodes.agent_port, tls)
        await connection.open()
        try:
            with pytest.raises(AgentUnreachableError):
                await connection.call("usage", ("a", 0, "b", 0), object, "no session")
        finally:
            await connection.close()
    known = AgentConnection(
        node.address, three_nodes.agent_port, scheduler_tls(own.scheduler().write(tmp_path / "own"))
    )
    await known.open()
    with pytest.raises(AgentRefusedError, match="there is no call"):
        await known.call("nothing", None, object, "no session")
    await known.close()


def _nobody(authority: Authority, folder: Path) -> ssl.SSLContext:
    """Return who shows no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.agent().write(folder))
    return context
