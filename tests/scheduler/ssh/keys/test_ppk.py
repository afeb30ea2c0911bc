"""Keys for PuTTY: read by PuTTY's own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pai_scheduler.ssh.keys import JobKeys, ppk
from tests.testbed.machine import apt_install


@pytest.fixture(scope="module", autouse=True)
def _puttygen() -> None:
    apt_install({"puttygen": "putty-tools"})


@pytest.mark.parametrize("job", ["one", "two", "three", "four"])
@pytest.mark.parametrize("comment", ["alice~one", "王 小/明~x", ""])
def test_putty_reads_the_key_as_openssh_does(tmp_path: Path, job: str, comment: str) -> None:
    pair = JobKeys(b"secret").identity(job)
    file = tmp_path / "key.ppk"
    file.write_text(ppk(pair, comment), encoding="utf-8", newline="")
    public = subprocess.run(["puttygen", str(file), "-L"], capture_output=True, text=True, check=True)
    assert public.stdout.split()[:2] == pair.public.split()
    back = tmp_path / "back"
    subprocess.run(["puttygen", str(file), "-O", "private-openssh-new", "-o", str(back)], check=True)
    read = subprocess.run(["ssh-keygen", "-y", "-f", str(back)], capture_output=True, text=True, check=True)
    assert read.stdout.split()[:2] == pair.public.split()


def test_putty_refuses_one_that_was_changed(tmp_path: Path) -> None:
    """So that what it reads above, it has checked."""
    text = ppk(JobKeys(b"secret").identity("one"), "alice~one").replace("alice~one", "alice~two")
    file = tmp_path / "key.ppk"
    file.write_text(text, newline="")
    command = ["puttygen", str(file), "-O", "private-openssh-new", "-o", str(tmp_path / "back")]
    assert "MAC failed" in subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_no_comment_adds_a_line() -> None:
    pair = JobKeys(b"secret").identity("one")
    assert "\r\nComment: a?Encryption: x\r\n" in ppk(pair, "a\nEncryption: x")
