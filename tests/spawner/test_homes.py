"""Persistent folders of users on the process engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_spawner.server_job import home_of, prepare_home


@pytest.mark.parametrize(
    "user", ["..", ".", "../../etc", "/etc", "a/../../b", "..\\x", "\0", "~root", "张三", "x" * 300]
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, user: str) -> None:
    home = prepare_home(str(tmp_path), user)
    assert home.is_dir()
    assert home.parent == tmp_path.resolve()


def test_two_users_never_share_a_folder(tmp_path: Path) -> None:
    names = ["a/b", "a%2Fb", "a b", ".a", "%2Ea", "A", "a", "x" * 300, "x" * 301, "..", "."]
    assert len({home_of(str(tmp_path), name) for name in names}) == len(names)


def test_tutorials_are_copied_and_a_users_changes_are_kept(tmp_path: Path) -> None:
    source = tmp_path / "notebooks"
    (source / "data").mkdir(parents=True)
    (source / ".ipynb_checkpoints").mkdir()
    (source / ".ipynb_checkpoints" / "x").write_text("")
    (source / "01.ipynb").write_text("one")
    (source / "data" / "digits.csv").write_text("1,2")
    home = prepare_home(str(tmp_path / "home"), "alice", str(source))
    (home / "tutorials" / "01.ipynb").write_text("changed by alice")
    (source / "02.ipynb").write_text("two")

    prepare_home(str(tmp_path / "home"), "alice", str(source))

    found = {str(file.relative_to(home)): file.read_text() for file in home.rglob("*") if file.is_file()}
    assert found == {
        "tutorials/01.ipynb": "changed by alice",
        "tutorials/02.ipynb": "two",
        "tutorials/data/digits.csv": "1,2",
    }


def test_a_home_is_its_owners_alone(tmp_path: Path) -> None:
    assert prepare_home(str(tmp_path), "alice").stat().st_mode & 0o077 == 0
