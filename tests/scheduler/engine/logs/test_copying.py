"""A copy of a log on another machine: the same bytes at the same offsets, whatever breaks on the way."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_scheduler.engine.logs.reader import STREAMS, TaskLog
from pai_scheduler.engine.logs.replication import Missing, extents, missing, take_over
from pai_scheduler.engine.logs.writer import LEAST_LIMIT, TaskLogWriter
from tests.testbed.properties import examples

ALL = (*STREAMS, "all")


def write(log: Path, pieces: list[tuple[int, bytes]]) -> None:
    """Write on at a log, as a supervisor does that is started anew."""
    writer = TaskLogWriter(log, LEAST_LIMIT)
    for stream, data in pieces:
        writer.append(stream, data, time.time_ns())
    writer.close()


def files(log: Path) -> dict[str, bytes]:
    """Return what is in a log's folder, but for files without bytes."""
    found = {str(file.relative_to(log)): file.read_bytes() for file in log.rglob("*") if file.is_file()}
    return {name: data for name, data in found.items() if data}


def copy(log: Path, to: Path, limit: int = 2**20) -> None:
    """Copy until nothing is missing."""
    for _ in range(1000):
        news = missing(log, extents(to), limit)
        take_over(to, news)
        if news.complete:
            return
    raise AssertionError("it never ends")


def check(log: Path, to: Path) -> None:
    """See that readers of both find the same."""
    for stream in ALL:
        assert TaskLog(to).size(stream) == TaskLog(log).size(stream)
        assert TaskLog(to).removed(stream) == TaskLog(log).removed(stream)
        assert TaskLog(to).read(stream) == TaskLog(log).read(stream)
    assert files(to) == files(log)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "copies" / "of-a-log"


PIECES = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 1500)), max_size=30)


@settings(max_examples=examples(30), deadline=None)
@given(
    rounds=st.lists(PIECES, min_size=1, max_size=4), limit=st.integers(200, 5000), seed=st.integers(0, 2**32)
)
def test_a_copy_has_each_byte_at_its_offset_over_any_loss_repetition_and_disorder(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[int, int]]], limit: int, seed: int
) -> None:
    folder, chance = tmp_path_factory.mktemp("log"), random.Random(seed)  # noqa: S311
    log, to = folder / "log", folder / "copy"
    late: list[Missing] = []
    for pieces in rounds:
        write(log, [(stream, chance.randbytes(length)) for stream, length in pieces])
        for _ in range(5):
            late.append(missing(log, extents(to), limit))
            # lost, come twice, or come after what was asked for later
            if chance.random() < 0.7:
                take_over(to, chance.choice(late[-2:]))
    copy(log, to, limit)
    check(log, to)


def test_a_copy_goes_on_at_its_end(log: Path, to: Path) -> None:
    write(log, [(0, b"one\n")])
    copy(log, to)
    write(log, [(1, b"two\n"), (0, b"three\n")])
    news = missing(log, extents(to), 2**20)
    assert {part.file: (part.offset, part.data) for part in news.parts if part.file < 2} == {
        0: (4, b"three\n"),
        1: (0, b"two\n"),
    }
    take_over(to, news)
    check(log, to)
    assert missing(log, extents(to), 2**20).parts == ()


def test_a_log_that_is_not_there_is_a_copy_with_nothing_in_it(log: Path, to: Path) -> None:
    news = missing(log, (), 2**20)
    assert (news.extents, news.parts, news.complete) == ((), (), True)
    take_over(to, news)
    assert TaskLog(to).read("all") == b""


def test_logs_of_two_attempts_never_mix(tmp_path: Path) -> None:
    for attempt in (0, 1):
        write(tmp_path / f"log-{attempt}", [(0, b"%d" % attempt * (5 - attempt))])
        copy(tmp_path / f"log-{attempt}", tmp_path / f"copy-{attempt}")
    assert TaskLog(tmp_path / "copy-0").read("all") == b"00000"
    assert TaskLog(tmp_path / "copy-1").read("all") == b"1111"


def test_what_was_removed_of_a_log_is_removed_of_its_copy(log: Path, to: Path) -> None:
    line = bytes(range(256)) * 4
    for _ in range(6):
        write(log, [(0, line)] * (LEAST_LIMIT // len(line) // 4))
        copy(log, to, 10_000)
    assert TaskLog(log).removed("all"), "it has not grown beyond its limit"
    check(log, to)


def test_a_copy_that_has_more_than_its_log_is_cut_to_it(log: Path, to: Path) -> None:
    write(log, [(0, b"one\n")])
    before = log.with_name("before")
    shutil.copytree(log, before)
    write(log, [(0, b"two\n")])
    copy(log, to)
    # as after a power cut, which a log on the node may not have survived as a whole
    copy(before, to)
    check(before, to)


def test_pieces_that_leave_a_gap_are_not_written(log: Path, to: Path) -> None:
    write(log, [(0, b"one\n")])
    has = extents(log)
    write(log, [(0, b"two\n")])
    take_over(to, missing(log, has, 2**20))
    assert TaskLog(to).read("all") == b""
    copy(log, to)
    check(log, to)
