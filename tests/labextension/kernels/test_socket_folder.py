from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pai_labextension.kernels.channels import SocketFolder, remove_left_folders

#: Makes a folder, says where, and lives on until it is killed.
OWNER = """
import sys
from pai_labextension.kernels.channels import SocketFolder
folder = SocketFolder()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_folder_goes_when_its_owner_was_killed_and_not_before():
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=-1, stdout=-1, text=True)
    try:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        remove_left_folders()
        assert folder.is_dir()
    finally:
        owner.kill()
        owner.communicate()
    assert folder.is_dir()
    remove_left_folders()
    assert not folder.exists()


def test_only_this_account_can_enter_it_and_it_goes_in_the_end():
    folder = SocketFolder()
    assert folder.path.stat().st_mode & 0o777 == 0o700
    remove_left_folders()
    assert folder.path.is_dir()
    folder.close()
    folder.close()
    assert not folder.path.exists()


def test_what_only_looks_like_one_is_left_alone(temporary: Path):
    precious = temporary / "precious"
    precious.mkdir()
    (precious / "owner").touch()
    (temporary / "pai-channels-link").symlink_to(precious)
    (temporary / "pai-channels-file").touch()
    # one that is just being made has no lock yet; a lock that is a link is none
    (temporary / "pai-channels-new").mkdir()
    linked = temporary / "pai-channels-linked"
    linked.mkdir()
    (linked / "owner").symlink_to(precious / "owner")
    # the folder of a kernel's own task, on a machine that runs tasks too
    (temporary / "pai-kernel-0").mkdir()
    before = sorted(temporary.rglob("*"))
    remove_left_folders()
    assert sorted(temporary.rglob("*")) == before
