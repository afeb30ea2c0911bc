from __future__ import annotations

from pathlib import Path

import pytest

from pai_scheduler.data_folder.durable_file import write_durably


def test_a_file_is_replaced_whole_and_nobody_else_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "note"
    path.write_text("a longer one, that everybody could read")
    write_durably(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_durably(tmp_path / "none" / "note", b"new")
