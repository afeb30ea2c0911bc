"""A start that is cancelled, on a real Hub with a real scheduler."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub, open_hub, wait_for

WAITING = {"gpus": 3, "gpu_type": "TITANX"}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with open_hub(tmp_path_factory.mktemp("hub")) as hub:
        assert hub.start_server("holder", WAITING).is_success
        hub.wait_ready("holder")
        yield hub


def watch(hub: Hub, name: str) -> tuple[threading.Thread, list[dict[str, Any]]]:
    """Follow a start in another thread until its stream ends, as an open page does."""
    told: list[dict[str, Any]] = []

    def hear(event: dict[str, Any]) -> bool:
        told.append(event)
        return False

    thread = threading.Thread(target=hub.progress, args=(name, hear))
    thread.start()
    wait_for(lambda: told, "the page to be told anything", hub.log)
    return thread, told


def test_a_start_that_is_cancelled_is_told_as_cancelled_and_never_as_ready(hub: Hub) -> None:
    assert hub.start_server("carol", WAITING).status_code == 202
    wait_for(lambda: hub.running_jobs("carol"), "carol's job")
    page, told = watch(hub, "carol")
    hub.stop_server("carol")
    page.join()

    assert not any("ready" in event for event in told), told
    assert told[-1].get("failed"), told
    assert hub.server("carol") == {}
    assert hub.running_jobs("carol") == []


def test_a_start_can_be_cancelled_after_the_hub_was_killed(hub: Hub) -> None:
    assert hub.start_server("carol", WAITING).status_code == 202
    wait_for(lambda: hub.running_jobs("carol"), "carol's job")
    hub.kill()
    hub.start()
    page, told = watch(hub, "carol")
    hub.stop_server("carol")
    page.join()

    assert not any("ready" in event for event in told), told
    assert hub.server("carol") == {}
    assert hub.running_jobs("carol") == []
    # and there is nothing left in the way of another
    assert hub.start_server("carol", {"cpus": 1}).is_success
    hub.wait_ready("carol")
