"""A machine joins a real Swarm by the lines that were printed."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest

from pai_scheduler.server.main import main
from tests.testbed.docker import client
from tests.testbed.swarm import Swarm


def test_the_line_makes_a_machine_join_and_it_is_told(
    three_nodes: Swarm, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", three_nodes.manager.host)
    node = three_nodes.node("node-c")
    with client(node.host) as engine, client(three_nodes.manager.host) as manager:
        engine.swarm.leave()
        for known in manager.nodes.list():
            if known.attrs["Description"]["Hostname"] == "node-c":
                assert known.id is not None
                manager.api.remove_node(known.id, force=True)
        said = ""
        watching = threading.Thread(target=main, args=(["node", "add", "--wait", "20"],), daemon=True)
        watching.start()
        give_up = time.monotonic() + 30
        while (line := re.search(r"docker swarm join --token (\S+) (\S+)", said)) is None:
            assert time.monotonic() < give_up, said
            said += capfd.readouterr().out
            time.sleep(0.05)
        engine.swarm.join([line[2]], line[1])
        while "node-c" not in said:
            assert time.monotonic() < give_up, said
            said += capfd.readouterr().out
            time.sleep(0.05)
        # the agents of this Swarm were started in another way
        assert f"node-c ({node.address}) has joined. Its agent comes with the scheduler" in said
        watching.join(30)
        said += capfd.readouterr().out
    assert "pai-scheduler doctor" in said


def test_a_manager_joins_by_another_token_and_nobody_needs_to_wait(
    three_nodes: Swarm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", three_nodes.manager.host)
    tokens = []
    for options in ([], ["--manager"]):
        assert main(["node", "add", "--wait", "0", *options]) == 0
        tokens += re.findall(r"--token (\S+)", capsys.readouterr().out)
    assert len(set(tokens)) == 2


def test_where_there_is_no_swarm_the_way_to_one_is_said(
    docker_host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    assert main(["node", "add"]) == 2
    assert "docker swarm init" in capsys.readouterr().err
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")
    assert main(["node", "add"]) == 2
