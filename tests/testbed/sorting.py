"""What a test needs, as its fixtures tell: its mark, its place in the order, and its worker.

A plugin of the root conftest. Where pytest-xdist runs the tests, each file stays with one worker, and so does
all that uses one of the costly parts: there is one of a kind then, and nobody stops it under another's hands.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

#: Fixtures that start a daemon or a browser, or install us anew; and so do all that give one of these types.
DAEMONS = frozenset({"docker_host", "hdfs", "postgres", "chromium", "light"})
DAEMON_TYPES = re.compile(
    r"\b(Chaos|Daemon|Gate|Hdfs|House|Hub|Installation|Postgres|Prometheus|RunningHub|RunningLab|RunningScheduler|RunningSshd|SharedLab|StartScheduler|Swarm|TaskServer|WarmScheduler)\b"
)
#: Parts that take long to start, or that tests stop and start: the tests with one are one worker's.
ONE_OF_A_KIND = ("hdfs", "postgres", "house", "boxes", "three_nodes")
#: What a parametrised fixture or test asks for by name while it is set up.
BY_PARAMETER = {"docker": "docker_host", "swarm": "three_nodes", "apache": "hdfs", "postgresql": "postgres"}


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give a worker's folder a short name: the path of a socket has room for 107 bytes."""
    if hasattr(config, "workerinput"):
        folder = Path(config.option.basetemp)
        config.option.basetemp = str(folder.with_name(folder.name.removeprefix("popen-gw")))


def parts(item: pytest.Item) -> frozenset[str]:
    """Return the names of all fixtures that a test uses, those too that a parameter stands for."""
    callspec = getattr(item, "callspec", None)
    values = callspec.params.values() if callspec else ()
    asked = {BY_PARAMETER[value] for value in values if isinstance(value, str) and value in BY_PARAMETER}
    return frozenset(getattr(item, "fixturenames", ())) | asked


def starts_a_daemon(item: pytest.Item) -> bool:
    """Return whether something is started for a test that takes seconds, and memory beside the tests' own."""
    info = getattr(item, "_fixtureinfo", None)  # (pytest has no public way to them)
    known = info.name2fixturedefs if info else {}
    given = (fixture.func.__annotations__.get("return", "") for found in known.values() for fixture in found)
    return bool(parts(item) & DAEMONS) or any(DAEMON_TYPES.search(str(kind)) for kind in given)


def group(item: pytest.Item) -> str:
    """Return what a test shares with those that the same worker runs: a part of one kind, or its file."""
    needed = parts(item)
    return next((part for part in ONE_OF_A_KIND if part in needed), "")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected out of garbage collections: it is much, and stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# before pytest-xdist writes the groups behind the names of tests
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests; in parallel, begin with the costly ones, so that the workers end at the same time."""
    for item in items:
        if starts_a_daemon(item):
            item.add_marker("daemon")
        if shared := group(item):
            item.add_marker(pytest.mark.xdist_group(shared))
    if hasattr(config, "workerinput"):
        cost: dict[str, int] = {}
        for item in items:
            cost[_unit(item)] = max(cost.get(_unit(item), 0), _cost(item))
        # in a unit the drills come last: what they cut off is not as it was (Docker: no logs of that node)
        items.sort(key=lambda item: (-cost[_unit(item)], _cost(item)))


def _unit(item: pytest.Item) -> str:
    return group(item) or str(item.path)


def _cost(item: pytest.Item) -> int:
    # the drills have a time limit of their own
    if item.get_closest_marker("timeout"):
        return 3
    if group(item):
        return 2
    return 1 if item.get_closest_marker("daemon") else 0


class FilesAndParts(LoadScopeScheduling):
    """Hand out the files one after the other, and as one what `group` names."""

    def _split_scope(self, nodeid: str) -> str:
        # (pytest-xdist puts the group behind an @)
        _, at, shared = nodeid.rpartition("@")
        return shared if at and "]" not in shared and "/" not in shared else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesAndParts:
    """Choose how workers get their tests."""
    config.option.loadscopereorder = False
    return FilesAndParts(config, log)
