"""Marks and groups come from the fixtures that a test asks for."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType

import pytest

from tests.testbed.postgres import Postgres
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.sorting import DAEMON_TYPES, FilesAndParts, group


@pytest.fixture
def anything() -> RunningScheduler | None:
    """Start nothing; what it says it gives is what counts."""
    return None


@pytest.fixture
def on_top(anything: object) -> object:
    return anything


@pytest.fixture
def postgres() -> Postgres | None:
    return None


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def marked(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("daemon") is not None


def test_what_starts_nothing_has_no_mark(request: pytest.FixtureRequest) -> None:
    assert not marked(request)
    assert group(request.node) == ""


@pytest.mark.usefixtures("on_top")
def test_a_fixture_that_gives_a_daemon_marks_all_that_is_built_on_it(request: pytest.FixtureRequest) -> None:
    assert marked(request)


@pytest.mark.usefixtures("postgres")
def test_what_tests_stop_and_start_is_one_workers(request: pytest.FixtureRequest) -> None:
    assert marked(request)
    assert group(request.node) == "postgres"
    assert request.node.nodeid.endswith("@postgres") == hasattr(request.config, "workerinput")


def test_a_parameter_stands_for_the_fixture_that_it_asks_for(
    request: pytest.FixtureRequest, either: str
) -> None:
    assert marked(request) == (either == "postgresql")
    assert group(request.node) == ("postgres" if either == "postgresql" else "")


def test_no_test_without_the_mark_starts_a_daemon(request: pytest.FixtureRequest) -> None:
    tests = (item for item in request.session.items if isinstance(item, pytest.Function))
    unmarked = [item for item in tests if item.get_closest_marker("daemon") is None]
    assert [item.nodeid for item in unmarked if makes_a_daemon(item.function)] == []
    fixtures = {
        fixture.func
        for item in unmarked
        for found in item._fixtureinfo.name2fixturedefs.values()
        for fixture in found
        if isinstance(fixture.func, FunctionType) and fixture.func.__module__.startswith("tests.")
    }
    assert [fixture.__qualname__ for fixture in fixtures if makes_a_daemon(fixture)] == []


def makes_a_daemon(function: FunctionType) -> bool:
    """Return whether a function makes what is of a daemon's type, or calls one of its module that does."""
    seen, coming = {function}, [function]
    while coming:
        one = coming.pop()
        used = {name for code in _codes(one.__code__) for name in code.co_names}
        if any(map(DAEMON_TYPES.fullmatch, used)):
            return True
        named = (one.__globals__.get(name) for name in used)
        own = (each for each in named if isinstance(each, FunctionType))
        near = {each for each in own if each.__module__ == one.__module__}
        coming += near - seen
        seen |= near
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


@pytest.mark.parametrize(
    ("test", "together"),
    [
        ("tests/a/test_x.py::test_it", "tests/a/test_x.py"),
        ("tests/a/test_x.py::test_it[a@b]", "tests/a/test_x.py"),
        ("tests/a/test_x.py::test_it@hdfs", "hdfs"),
        ("tests/a/test_x.py::test_it[a@b]@hdfs", "hdfs"),
    ],
)
def test_a_file_is_one_workers_unless_a_part_is(test: str, together: str) -> None:
    assert FilesAndParts._split_scope(FilesAndParts.__new__(FilesAndParts), test) == together
