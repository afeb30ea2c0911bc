"""What a server knows of its task."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.engine.process.task_folder import COOKIE, LaunchSpec, TaskFolder
from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.ssh.runtime.process.server import LocalTask
from pai_scheduler.ssh.task_files import ssh_files


def make(folder: Path, env: dict[str, str] | None = None, **fields: Any) -> LocalTask:
    """Prepare a task, and return what a server makes of its folder."""
    keys = JobKeys(b"secret")
    spec: LaunchSpec = {
        "argv": ["/bin/true"],
        "env": env or {"PATH": os.environ["PATH"]},
        "groups": [],
        "memory_mb": 1,
        "ssh_port": 40000,
    }
    given: Any = {**spec, **fields}
    TaskFolder(folder).prepare(given, ssh_files(keys.identity("j"), keys.host("j"), {}))
    return LocalTask(folder)


def test_it_has_the_tasks_port_keys_and_environment(tmp_path: Path) -> None:
    task = make(tmp_path, {"A": "b\nc"}, ports=[1, 2])
    assert (task.port, task.ports, task.env) == (40000, {1, 2}, {"A": "b\nc"})
    assert task.authorized_keys.startswith("ssh-ed25519 ")
    assert task.host_key.startswith(b"-----BEGIN OPENSSH PRIVATE KEY")


def test_a_task_without_a_port_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no port"):
        make(tmp_path, ssh_port=None)


def test_a_task_without_keys_is_refused(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "private" / "ssh_host_key").unlink()
    with pytest.raises(FileNotFoundError):
        LocalTask(tmp_path)


@pytest.mark.parametrize("broken", [b"", b"{"])
def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path, broken: bytes) -> None:
    make(tmp_path)
    (tmp_path / "launch.json").write_bytes(broken)
    with pytest.raises(ValueError, match="Expecting"):
        LocalTask(tmp_path)


def test_the_shell_is_the_tasks_own_where_it_can_be_used(tmp_path: Path) -> None:
    own = tmp_path / "my shell"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert make(tmp_path, {"SHELL": str(own)}).shell() == str(own)
    own.chmod(0o644)
    assert make(tmp_path, {"SHELL": str(own)}).shell().endswith("sh")


def test_without_a_shell_of_its_own_it_is_one_from_the_tasks_path(tmp_path: Path) -> None:
    (tmp_path / "sh").write_text("#!/bin/sh\n")
    (tmp_path / "sh").chmod(0o755)
    assert make(tmp_path, {"PATH": str(tmp_path)}).shell() == str(tmp_path / "sh")
    assert make(tmp_path, {"PATH": "/nowhere"}).shell() == "/bin/sh"


def test_its_processes_are_those_with_its_mark(tmp_path: Path) -> None:
    task = make(tmp_path, {COOKIE: str(tmp_path)})
    process = subprocess.Popen(["cat"], env={COOKIE: str(tmp_path)}, stdin=subprocess.PIPE)
    try:
        assert task.processes() == {process.pid}
    finally:
        process.communicate()
    assert task.processes() == set()


def test_a_task_that_nothing_is_known_of_has_no_processes(tmp_path: Path) -> None:
    assert make(tmp_path).processes() == set()


def test_sessions_begin_in_the_folder_that_the_job_names_else_in_the_tasks_own(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert make(tmp_path, {"PAI_WORK_DIR": str(home)}).work == home
    for unusable in ("", "home", str(tmp_path / "missing"), "/\0"):
        own = make(tmp_path, {"PAI_WORK_DIR": unusable})
        assert own.work == tmp_path / "work"
