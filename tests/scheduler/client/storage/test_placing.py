"""What was downloaded gets its name when it is whole, with its time and mode, and stays in its folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pai_scheduler.client.storage.download import open_part, place_below, put_in_place, write_at
from pai_scheduler.client.storage.transfer import LocalFileError


def test_a_file_gets_its_name_its_time_and_its_mode_at_once(tmp_path: Path) -> None:
    part, local = tmp_path / ".x.part", tmp_path / "x"
    descriptor = open_part(part)
    write_at(descriptor, b"def", 3, local)
    write_at(descriptor, b"abc", 0, local)
    os.close(descriptor)
    assert not local.exists()
    put_in_place(part, local, 1_000_000_000_000, 0o4750)
    status = local.stat()
    assert (local.read_bytes(), status.st_mtime, status.st_mode & 0o7777) == (b"abcdef", 1e9, 0o750)
    assert not part.exists()


def test_a_link_of_that_name_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("untouched")
    (tmp_path / "x").symlink_to("other")
    (tmp_path / "part").write_text("new")
    put_in_place(tmp_path / "part", tmp_path / "x", 0)
    assert ((tmp_path / "other").read_text(), (tmp_path / "x").read_text()) == ("untouched", "new")


@pytest.mark.parametrize("name", ["..", "a/../b", "/etc/x", "a//b", "a/\0", "."])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LocalFileError, match="no name that a file can have"):
        place_below(tmp_path, name, is_folder=False)


def test_nothing_is_put_through_a_link_to_a_folder(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "away")
    with pytest.raises(LocalFileError, match="symbolic link"):
        place_below(tmp_path / "tree", "link/x", is_folder=False)
    (tmp_path / "part").symlink_to(tmp_path / "away" / "x")
    with pytest.raises(LocalFileError, match="cannot be written"):
        open_part(tmp_path / "part")
    assert list((tmp_path / "away").iterdir()) == []
