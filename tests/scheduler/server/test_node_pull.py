"""An administrator brings an image to the nodes of a real Swarm, from a registry that wants a password."""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker
import msgspec
import pytest

from pai_scheduler.engine.agent.pull import PullProgress
from pai_scheduler.engine.swarm.agent_deployment import ProgramOutcome
from pai_scheduler.server import node_pull
from pai_scheduler.server.main import main
from tests.testbed.docker import client
from tests.testbed.registry import registry
from tests.testbed.swarm import Swarm

PASSWORD = "of the lab"


@pytest.fixture
def image(
    three_nodes: Swarm, agent_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Return the name of an image that no node has, and that its registry gives to who has logged in."""
    monkeypatch.setenv("DOCKER_HOST", three_nodes.manager.host)
    monkeypatch.setattr(
        "pai_scheduler.engine.swarm.agent_deployment.DOCKER_SOCKET",
        f"{three_nodes.folder}/{{{{.Node.Hostname}}}}/docker.sock",
    )
    del agent_image  # only to have it there
    with registry(tmp_path, {"lab": PASSWORD}, address=str(three_nodes.network[1])) as address:
        name = f"{address}/lab/large"
        with client(three_nodes.manager.host) as engine:
            engine.api.import_image_from_data(_layer(), repository=name, tag="1")
            login = {"username": "lab", "password": PASSWORD}
            said = list(engine.api.push(name, tag="1", auth_config=login, stream=True, decode=True))
            assert not [step for step in said if "error" in step], said
            engine.images.remove(f"{name}:1")
        yield f"{name}:1"
    for node in three_nodes.nodes:
        with client(node.host) as engine:
            if has(three_nodes, node.name, f"{name}:1"):
                engine.images.remove(f"{name}:1")


def log_in(folder: Path, image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do as `docker login` does."""
    folder.mkdir()
    auth = base64.b64encode(f"lab:{PASSWORD}".encode()).decode()
    (folder / "config.json").write_text(json.dumps({"auths": {image.partition("/")[0]: {"auth": auth}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))


def has(swarm: Swarm, node: str, image: str) -> bool:
    """Return whether a node has an image."""
    with client(swarm.node(node).host) as engine:
        try:
            engine.images.get(image)
        except docker.errors.ImageNotFound:
            return False
        return True


def test_every_node_gets_the_image_with_the_administrators_login(
    three_nodes: Swarm,
    agent_image: str,
    image: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log_in(tmp_path / "login", image, monkeypatch)
    pull = ["--agent-image", agent_image, "node", "pull", image, "--wait", "120"]
    assert main([*pull, "--node", "node-b"]) == 0
    assert [has(three_nodes, name, image) for name in ("node-a", "node-b", "node-c")] == [False, True, False]
    assert capsys.readouterr().out.splitlines()[-1] == "node-b has it."
    assert main(pull) == 0
    said = capsys.readouterr().out.splitlines()
    assert {"node-a has it.", "node-b has it.", "node-c has it."} <= set(said)
    assert all(has(three_nodes, name, image) for name in ("node-a", "node-b", "node-c"))
    with client(three_nodes.manager.host) as manager:
        assert [secret for secret in manager.secrets.list() if "everywhere" in secret.name] == []


def test_an_image_that_is_not_given_is_said_for_each_node(
    agent_image: str,
    image: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "nobody"))
    assert main(["--agent-image", agent_image, "node", "pull", image, "--wait", "120"]) == 1
    said = capsys.readouterr().out
    assert said.count("does not get it: ") == 3
    assert "no basic auth credentials" in said


def test_a_node_that_is_not_there_and_a_swarm_without_agents_are_refused(
    three_nodes: Swarm, agent_image: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", three_nodes.manager.host)
    assert main(["--agent-image", agent_image, "node", "pull", "debian", "--node", "node-x"]) == 2
    assert "node-x" in capsys.readouterr().err
    assert main(["node", "pull", "debian"]) == 2
    assert "--agent-image" in capsys.readouterr().err


def test_a_node_that_only_takes_long_is_not_said_to_be_without_the_image(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {
        "b": [PullProgress(done=5 * 10**6, total=9 * 10**6)],
        "c": [PullProgress(error="no such image")],
    }
    lines = {node: [msgspec.json.encode(one).decode() for one in all_] for node, all_ in said.items()}
    outcome = ProgramOutcome(
        lines, {"d": "exit code 1", "c": "exit code 1"}, unfinished={"a": "preparing", "b": "started"}
    )

    def run_everywhere(_client: Any, _program: Any, is_over: Any, *, seconds: float) -> ProgramOutcome:
        assert (is_over(outcome), seconds) == (False, 600.0)
        return outcome

    names = {node: f"node-{node}" for node in "abcd"}
    monkeypatch.setattr(node_pull, "_active", lambda _client, _only: names)
    monkeypatch.setattr(node_pull, "run_everywhere", run_everywhere)
    options = argparse.Namespace(agent_image="agent:1", image="lab/large:1", node=None, wait=600.0)
    assert (
        node_pull._pull(cast("Any", SimpleNamespace(services=SimpleNamespace(list=lambda **_: []))), options)
        == 1
    )
    later = (
        "has not got it yet: it took longer than 600 s. The layers that have come stay there; go on with: "
    )
    assert capsys.readouterr().out.splitlines() == [
        "node-b: 5 of 9 MB",
        "node-c does not get it: no such image",
        f"node-a {later}pai-scheduler node pull lab/large:1 --node node-a --wait 1200",
        f"node-b {later}pai-scheduler node pull lab/large:1 --node node-b --wait 1200",
        "node-d does not get it: exit code 1",
    ]


def test_where_docker_gives_no_log_the_exit_code_tells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    has_it = msgspec.json.encode(PullProgress(image="sha256:1")).decode()
    halfway = msgspec.json.encode(PullProgress(done=1, total=2)).decode()
    outcome = ProgramOutcome(
        {"a": [has_it], "c": [halfway]},
        {"a": "finished", "b": "finished", "c": "finished", "d": "task: non-zero exit (1)"},
        completed=frozenset("abc"),
        unread="Error grabbing logs: node d is not available",
    )

    def run_everywhere(_client: Any, _program: Any, is_over: Any, *, seconds: float) -> ProgramOutcome:
        assert is_over(outcome), seconds
        return outcome

    monkeypatch.setattr(
        node_pull, "_active", lambda _client, _only: {node: f"node-{node}" for node in "abcd"}
    )
    monkeypatch.setattr(node_pull, "run_everywhere", run_everywhere)
    options = argparse.Namespace(agent_image="agent:1", image="lab/large:1", node=None, wait=600.0)
    services = SimpleNamespace(list=lambda **_: [])
    assert node_pull._pull(cast("Any", SimpleNamespace(services=services)), options) == 1
    assert capsys.readouterr().out.splitlines() == [
        "node-a has it.",
        "node-b has it.",
        "node-c has it.",
        "node-d does not get it: task: non-zero exit (1)",
        "Docker does not give all that was printed: Error grabbing logs: node d is not available",
    ]


def _layer() -> bytes:
    """Return a file system with one file that is like no other."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        file = tarfile.TarInfo("data")
        file.size = 5 * 10**6
        archive.addfile(file, io.BytesIO(os.urandom(file.size)))
    return packed.getvalue()
