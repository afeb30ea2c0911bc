"""The scheduler's own log, for people and for programs."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest

from pai_scheduler import logging_config
from pai_scheduler.job.task import TaskRef
from pai_scheduler.logging_config import about

TASK = TaskRef("abc", 2, "worker", 1)
Log = Callable[[str], io.StringIO]


@pytest.fixture
def log() -> Iterator[Log]:
    """Set the log up, in the form that is asked for, and return what is written."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level

    def set_up(form: str) -> io.StringIO:
        stream = io.StringIO()
        root.handlers.clear()
        logging_config.set_up("info", form, stream)
        return stream

    yield set_up
    root.handlers[:] = before
    root.setLevel(level)
    logging.captureWarnings(False)


def test_a_line_for_programs_is_one_object_with_what_it_is_about(log: Log) -> None:
    stream = log("json")
    with about(TASK, user="王 小/明", node="a"):
        logging.getLogger("x.y").warning("it took %d s,\nor so", 3, extra={"ms": 1.5})
    (line,) = stream.getvalue().splitlines()
    told = json.loads(line)
    assert told.pop("time").endswith("+00:00")
    assert told == {
        "level": "warning",
        "logger": "x.y",
        "message": "it took 3 s,\nor so",
        "job": "abc",
        "attempt": 2,
        "task": "worker-1",
        "user": "王 小/明",
        "node": "a",
        "ms": 1.5,
    }


def test_a_line_for_people_has_the_same_at_its_end(log: Log) -> None:
    stream = log("text")
    with about(TASK, user="a b", jobName='"=\n'):
        logging.getLogger("x").info("done")
    assert stream.getvalue().rstrip("\n").partition(" ")[2] == (
        r'INFO x: done job=abc attempt=2 task=worker-1 user="a b" jobName="\"=\n"'
    )


@pytest.mark.parametrize("form", logging_config.FORMATS)
def test_a_traceback_is_kept_and_for_programs_on_the_same_line(log: Log, form: str) -> None:
    stream = log(form)
    try:
        raise ZeroDivisionError("by nothing")
    except ZeroDivisionError:
        logging.getLogger("x").exception("failed")
    written = stream.getvalue()
    assert "ZeroDivisionError: by nothing" in written
    if form == "json":
        assert "ZeroDivisionError: by nothing" in json.loads(written)["exception"]
    else:
        assert written.splitlines()[0].endswith("ERROR x: failed")


def test_only_known_fields_are_written(log: Log) -> None:
    stream = log("json")
    logging.getLogger("x").info("in", extra={"token": "s3cret", "user": None, "attempt": 0})
    assert json.loads(stream.getvalue()).keys() == {"time", "level", "logger", "message", "attempt"}


async def test_what_a_line_is_about_goes_with_the_work_and_ends_with_it(log: Log) -> None:
    stream = log("json")

    async def work() -> None:
        await asyncio.sleep(0)
        with about(node="a"):
            logging.getLogger("x").info("within")

    with about(job="one"):
        first = asyncio.create_task(work())
    with about(job="two"):
        second = asyncio.create_task(work())
    logging.getLogger("x").info("outside")
    await asyncio.gather(first, second)
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["message"], line.get("job"), line.get("node")) for line in told] == [
        ("outside", None, None),
        ("within", "one", "a"),
        ("within", "two", "a"),
    ]


def test_warnings_of_python_and_of_libraries_come_the_same_way(log: Log) -> None:
    stream = log("json")
    logging.getLogger("asyncio").info("chatter")
    logging.getLogger("asyncio").warning("a task was lost")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["a task was lost"]
