"""How far a transfer is, in one line."""

from __future__ import annotations

import io

from pai_scheduler.client.cli.progress import ProgressLine, cut, shown_progress
from pai_scheduler.client.cli.tables import width
from pai_scheduler.client.storage.transfer import TransferProgress


def test_the_line_tells_share_speed_and_what_is_left() -> None:
    now = 0.0
    line = ProgressLine("en", lambda: now)
    line.text(TransferProgress(0, 4, 0, 100_000_000, "a"), 200)
    now = 2.0
    assert line.text(TransferProgress(1, 4, 50_000_000, 100_000_000, "b/c"), 200) == (
        " 50% [##########..........]  50 MB/100 MB  25 MB/s  2s left  files 1/4  b/c"
    )
    now = 2.01
    assert line.text(TransferProgress(1, 4, 51_000_000, 100_000_000, "b/c"), 200) is None
    # the end is always shown
    assert "100%" in (line.text(TransferProgress(4, 4, 100_000_000, 100_000_000, "d"), 200) or "")
    now = 10.0
    slower = line.text(TransferProgress(3, 4, 100_000_000, 100_000_000, "d"), 200) or ""
    assert "0 B/s" in slower


def test_nothing_to_send_is_all_of_it() -> None:
    assert "100%" in (ProgressLine("en").text(TransferProgress(0, 1, 0, 0, "empty"), 200) or "")


def test_a_line_has_room_in_its_columns_whatever_the_characters() -> None:
    line = ProgressLine("zh_CN").text(TransferProgress(1, 9, 5, 10, "数据" * 50 + "\x1b[2J"), 79) or ""
    assert width(line) <= 79
    assert "文件 1/9" in line
    assert "\x1b" not in line
    assert cut("数据数据", 6) == "数据…"
    assert cut("abc", 3) == "abc"


def test_where_nobody_looks_nothing_is_shown() -> None:
    with shown_progress("en", io.StringIO()) as tell:
        assert tell is None
