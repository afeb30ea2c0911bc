"""The Docker engine: what every engine does, and what only containers can do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine.docker import DockerEngine

from .conformance import EngineConformance, Reopen


@pytest.fixture
async def reopen(docker_host: str, tmp_path: Path) -> AsyncIterator[Reopen]:
    engines: list[DockerEngine] = []

    async def open_engine() -> DockerEngine:
        if engines:
            await engines[-1].close()  # what is left of a killed service writes nothing any more
        engines.append(DockerEngine(tmp_path / "data", host=docker_host))
        await engines[-1].start()
        return engines[-1]

    yield open_engine
    await engines[-1].close()


@pytest.fixture
async def engine(reopen: Reopen) -> DockerEngine:
    opened = await reopen()
    assert isinstance(opened, DockerEngine)
    return opened


@pytest.fixture
def image(debian_image: str) -> str:
    return debian_image


class TestDockerEngine(EngineConformance):
    """The conformance suite."""
