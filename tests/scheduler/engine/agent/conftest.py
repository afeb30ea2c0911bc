"""A small agent for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine.swarm.connection import AgentConnection

from .small_agent import SmallAgent


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[SmallAgent]:
    agent = SmallAgent(tmp_path / "agent")
    agent.start()
    yield agent
    await agent.close()


@pytest.fixture
async def connection(agent: SmallAgent) -> AsyncIterator[AgentConnection]:
    connection = agent.connection()
    await connection.open()
    yield connection
    await connection.close()
