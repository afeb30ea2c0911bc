"""A log that grows beyond its limit: what is kept, at which offsets, whatever happens to its writer."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_scheduler.engine.logs.reader import STREAMS, TaskLog
from pai_scheduler.engine.logs.writer import LEAST_LIMIT, TaskLogWriter
from tests.testbed.properties import examples

ROOT = Path(__file__).parents[4]
STREAM_NAMES = (*STREAMS, "all")


def disk_use(log: TaskLog) -> int:
    return sum(file.stat().st_size for file in log.folder.rglob("*") if file.is_file())


def files_of(log: TaskLog) -> dict[str, bytes]:
    """Return what is in a log's folder."""
    return {
        str(file.relative_to(log.folder)): file.read_bytes()
        for file in log.folder.rglob("*")
        if file.is_file()
    }


def check(log: TaskLog, whole: dict[str, bytes]) -> None:
    """See that every byte that is there stands at its own offset, and that the rest is said to be gone."""
    for stream, content in whole.items():
        assert log.size(stream) == len(content)
        position, seen = 0, []
        while position < len(content):
            part = log.read_part(stream, position, 500)
            assert part.data == content[part.offset : part.end]
            if part.offset > position:
                seen.append(range(position, part.offset))
            if not part.data:
                break
            position = part.end
        removed = log.removed(stream)
        assert seen in ([], [removed])


PIECES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1500)), max_size=40)


@settings(max_examples=examples(80), deadline=None)
@given(rounds=st.lists(PIECES, min_size=1, max_size=3))
def test_a_log_keeps_its_limit_and_each_byte_its_offset_over_any_number_of_writers(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[int, int]]]
) -> None:
    log = TaskLog(tmp_path_factory.mktemp("log") / "log")
    chance = random.Random(7)  # noqa: S311
    whole = dict.fromkeys(STREAM_NAMES, b"")
    for pieces in rounds:
        writer = TaskLogWriter(log.folder, LEAST_LIMIT)
        for stream, length in pieces:
            data = chance.randbytes(length)
            writer.append(stream, data, len(whole["all"]))
            whole[STREAMS[stream]] += data
            whole["all"] += data
            assert disk_use(log) <= LEAST_LIMIT
        writer.close()
        check(log, whole)


@settings(max_examples=examples(60), deadline=None)
@given(rounds=st.lists(PIECES, min_size=1, max_size=3))
def test_pieces_that_are_added_together_are_kept_as_if_each_were_added_by_itself(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[int, int]]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    together, apart = TaskLog(folder / "together"), TaskLog(folder / "apart")
    chance = random.Random(7)  # noqa: S311
    for number, lengths in enumerate(rounds):
        pieces = [(stream, chance.randbytes(length), number) for stream, length in lengths]
        writers = [TaskLogWriter(log.folder, LEAST_LIMIT) for log in (together, apart)]
        writers[0].append_all(pieces)
        for stream, data, time_ns in pieces:
            writers[1].append(stream, data, time_ns)
        for writer in writers:
            writer.close()
    assert files_of(together) == files_of(apart)


def test_many_lines_cost_one_write_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = TaskLog(tmp_path / "log")
    writer = TaskLogWriter(log.folder)
    writes: list[bytes] = []
    write = os.write

    def counted(descriptor: int, data: bytes) -> int:
        writes.append(data)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", counted)
    writer.append_all([(number % 2, b"a line\n", number) for number in range(1000)])
    assert len(writes) == 3
    assert log.read("all") == b"a line\n" * 1000


def test_both_streams_are_read_in_order_however_they_take_turns(tmp_path: Path) -> None:
    log = TaskLog(tmp_path / "log")
    chance = random.Random(3)  # noqa: S311
    pieces = [
        # long parts of one stream, and between them lines of both
        (stream if number % 4000 < 3000 else chance.randrange(2), chance.randbytes(50), number)
        for stream in (0, 1)
        for number in range(8000)
    ]
    TaskLogWriter(log.folder).append_all(pieces)
    whole = b"".join(data for _, data, _ in pieces)
    assert log.read("all") == whole
    for _ in range(200):
        begin = chance.randrange(len(whole))
        length = chance.randrange(1, 200_000)
        assert log.read_part("all", begin, length).data == whole[begin : begin + length]


