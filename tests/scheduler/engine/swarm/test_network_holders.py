"""What a Swarm says no to is no harm. What holding does: `test_overlay_networks.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.swarm.networks import NetworkHolders
from tests.testbed.swarm import Swarm


@pytest.fixture
async def holders(three_nodes: Swarm, runtime_image: str) -> AsyncIterator[NetworkHolders]:
    """Hold networks of a real Swarm."""
    api = DockerApi(three_nodes.manager.host)
    await api.open()
    yield NetworkHolders(api, "fedcba9876543210", runtime_image)
    await api.close()


async def test_a_network_that_is_not_there_is_not_held_and_the_log_says_so(
    holders: NetworkHolders, caplog: pytest.LogCaptureFixture
) -> None:
    await holders.hold("pai-spare-of-nobody")
    assert "the network pai-spare-of-nobody is not set up in advance" in caplog.text


async def test_a_network_that_is_not_held_is_let_go_without_a_word(
    holders: NetworkHolders, caplog: pytest.LogCaptureFixture
) -> None:
    await holders.let_go("pai-spare-of-nobody")
    await holders.let_go_all()
    assert caplog.text == ""
