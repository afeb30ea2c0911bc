"""Docker's own files of a log are read frame by frame, over their renaming, and never guessed at."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pai_scheduler.engine.docker.log_files import (
    CURRENT,
    Frame,
    RecordedLog,
    UnreadableLogError,
    parse_records,
)

NOW = 1_795_702_492_477_730_196
BLOCK = 2**20


def varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def record(time_ns: int, line: bytes, stream: str = "stdout", *, goes_on: bool = False) -> bytes:
    """Write a record as Docker does; `goes_on`: it is a piece of a longer line."""
    message = b"\n\x06" + stream.encode() + b"\x10" + varint(time_ns)
    if line:
        message += b"\x1a" + varint(len(line)) + line
    if goes_on:
        message += b"\x20\x01\x2a\x04\x12\x02id"
    length = struct.pack(">I", len(message))
    return length + message + length


def rotate(folder: Path) -> None:
    """Give the present file another name, as Docker does when it is full."""
    for number in (3, 2, 1):
        older = folder / f"{CURRENT}.{number}"
        newer = folder / (f"{CURRENT}.{number - 1}" if number > 1 else CURRENT)
        if newer.exists():
            newer.rename(older)
    (folder / CURRENT).touch()


def add(folder: Path, *numbers: int) -> None:
    with (folder / CURRENT).open("ab") as file:
        file.write(b"".join(record(NOW + number, b"%d" % number) for number in numbers))


def frames(*numbers: int) -> list[Frame]:
    return [(NOW + number, 0, b"%d\n" % number) for number in numbers]


def read_all(log: RecordedLog, block: int = BLOCK) -> list[Frame]:
    found: list[Frame] = []
    while new := log.read(block):
        found.extend(new)
    return found


@pytest.mark.parametrize("length", [0, 1, 127, 128, 16383, 16384])
def test_a_record_has_its_time_stream_and_line(length: int) -> None:
    recorded = record(NOW, b"x" * length, "stderr")
    assert parse_records(recorded) == ([(NOW, 1, b"x" * length + b"\n")], len(recorded))


def test_a_piece_of_a_line_has_no_end_of_line_and_the_empty_last_one_nothing_else() -> None:
    recorded = record(NOW, b"piece", goes_on=True) + record(NOW, b"", goes_on=True)
    assert parse_records(recorded)[0] == [(NOW, 0, b"piece"), (NOW, 0, b"\n")]


@pytest.mark.parametrize("time_ns", [2**56, NOW, 2**63 - 1])
def test_all_times_are_read(time_ns: int) -> None:
    assert parse_records(record(time_ns, b"x"))[0] == [(time_ns, 0, b"x\n")]


def test_a_record_that_is_still_being_written_is_left_for_later() -> None:
    recorded = record(NOW, b"one") + record(NOW, b"two")
    for end in range(len(record(NOW, b"one")), len(recorded)):
        assert parse_records(recorded[:end]) == ([(NOW, 0, b"one\n")], len(record(NOW, b"one")))


@pytest.mark.parametrize(
    "broken",
    [
        b"\0" * 40,
        record(NOW, b"line").replace(b"stdout", b"stdxxx"),
        record(NOW, b"line")[:-1] + b"\1",
        record(NOW, b"line").replace(b"\x1a", b"\x22"),
        record(NOW, b"line").replace(b"\x1a\x04", b"\x1a\x09"),
        record(1, b"line" * 5),
    ],
    ids=["zeros", "stream", "length", "field", "line beyond its end", "short time"],
)
def test_what_is_not_understood_is_not_guessed_at(broken: bytes) -> None:
    with pytest.raises(UnreadableLogError):
        parse_records(broken)


def test_it_is_read_on_while_it_grows(tmp_path: Path) -> None:
    add(tmp_path, 1, 2)
    log = RecordedLog(tmp_path, None)
    assert read_all(log) == frames(1, 2)
    assert (read_all(log), log.behind()) == ([], 0)
    add(tmp_path, 3)
    assert log.behind() > 0
    assert read_all(log) == frames(3)
    log.close()


def test_a_small_block_may_end_within_a_record(tmp_path: Path) -> None:
    add(tmp_path, *range(50))
    log = RecordedLog(tmp_path, None)
    assert read_all(log, 50) == frames(*range(50))
    log.close()


def test_it_is_read_over_files_that_got_other_names(tmp_path: Path) -> None:
    add(tmp_path, 1)
    log = RecordedLog(tmp_path, None)
    assert read_all(log) == frames(1)
    add(tmp_path, 2)  # unread in the file that gets another name
    rotate(tmp_path)
    add(tmp_path, 3)
    rotate(tmp_path)
    assert log.behind() > 0
    assert read_all(log) == frames(2, 3)
    add(tmp_path, 4)
    assert read_all(log) == frames(4)
    log.close()


def test_a_file_that_was_removed_before_the_next_could_be_found_is_told(tmp_path: Path) -> None:
    add(tmp_path, 1)
    log = RecordedLog(tmp_path, None)
    for number in (2, 3, 4, 5):
        rotate(tmp_path)
        add(tmp_path, number)
    with pytest.raises(UnreadableLogError):
        read_all(log)
    log.close()


def test_a_file_that_ends_within_a_record_and_has_another_name_is_told(tmp_path: Path) -> None:
    (tmp_path / CURRENT).write_bytes(record(NOW, b"one")[:-1])
    log = RecordedLog(tmp_path, None)
    rotate(tmp_path)
    with pytest.raises(UnreadableLogError):
        read_all(log)
    log.close()


@pytest.mark.parametrize("known", range(1, 7))
def test_it_begins_at_the_last_record_before_a_known_one(tmp_path: Path, known: int) -> None:
    add(tmp_path, 1, 2)
    rotate(tmp_path)
    add(tmp_path, 3, 4)
    rotate(tmp_path)
    add(tmp_path, 5, 6)
    log = RecordedLog(tmp_path, NOW + known)
    assert read_all(log) == frames(*range(max(1, known - 1), 7))
    log.close()


def test_a_log_that_is_not_there_or_does_not_end_with_a_record_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableLogError):
        RecordedLog(tmp_path, None)
    (tmp_path / CURRENT).write_bytes(record(NOW, b"one") + b"\0\0")
    with pytest.raises(UnreadableLogError):
        RecordedLog(tmp_path, NOW)