def test_on_a_full_disk_as_many_pieces_as_fit_are_kept(tiny_disk: Path) -> None:
    log = TaskLog(tiny_disk / "log")
    writer = TaskLogWriter(log.folder, 2**24)
    line = b"x" * 999 + b"\n"
    writer.append_all([(0, line, number) for number in range(5000)])
    size = log.size("stdout")
    assert 0 < size < 5_000_000
    assert log.read("all") == line * (size // 1000) + line[: size % 1000]
    assert writer.dropped == 5_000_000 - size


def test_what_is_kept_is_the_first_quarter_and_most_of_the_rest_of_the_newest(tmp_path: Path) -> None:
    log, limit = TaskLog(tmp_path / "log"), 2**20
    writer = TaskLogWriter(log.folder, limit)
    for number in range(50_000):
        writer.append(0, f"line {number:94}\n".encode(), number)
    removed = log.removed("stdout")
    assert removed is not None
    assert 0.7 * limit / 4 < removed.start <= limit / 4
    assert log.size("stdout") - removed.stop > 0.4 * limit
    assert log.read("stdout", 0, 100) == f"line {0:94}\n".encode()
    assert log.read("all", -100) == f"line {49_999:94}\n".encode()
    assert log.removed("all") == removed
    assert log.removed("stderr") is None
    middle = log.read_part("stdout", removed.start + 5, 10)
    assert middle.offset == removed.stop
    assert log.read("stdout", removed.start - 10, len(removed) + 20) == (
        log.read("stdout", removed.start - 10, 10) + log.read("stdout", removed.stop, 10)
    )


def test_a_piece_longer_than_a_segment_is_kept_in_parts(tmp_path: Path) -> None:
    log = TaskLog(tmp_path / "log")
    data = random.Random(1).randbytes(3 * LEAST_LIMIT)  # noqa: S311
    TaskLogWriter(log.folder, LEAST_LIMIT).append(1, data, 1)
    check(log, {"stdout": b"", "stderr": data, "all": data})
    assert log.read("stderr", -300) == data[-300:]
    assert disk_use(log) <= LEAST_LIMIT


def test_a_log_from_before_there_was_a_limit_goes_on_within_it(tmp_path: Path) -> None:
    log = TaskLog(tmp_path / "log")
    long = b"x" * 3 * LEAST_LIMIT
    writer = TaskLogWriter(log.folder)
    writer.append(0, long, 1)
    writer.close()
    TaskLogWriter(log.folder, LEAST_LIMIT).append(1, b"new", 2)
    check(log, {"stdout": long, "stderr": b"new", "all": long + b"new"})
    assert {entry.name for entry in log.folder.iterdir()} == {*STREAMS, "index", f"from-{len(long)}-0"}


def test_a_stream_that_was_silent_for_long_costs_a_new_writer_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TaskLog(tmp_path / "log")
    writer = TaskLogWriter(log.folder)
    writer.append(1, b"once", 0)
    for number in range(20_000):
        writer.append(0, b"x", number)
    writer.close()
    looks: list[int] = []
    pread = os.pread

    def counted(descriptor: int, length: int, offset: int) -> bytes:
        looks.append(offset)
        return pread(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", counted)
    TaskLogWriter(log.folder).close()
    assert log.last_piece("stderr") is not None
    assert log.read("stderr", -1) == b"e"
    assert len(looks) < 100


def test_a_full_disk_in_the_middle_of_a_segment_change_leaves_every_byte_at_its_offset(
    tiny_disk: Path,
) -> None:
    log = TaskLog(tiny_disk / "log")
    writer = TaskLogWriter(log.folder, 2**24)
    data = random.Random(2).randbytes(50_000)  # noqa: S311
    kept = b""
    for _ in range(40):
        before = writer.dropped
        writer.append(0, data, 1)
        kept += data[: len(data) - (writer.dropped - before)]
    assert writer.dropped
    check(log, {"stdout": kept, "stderr": b"", "all": kept})


def test_a_segment_that_cannot_be_made_is_tried_again_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TaskLog(tmp_path / "log")
    writer = TaskLogWriter(log.folder, LEAST_LIMIT)
    writer.append(0, b"a" * 900, 1)
    real_open = sys.modules["os"].open

    def full(path: Path, *args: int, **options: int) -> int:
        if Path(path).name == "index":
            raise OSError(28, "No space left on device")
        return int(real_open(path, *args, **options))

    with monkeypatch.context() as patch:
        patch.setattr("os.open", full)
        writer.append(0, b"b" * 200, 2)
    assert writer.dropped == 200
    writer.append(0, b"c" * 20, 3)
    writer.append(0, b"d" * 200, 4)
    whole = b"a" * 900 + b"c" * 20 + b"d" * 200
    check(log, {"stdout": whole, "stderr": b"", "all": whole})


#: Writes for ever: of each stream, the byte at offset n is n % 251 (stdout) or n % 241 (stderr).
WRITER = """
import itertools, sys, time
from pathlib import Path
from pai_scheduler.engine.logs.writer import TaskLogWriter
from pai_scheduler.engine.logs.reader import TaskLog
cycles = [bytes(range(251)) * 40, bytes(range(241)) * 40]
folder = Path(sys.argv[1])
writer = TaskLogWriter(folder, 2**14)
sizes = [TaskLog(folder).size(name) for name in ("stdout", "stderr")]
print("writes", flush=True)
for number in itertools.count():
    stream, length = number % 3 % 2, 1 + number * 7919 % 3000
    cycle = cycles[stream]
    begin = sizes[stream] % (251 if stream == 0 else 241)
    writer.append(stream, cycle[begin : begin + length], time.time_ns())
    sizes[stream] += length
"""


@pytest.mark.parametrize("seed", range(6))
def test_readers_see_the_same_bytes_at_an_offset_though_the_writer_is_killed_again_and_again(
    tmp_path: Path, seed: int
) -> None:
    log = TaskLog(tmp_path / "log")
    chance = random.Random(seed)  # noqa: S311
    looks = sizes = 0
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(log.folder)], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writes\n"
        until = time.monotonic() + chance.uniform(0.0, 0.15)
        while looks < 20 or time.monotonic() < until:
            looks += _see(log, chance)
            assert log.size("all") >= 0
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert log.size("all") >= sizes
        sizes = log.size("all")
        assert log.size("stdout") + log.size("stderr") == sizes
        assert disk_use(log) <= 2**14 + 3032  # (a piece may be half written)
    assert log.removed("stdout")
    for stream in ("stdout", "stderr"):
        newest = log.read(stream, -100)
        assert newest == _expected(stream, log.size(stream) - 100, 100)


def _see(log: TaskLog, chance: random.Random) -> int:
    stream = chance.choice(("stdout", "stderr"))
    part = log.read_part(stream, chance.randrange(log.size(stream) + 1), 5000)
    assert part.data == _expected(stream, part.offset, len(part.data))
    return 1 if part.data else 0


def _expected(stream: str, offset: int, length: int) -> bytes:
    modulus = 251 if stream == "stdout" else 241
    return bytes((offset + n) % modulus for n in range(length))
