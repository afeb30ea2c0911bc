"""What the host of a node's engine tells the scheduler that has the session, and whom it refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.cluster.node import DiskSpace, NodeState
from pai_scheduler.engine.agent.host import EngineHost, SessionError
from pai_scheduler.engine.protocol import EngineError, NodesChanged
from pai_scheduler.engine.swarm.protocol import Heard, Listen, Open, read_event
from pai_scheduler.testing.lab import make_task
from tests.scheduler.engine.agent.stand_in import Agent

INSTANCE = "0123456789abcdef"


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "agent")


async def test_nothing_new_comes_to_a_node_whose_disk_is_almost_full(
    agent: Agent, small_disk: Path, tmp_path: Path
) -> None:
    agent.host = EngineHost(agent.make, tmp_path / "agent", disks=[small_disk])
    opened = await agent.host.open(Open("0123456789abcdef", LogKeeping(), least_free_mb=8))
    assert [node.state for node in opened.nodes] == [NodeState.READY]
    last = 0

    async def told() -> NodeState:
        """Return the state that is told next."""
        nonlocal last
        while True:
            heard = await agent.host.listen(opened.session, Listen(last, 0))
            last = heard.last
            for event in map(read_event, heard.events):
                assert isinstance(event, NodesChanged)
                return event.nodes[0].state

    (small_disk / "data").write_bytes(bytes(39 * 2**20))
    assert await told() is NodeState.FULL
    # in a session that begins later, too, and whatever else changes
    opened, last = await agent.host.open(Open("0123456789abcdef", LogKeeping(), least_free_mb=8)), 0
    assert [node.state for node in opened.nodes] == [NodeState.FULL]
    (small_disk / "data").unlink()
    assert await told() is NodeState.READY
    await agent.host.close()


async def test_the_room_on_a_node_s_disk_is_told_where_it_changed_and_comes_with_other_news(
    agent: Agent, small_disk: Path, tmp_path: Path
) -> None:
    agent.host = EngineHost(agent.make, tmp_path / "agent", disks=[tmp_path, small_disk])
    opened = await agent.host.open(Open("0123456789abcdef", LogKeeping()))
    assert opened.disk is not None
    assert opened.disk.free_mb == opened.disk.total_mb == 40
    engine, task = agent.engines[-1], make_task()

    async def listen(after: int, answer: int) -> Heard:
        return await agent.host.listen(opened.session, Listen(after, answer))

    waiting = asyncio.create_task(listen(0, 0))
    (small_disk / "data").write_bytes(bytes(10 * 2**20))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    engine.on_output(task)
    lost = await waiting
    assert lost.disk == DiskSpace(30, 40)
    # that answer did not come: all of it is told again
    again = await listen(0, 0)
    assert (again.output, again.disk) == ((task,), DiskSpace(30, 40))
    # it did come: what has not changed is told no more
    engine.on_output(task)
    assert (await listen(again.last, again.answer)).disk is None
    await agent.host.close()


async def test_what_a_lost_answer_told_is_told_again(agent: Agent) -> None:
    opened = await agent.host.open(Open("0123456789abcdef", LogKeeping()))
    engine, task = agent.engines[-1], make_task()

    async def listen(after: int, answer: int) -> Heard:
        return await agent.host.listen(opened.session, Listen(after, answer))

    engine.on_output(task)
    lost = await listen(0, 0)
    assert lost.output == (task,)
    again = await listen(0, 0)
    assert again.output == (task,)
    # that one came: nothing is left to tell, until there is news
    waiting = asyncio.create_task(listen(again.last, again.answer))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    # who asks again has given up the question before, which takes no news away any more
    latest = asyncio.create_task(listen(again.last, again.answer))
    assert (await waiting).output == ()
    engine.on_output(task)
    assert (await latest).output == (task,)
    await agent.host.close()


async def test_a_session_ends_the_one_before_and_begins_with_an_engine_of_its_own(agent: Agent) -> None:
    first = await agent.host.open(Open(INSTANCE, LogKeeping()))
    waiting = asyncio.create_task(agent.host.listen(first.session, Listen(0, 0)))
    second = await agent.host.open(Open(INSTANCE, LogKeeping()))
    with pytest.raises(SessionError):
        await waiting
    for name in (first.session, "", second.session[:-1]):
        with pytest.raises(SessionError):
            agent.host.engine_of(name)
    assert agent.host.engine_of(second.session) is agent.engines[1]
    await agent.host.close()
    with pytest.raises(SessionError):
        agent.host.engine_of(second.session)


async def test_a_scheduler_that_was_overtaken_is_refused_also_by_an_agent_that_was_started_anew(
    agent: Agent,
) -> None:
    leads = await agent.host.open(Open(INSTANCE, LogKeeping(), generation=2))
    for host in (agent.host, EngineHost(agent.make, agent.folder)):
        with pytest.raises(EngineError, match="Another scheduler has taken the lead"):
            await host.open(Open(INSTANCE, LogKeeping(), generation=1))
    assert agent.host.engine_of(leads.session), "the one that leads keeps its session"
    # another installation counts for itself
    await agent.host.open(Open("fedcba9876543210", LogKeeping(), generation=1))
    await agent.host.close()


async def test_where_an_engine_cannot_work_there_is_no_session(agent: Agent) -> None:
    agent.refuses = True
    with pytest.raises(EngineError, match="no Docker"):
        await agent.host.open(Open(INSTANCE, LogKeeping()))
    agent.refuses = False
    assert (await agent.host.open(Open(INSTANCE, LogKeeping()))).nodes
    await agent.host.close()


async def test_what_a_scheduler_has_confirmed_is_told_no_more_and_the_rest_again(agent: Agent) -> None:
    opened = await agent.host.open(Open(INSTANCE, LogKeeping()))
    tasks = [make_task(index=index) for index in range(3)]
    await agent.engines[-1].adopt(dict.fromkeys(tasks, ""))

    async def told(after: int) -> list[str]:
        heard = await agent.host.listen(opened.session, Listen(after, 0))
        assert heard.last == 3
        return [event.task.hostname for event in map(read_event, heard.events) if hasattr(event, "task")]

    async with asyncio.timeout(30):
        while (await agent.host.listen(opened.session, Listen(0, 0))).last < 3:  # noqa: ASYNC110 (its task runs)
            await asyncio.sleep(0)
    assert await told(0) == ["main-0", "main-1", "main-2"]
    assert await told(2) == ["main-2"]
    assert await told(0) == ["main-2"], "what was confirmed is gone"
    await agent.host.close()
