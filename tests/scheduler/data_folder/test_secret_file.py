"""A secret that is made once and kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_scheduler.data_folder.secret_file import kept_secret
from pai_scheduler.data_folder.start_error import StartError


def test_a_secret_is_made_once_and_is_the_same_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "data" / "some.key"
    made = kept_secret(path)
    assert len(made) == 32
    assert kept_secret(path) == made
    assert kept_secret(tmp_path / "data" / "other.key") != made


def test_nobody_else_reads_it_and_nothing_is_left_of_its_making(tmp_path: Path) -> None:
    path = tmp_path / "some.key"
    kept_secret(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("length", [0, 1, 31, 33])
def test_a_key_of_another_length_is_refused_with_a_sentence(tmp_path: Path, length: int) -> None:
    path = tmp_path / "some.key"
    path.write_bytes(b"x" * length)
    with pytest.raises(StartError, match=f"it has {length} bytes instead of 32") as caught:
        kept_secret(path)
    assert str(path) in str(caught.value)
    assert path.stat().st_size == length


def test_a_key_that_cannot_be_read_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "some.key").mkdir()
    with pytest.raises(StartError, match="Is a directory"):
        kept_secret(tmp_path / "some.key")
