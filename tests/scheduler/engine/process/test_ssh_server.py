"""The SSH server of a task: there is one, and it can be seen whether it is alive."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from pai_scheduler.engine.process import procfs, ssh_server
from pai_scheduler.engine.process.ssh_server import SshServerRegistration, SshServerState


@pytest.fixture
def held(tmp_path: Path) -> SshServerRegistration:
    keeper = SshServerRegistration.hold(tmp_path)
    assert keeper is not None
    return keeper


def test_where_there_never_was_a_server_there_is_none(tmp_path: Path) -> None:
    assert ssh_server.look(tmp_path) == SshServerState(False, {})
    ssh_server.forget(tmp_path)


def test_what_a_server_says_is_seen_while_it_lives_and_after(
    tmp_path: Path, held: SshServerRegistration
) -> None:
    assert ssh_server.look(tmp_path) == SshServerState(True, {})
    held.tell({"port": 5})
    assert ssh_server.look(tmp_path) == SshServerState(True, {"port": 5})
    ssh_server.forget(tmp_path)
    assert ssh_server.look(tmp_path) == SshServerState(True, {"port": 5})
    os.close(held._file)
    assert ssh_server.look(tmp_path) == SshServerState(False, {"port": 5})
    ssh_server.forget(tmp_path)
    assert ssh_server.look(tmp_path) == SshServerState(False, {})


def test_a_second_server_does_not_get_it(tmp_path: Path, held: SshServerRegistration) -> None:
    held.tell({"port": 5})
    assert SshServerRegistration.hold(tmp_path) is None
    assert ssh_server.look(tmp_path) == SshServerState(True, {"port": 5})


def test_a_look_at_a_servers_state_is_noted_as_a_visit(tmp_path: Path, held: SshServerRegistration) -> None:
    held.tell({"port": 5})
    os.utime(tmp_path / ssh_server.FILE, (1000, 1000))
    assert held.last_visit() == 1000
    ssh_server.look(tmp_path)
    assert held.last_visit() > 1000


def test_half_an_answer_is_none(tmp_path: Path) -> None:
    (tmp_path / ssh_server.FILE).write_text('{"por')
    assert ssh_server.look(tmp_path) == SshServerState(False, {})


def test_a_server_is_dismissed_whether_it_listens_to_that_or_not(tmp_path: Path) -> None:
    """It has no task to serve, so it goes by itself; one that is stopped is ended."""
    for stopped in (False, True):
        pid = ssh_server.start(tmp_path)
        if stopped:
            os.kill(pid, signal.SIGSTOP)
        ssh_server.dismiss(pid)
        assert procfs.process(pid) is None
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def test_a_server_says_what_keeps_it_from_serving(tmp_path: Path) -> None:
    pid = ssh_server.start(tmp_path)
    os.waitpid(pid, 0)
    assert "problem" in ssh_server.look(tmp_path).answer
    ssh_server.dismiss(pid)
