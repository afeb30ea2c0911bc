"""Functions that run in containers, whose image has Python and nothing of ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pai_scheduler.client import remote
from tests.testbed.scheduler import RunningScheduler


def test_a_function_runs_in_an_image_that_has_neither_cloudpickle_nor_us(
    docker_host: str,
    debian_image: str,
    own_scheduler: Callable[..., RunningScheduler],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    scheduler = own_scheduler("--engine", "docker")

    def look(number: int) -> tuple[int, bool]:
        import importlib.util

        return number + 1, importlib.util.find_spec("pai_scheduler") is None

    far = remote(image=debian_image, memory_mb=128, url=scheduler.url, token="token-of-alice", locale="en")(
        look
    )
    assert far(1) == (2, True)
    assert list(far.map([1, 2])) == [(2, True), (3, True)]
