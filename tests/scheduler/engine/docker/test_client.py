"""Docker's own library, as the builds use it: the same sentences as the engine's where there is no daemon."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from pai_scheduler.engine.docker.sync_client import check_docker, docker_client
from pai_scheduler.engine.protocol import EngineError


def refusal(host: str) -> str:
    with pytest.raises(EngineError) as caught:
        check_docker(host)
    return str(caught.value)


def test_what_is_wrong_with_a_socket_is_one_sentence(tmp_path: Path) -> None:
    assert refusal(f"unix://{tmp_path}/s").startswith(f"There is no Docker socket at {tmp_path}/s. Install")
    (tmp_path / "file").touch()
    assert "is no socket" in refusal(f"unix://{tmp_path}/file")
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(tmp_path / "s"))
    assert "Is dockerd running?" in refusal(f"unix://{tmp_path}/s")


def test_a_daemon_is_found_where_docker_host_says(docker_host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    with docker_client() as docker:
        assert docker.ping()
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/such/socket")
    with pytest.raises(EngineError, match="/no/such/socket"):
        check_docker()
