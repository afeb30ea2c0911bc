"""Tables stand straight, whatever is in them."""

from __future__ import annotations

import time

import pytest
from wcwidth import wcswidth

from pai_scheduler.client.cli.session import duration, moment, pairs, printable, table, width, zone_shown


def test_columns_stand_under_their_titles() -> None:
    text = table(["NAME", "GPUS"], [["a", "2"], ["longer", "10"]])
    assert text.splitlines() == ["NAME    GPUS", "a          2", "longer    10"]


def test_a_chinese_character_takes_two_columns() -> None:
    lines = table(["名称", "STATE"], [["训练-1", "RUNNING"], ["abc", "WAITING"]]).splitlines()
    starts = [
        wcswidth(line[: line.index(word)])
        for line, word in zip(lines, ("STATE", "RUNNING", "WAITING"), strict=True)
    ]
    assert len(set(starts)) == 1
    assert width("训练") == 4


def test_an_empty_table_is_its_header() -> None:
    assert table(["A", "B"], []) == "A  B"


def test_nothing_empty_is_listed() -> None:
    assert pairs([("Job", "x"), ("Waiting", ""), ("状态", "y")]) == "Job   x\n状态  y"


def test_a_text_cannot_move_the_cursor_or_break_the_line() -> None:
    assert printable("a\x1b[31mb\r\nc\u202ed") == "a [31mb  c d"
    assert len(table(["A"], [["x\ny"]]).splitlines()) == 2


def test_durations_have_two_units_at_most() -> None:
    seconds = [0, 59, 60, 3599, 3600, 86399, 86400, 10 * 86400 + 3600]
    assert [duration(1000 * number) for number in seconds] == [
        "0s",
        "59s",
        "1m 00s",
        "59m 59s",
        "1h 00m",
        "23h 59m",
        "1d 00h",
        "10d 01h",
    ]
    assert duration(-5000) == "0s"


def test_a_time_that_never_came_is_a_dash() -> None:
    assert moment(None) == "-"


def test_a_time_is_that_of_the_place_where_it_is_read_with_its_zone_on_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert moment(1_700_000_000_999) == "2023-11-15 07:13:20"
        token = zone_shown.set(True)
        assert moment(1_700_000_000_999) == "2023-11-15 07:13:20+09:00"
        zone_shown.reset(token)
    finally:
        monkeypatch.undo()
        time.tzset()
