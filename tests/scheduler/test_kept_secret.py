"""A secret that is made once and kept."""

from __future__ import annotations

from pathlib import Path

from pai_scheduler.kept_secret import kept_secret


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
