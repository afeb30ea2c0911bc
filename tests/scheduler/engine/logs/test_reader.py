"""A task's log on disk: apart and together, after crashes, on a full disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.engine.logs.reader import STAMP_LENGTH, Piece, TaskLog, stamp_lines
from pai_scheduler.engine.logs.writer import TaskLogWriter

OUT, ERR = 0, 1


@pytest.fixture
def log(tmp_path: Path) -> TaskLog:
    return TaskLog(tmp_path / "log")


def write(log: TaskLog, *pieces: tuple[int, bytes]) -> TaskLogWriter:
    """Append pieces with a new writer, which stays open."""
    writer = TaskLogWriter(log.folder)
    for time, (stream, data) in enumerate(pieces):
        writer.append(stream, data, time)
    return writer


def test_a_log_that_nobody_wrote_is_empty(log: TaskLog) -> None:
    assert [log.size(stream) for stream in ("stdout", "stderr", "all")] == [0, 0, 0]
    assert log.read("all") == log.read("stdout", 10, 5) == log.read("stderr", -3) == b""
    assert log.last_piece() is None


def test_streams_are_kept_apart_and_together_in_order_of_arrival(log: TaskLog) -> None:
    write(log, (OUT, b"one\n"), (ERR, b"two\n"), (OUT, b"three\n"), (ERR, b""), (ERR, b"four"))
    assert log.read("stdout") == b"one\nthree\n"
    assert log.read("stderr") == b"two\nfour"
    assert log.read("all") == b"one\ntwo\nthree\nfour"
    assert log.last_piece() == Piece(time_ns=4, merged_offset=14, offset=4, length=4, stream=ERR)


def test_the_streams_are_plain_files(log: TaskLog) -> None:
    write(log, (OUT, b"for less\n"), (ERR, b"and tail\n"))
    assert (log.folder / "stdout").read_bytes() == b"for less\n"
    assert (log.folder / "stderr").read_bytes() == b"and tail\n"


@given(
    pieces=st.lists(st.tuples(st.sampled_from([OUT, ERR]), st.binary(max_size=9)), max_size=20),
    offset=st.integers(-200, 200),
    limit=st.none() | st.integers(0, 200),
)
def test_any_part_is_what_a_slice_of_the_whole_would_be(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, bytes]], offset: int, limit: int | None
) -> None:
    log = TaskLog(tmp_path_factory.mktemp("part"))
    write(log, *pieces).close()
    whole = {
        "stdout": b"".join(data for stream, data in pieces if stream == OUT),
        "stderr": b"".join(data for stream, data in pieces if stream == ERR),
        "all": b"".join(data for _, data in pieces),
    }
    for stream, content in whole.items():
        start = max(0, len(content) + offset) if offset < 0 else offset
        end = None if limit is None else start + limit
        assert log.read(stream, offset, limit) == content[start:end]
        assert log.size(stream) == len(content)


@given(
    pieces=st.lists(
        st.tuples(st.sampled_from([OUT, ERR]), st.text("a\n", max_size=9), st.integers(0, 3)), max_size=20
    ),
    time_ms=st.integers(0, 40),
)
def test_a_time_is_found_where_the_first_line_begins_that_is_not_older(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, str, int]], time_ms: int
) -> None:
    log = TaskLog(tmp_path_factory.mktemp("since"))
    writer, now = TaskLogWriter(log.folder), 0
    written: dict[str, list[tuple[bytes, int]]] = {"stdout": [], "stderr": [], "all": []}
    for stream, text, later in pieces:
        now += later
        # a part of a millisecond is not told, so it does not count
        writer.append(stream, text.encode(), now * 1_000_000 + 999_999)
        for name in ("all", "stdout" if stream == OUT else "stderr"):
            written[name].extend((bytes([byte]), now) for byte in text.encode())
    writer.close()
    for name, content in written.items():
        begins = [at for at in range(len(content)) if at == 0 or content[at - 1][0] == b"\n"]
        expected = next((at for at in begins if content[at][1] >= time_ms), len(content))
        assert log.since(name, time_ms) == expected, name


def test_a_time_within_what_was_removed_is_found_where_the_log_goes_on(tmp_path: Path) -> None:
    log = TaskLog(tmp_path)
    writer = TaskLogWriter(tmp_path, limit=10_000)
    for number in range(1000):
        writer.append(OUT, f"this is line {number:06}\n".encode(), number * 1_000_000)
    writer.close()
    gap = log.removed("all")
    assert gap is not None
    line = len("this is line 000000\n")
    within = (gap.start + gap.stop) // 2 // line
    assert gap.stop <= log.since("all", within) < gap.stop + line
    assert log.since("all", 3) == 3 * line
    assert log.since("all", 995) == 995 * line
    assert log.since("all", 1000) == log.size("all")


def test_a_reader_sees_what_is_appended_later(log: TaskLog) -> None:
    writer = write(log, (OUT, b"one "))
    assert log.read("all") == b"one "
    writer.append(ERR, b"two", 1)
    assert log.read("all", 4) == b"two"


def test_a_new_writer_goes_on_where_the_last_one_ended(log: TaskLog) -> None:
    write(log, (OUT, b"one "), (ERR, b"two ")).close()
    write(log, (OUT, b"three")).close()
    assert log.read("all") == b"one two three"
    assert log.read("stdout") == b"one three"


@pytest.mark.parametrize(
    ("file", "tail"),
    [("stdout", b"data without a record"), ("stderr", b"the same"), ("index", b"half a rec")],
)
def test_what_a_crash_left_half_written_is_dropped(log: TaskLog, file: str, tail: bytes) -> None:
    write(log, (OUT, b"one "), (ERR, b"two ")).close()
    with open(log.folder / file, "ab") as half:
        half.write(tail)
    assert log.read("all") == b"one two "
    write(log, (ERR, b"three ")).close()
    assert log.read("all") == b"one two three "
    assert log.read("stderr") == b"two three "
    assert log.read("stdout") == b"one "


@pytest.mark.parametrize("left", [0, 2, 4])
def test_pieces_whose_data_a_power_failure_lost_are_dropped(log: TaskLog, left: int) -> None:
    write(log, (ERR, b"zero"), (OUT, b"1234"), (ERR, b"two"), (OUT, b"5678"), (ERR, b"x")).close()
    with open(log.folder / "stdout", "r+b") as stdout:
        stdout.truncate(left)
    kept = b"zero1234two" if left == 4 else b"zero"
    assert log.read("all")[: len(kept)] == kept
    write(log, (OUT, b"new")).close()
    assert log.read("all") == kept + b"new"
    assert log.read("stdout") == (b"1234new" if left == 4 else b"new")


def test_a_full_disk_drops_output_counts_it_and_keeps_what_was_there(tiny_disk: Path) -> None:
    log = TaskLog(tiny_disk / "log")
    writer = write(log, (OUT, b"begin\n"), (ERR, b"warning\n"))
    for time in range(32):
        writer.append(OUT, b"x" * 65536, time)
    kept = log.size("stdout") - len(b"begin\n")
    assert kept > 0
    assert kept % 65536 == 0
    assert writer.dropped == 32 * 65536 - kept
    assert log.size("all") == log.size("stdout") + log.size("stderr")
    assert log.read("all", 0, 20) == b"begin\nwarning\nxxxxxx"


def test_writing_goes_on_when_a_full_disk_has_room_again(tiny_disk: Path) -> None:
    log = TaskLog(tiny_disk / "log")
    writer = write(log, (OUT, b"begin "))
    ballast = tiny_disk / "ballast"
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(b"x" * 2_000_000)
    # (what fits into the page that the file has already is no loss)
    writer.append(OUT, b"y" * 8192, 1)
    assert writer.dropped == 8192
    ballast.unlink()
    writer.append(ERR, b"end", 2)
    assert log.read("all") == b"begin end"


def test_each_line_can_be_read_with_the_time_at_which_it_began(log: TaskLog) -> None:
    second = 10**9
    writer = TaskLogWriter(log.folder)
    writer.append(OUT, b"one\ntwo\nthr", 1_700_000_000 * second)
    writer.append(ERR, b"warning\n", 1_700_000_001 * second + 5_999_999)
    writer.append(OUT, b"ee\n\nlast", 1_700_000_002 * second)
    first, middle, third = (f"2023-11-14T22:13:2{n}.00{5 * (n == 1)}Z " for n in range(3))
    part, stamped = log.read_lines("stdout", 0, 1000, line_begins=True)
    assert part.data == b"one\ntwo\nthree\n\nlast"
    assert stamped.decode() == f"{first}one\n{first}two\n{first}three\n{third}\n{third}last"
    assert len(first) == STAMP_LENGTH
    assert log.read_lines("stderr", 0, 1000, line_begins=True)[1].decode() == f"{middle}warning\n"
    # in order of arrival, `warning` goes on in the line that stdout began
    assert log.read_lines("all", 8, 20, line_begins=True)[1].decode() == (
        f"{first}thrwarning\n{third}ee\n{third}\n{third}last"
    )
    assert log.read_lines("all", 9, 4, line_begins=False)[1] == b"hrwa"


@given(
    pieces=st.lists(st.text("ab\n", min_size=1, max_size=6).map(str.encode), min_size=1, max_size=8),
    cut=st.integers(0, 48),
)
def test_times_of_two_halves_are_the_times_of_the_whole(pieces: list[bytes], cut: int) -> None:
    text = b"".join(pieces)
    timed = list(enumerate(pieces))
    whole = stamp_lines(timed, line_begins=True)
    assert whole.count(b"1970-01-01T") == len(text.splitlines())
    halves: tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]] = ([], [])
    position = 0
    for time, data in timed:
        inside = max(0, min(len(data), cut - position))
        position += len(data)
        halves[0].append((time, data[:inside]))
        halves[1].append((time, data[inside:]))
    left, right = ([(time, data) for time, data in half if data] for half in halves)
    begins = cut == 0 or text[cut - 1 : cut] == b"\n" or cut > len(text)
    assert whole == stamp_lines(left, line_begins=True) + stamp_lines(right, line_begins=begins)


def test_a_log_that_moves_while_it_is_followed_is_found_at_its_new_place(tmp_path: Path) -> None:
    log = TaskLog(tmp_path / "running" / "log", tmp_path / "ended" / "log")
    write(log, (OUT, b"one "), (ERR, b"two"))
    assert log.read("all", 4) == b"two"
    (tmp_path / "running").rename(tmp_path / "ended")
    assert log.exists
    assert log.read("all") == b"one two"
    assert log.folder == tmp_path / "ended" / "log"
