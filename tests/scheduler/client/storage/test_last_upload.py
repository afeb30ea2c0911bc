"""What is remembered of uploads."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_scheduler.client.storage.upload import UploadRecord, UploadRecords


def test_uploads_are_remembered_newest_first_and_not_for_another_storage(folder: Path) -> None:
    records = UploadRecords(folder, "http://a")
    assert records.read() == []
    first, second = UploadRecord("/alice/1", {"x": (1, 2)}), UploadRecord("/alice/2", {})
    records.write(first)
    records.write(second)
    assert records.read() == [second, first]
    records.write(first)
    assert records.read() == [first, second]
    assert UploadRecords(folder, "http://b").read() == []


def test_old_uploads_are_forgotten(folder: Path) -> None:
    records = UploadRecords(folder, "http://a")
    for number in range(25):
        records.write(UploadRecord(f"/{number}", {}))
    assert [record.folder for record in records.read()] == [f"/{number}" for number in range(24, 4, -1)]


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"storage": "http://a", "uploads": [{}]}'),
        '{"storage": "http://a", "uploads": [{"folder": "/x", "files": ["a"]}]}',
        '{"storage": "http://a", "uploads": [{"folder": "/x", "files": {"a": 1}}]}',
    ],
)
def test_a_record_that_nobody_understands_is_none(folder: Path, text: str) -> None:
    (folder / ".pai").mkdir()
    (folder / ".pai" / "last-upload.json").write_text(text)
    assert UploadRecords(folder, "http://a").read() == []


def test_a_folder_that_cannot_be_written_to_is_no_error(folder: Path) -> None:
    (folder / ".pai").write_text("a file in the way")
    records = UploadRecords(folder, "http://a")
    records.write(UploadRecord("/x", {}))
    assert records.read() == []
