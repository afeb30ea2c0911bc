"""Engines over a real Swarm of three."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine.swarm.certificates import Authority
from pai_scheduler.engine.swarm.engine import SwarmEngine, SwarmSettings
from pai_scheduler.engine.swarm.protocol import Open
from pai_scheduler.engine.swarm.tunnel import scheduler_tls
from pai_scheduler.server.engines import tunnel_servers
from tests.scheduler.engine.swarm.gangs import ASKED, OpenSwarm
from tests.testbed.swarm import Swarm


@pytest.fixture
async def open_swarm(three_nodes: Swarm, tmp_path: Path) -> AsyncIterator[OpenSwarm]:
    """Open one engine after the other over the same state; the one before is let go first."""
    engines: list[SwarmEngine] = []
    credentials = Authority(three_nodes.secret).scheduler().write(tmp_path / "credentials")

    async def open_engine(asked: Open = ASKED, **options: object) -> SwarmEngine:
        if engines:
            await engines[-1].close()
        settings = SwarmSettings(
            host=three_nodes.manager.host,
            agent_port=three_nodes.agent_port,
            **options,  # type: ignore[arg-type]
        )
        engine = SwarmEngine(
            tmp_path / "data", scheduler_tls(credentials), tunnel_servers(credentials, 1), asked, settings
        )
        await engine.start()
        engines.append(engine)
        return engine

    yield open_engine
    if engines:
        await engines[-1].adopt({})
        await engines[-1].close()
