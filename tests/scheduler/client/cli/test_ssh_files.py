"""What is written to somebody's ~/.ssh, and what of theirs stays as it is."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from pai_scheduler.client.cli.ssh_config import SshFolder, write_private
from pai_scheduler.client.storage.transfer import LocalFileError

THEIRS = b"# mine \xff\nHost other\n  User me\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".ssh"


def write(folder: Path, *jobs: str) -> None:
    SshFolder(folder).write("Host x\n", "pai-gateway key\n", dict.fromkeys(jobs, "key\n"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_without_ssh_gets_it(folder: Path) -> None:
    old = os.umask(0)
    try:
        write(folder, "a")
    finally:
        os.umask(old)
    assert (folder / "config").read_text() == "Include pai/config\n"
    assert (folder / "pai" / "config").read_text() == "Host x\n"
    assert {mode(path) for path in folder.rglob("*") if path.is_file()} == {0o600}
    assert {mode(path) for path in (folder, *folder.rglob("*")) if path.is_dir()} == {0o700}


def test_their_file_keeps_every_byte_its_mode_and_its_place(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    elsewhere = tmp_path / "dotfiles"
    elsewhere.write_bytes(THEIRS)
    elsewhere.chmod(0o644)
    (folder / "config").symlink_to(elsewhere)
    write(folder)
    write(folder)
    assert (folder / "config").is_symlink()
    assert elsewhere.read_bytes() == b"Include pai/config\n\n" + THEIRS
    assert mode(elsewhere) == 0o644
    SshFolder(folder).remove()
    assert elsewhere.read_bytes() == THEIRS


@pytest.mark.parametrize("line", ["Include pai/config", '  include = "pai/config" ', "INCLUDE\tpai/config"])
def test_a_line_that_they_put_elsewhere_at_the_top_is_enough(folder: Path, line: str) -> None:
    folder.mkdir()
    theirs = f"# mine\n{line}\nHost a\n"
    (folder / "config").write_text(theirs)
    write(folder)
    assert (folder / "config").read_text() == theirs


def test_a_line_that_holds_for_one_host_only_is_not(folder: Path) -> None:
    folder.mkdir()
    (folder / "config").write_text("Host a\n  Include pai/config\n")
    write(folder)
    assert (folder / "config").read_text().startswith("Include pai/config\n\nHost a\n")


def test_keys_of_other_jobs_vanish(folder: Path) -> None:
    write(folder, "a", "b")
    write(folder, "b", "c")
    assert sorted(path.name for path in (folder / "pai" / "keys").iterdir()) == ["b", "c"]


def test_nothing_is_there_to_remove(folder: Path) -> None:
    SshFolder(folder).remove()
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_said(folder: Path) -> None:
    folder.write_text("a file")
    with pytest.raises(LocalFileError, match=r"\.ssh.* cannot be written: "):
        write(folder)


def test_a_private_file_is_whole_or_not_at_all_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("untouched")
    (tmp_path / "key").symlink_to("other")
    write_private(tmp_path / "key", "secret")
    assert ((tmp_path / "other").read_text(), (tmp_path / "key").read_text()) == ("untouched", "secret")
    assert mode(tmp_path / "key") == 0o600
    with pytest.raises(UnicodeEncodeError):
        write_private(tmp_path / "key", "\ud800")
    assert (tmp_path / "key").read_text() == "secret"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "other"]


def test_openssh_reads_the_file_through_that_line(folder: Path) -> None:
    # what `Include` is relative to follows from the password database, which ssh asks for the home
    write(folder)
    (folder / "pai" / "config").write_text("Host pai-x\n  Port 4711\n")
    (folder / "config").write_text((folder / "config").read_text().replace("pai/", f"{folder}/pai/"))
    read = subprocess.run(["ssh", "-G", "-F", folder / "config", "pai-x"], capture_output=True, text=True)
    assert "port 4711\n" in read.stdout
