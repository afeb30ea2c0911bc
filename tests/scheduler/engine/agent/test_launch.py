"""When the agent's container is made, replaced or left alone, and with what; on a real Swarm:
`tests/scheduler/engine/swarm/test_agent_service.py`."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker.errors import NotFound
from docker.models.containers import Container

from pai_scheduler.engine.agent.launch import NAME, ensure, look_after, main
from pai_scheduler.engine.swarm.connection import ENDS

SETTINGS = {
    "PAI_AGENT_FOLDER": "/var/lib/pai-agent",
    "PAI_AGENT_PORT": "7947",
    "PAI_RUNTIME_IMAGE": "runtime:1",
}
OWN = cast(
    "Container",
    SimpleNamespace(
        attrs={
            "Image": "sha256:0123",
            "Mounts": [{"Source": "/node/docker.sock", "Destination": "/var/run/docker.sock"}],
        }
    ),
)


class Agent:
    """The agent's container, on a node that has none of it at first."""

    def __init__(self, node: Node, labels: dict[str, str]) -> None:
        self._node, self.labels, self.status = node, labels, "created"
        self.files: dict[str, tuple[int, bytes]] = {}
        self.attrs = {"State": {"ExitCode": 2}}

    def put_archive(self, path: str, data: bytes) -> None:
        assert path == "/"
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                file = archive.extractfile(member)
                self.files[member.name] = member.mode, file.read() if file is not None else b""

    def logs(self, tail: int) -> bytes:
        assert tail == 1
        return b"ERROR The port is taken.\n"

    def start(self) -> None:
        self.status = "running"

    def stop(self, timeout: int) -> None:
        assert timeout
        self.status = "exited"

    def remove(self, *, force: bool) -> None:
        assert force
        self._node.agent = None


class Node:
    """A node's Docker Engine."""

    def __init__(self) -> None:
        self.agent: Agent | None = None
        self.options: dict[str, Any] = {}
        self.runtimes: dict[str, Any] = {"runc": {}}
        self.containers = SimpleNamespace(get=self._get, create=self._create)

    def info(self) -> dict[str, Any]:
        """Say how it runs containers."""
        return {"Runtimes": self.runtimes}

    def ensure(self, credentials: bytes = b"a PEM file", **settings: str) -> Agent:
        """See to the agent; return its container."""
        ensure(cast("Any", self), OWN, {**SETTINGS, **settings}, credentials)
        assert self.agent is not None
        assert self.agent.status == "running"
        return self.agent

    def _get(self, name: str) -> Agent:
        assert name == NAME
        if self.agent is None:
            raise NotFound("none")
        return self.agent

    def _create(self, *, name: str, labels: dict[str, str], **options: Any) -> Agent:
        assert name == NAME
        assert self.agent is None, "two of a name"
        self.options, self.agent = options, Agent(self, labels)
        return self.agent


@pytest.fixture
def node() -> Node:
    return Node()


def test_the_agent_has_the_nodes_socket_and_network_and_its_credentials_for_root_alone(node: Node) -> None:
    agent = node.ensure()
    (mount,) = node.options["mounts"]
    assert (mount["Source"], mount["Target"]) == ("/node/docker.sock", "/var/run/docker.sock")
    assert (node.options["image"], node.options["network_mode"]) == ("sha256:0123", "host")
    assert agent.files == {
        "etc/pai-agent": (0o700, b""),
        "etc/pai-agent/credentials.pem": (0o400, b"a PEM file"),
    }


def test_an_agent_that_runs_as_it_should_is_left_alone(node: Node) -> None:
    agent = node.ensure()
    assert node.ensure() is agent


@pytest.mark.parametrize(
    "changed",
    [{"credentials": b"newer ones"}, {"PAI_RUNTIME_IMAGE": "runtime:2"}, {"PAI_AGENT_HOMES": "/homes"}],
    ids=["credentials", "version", "homes"],
)
def test_an_agent_that_is_different_is_replaced(node: Node, changed: Any) -> None:
    agent = node.ensure()
    other = node.ensure(**changed)
    assert other is not agent
    assert agent.status == "exited"


def test_an_agent_that_has_ended_is_made_anew(node: Node) -> None:
    agent = node.ensure()
    agent.status = "exited"
    assert node.ensure() is not agent


def test_an_agent_that_docker_starts_again_and_again_says_why_until_it_runs(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = node.ensure()
    states = iter(["restarting", "restarting", "running", "restarting", "exited"])
    time = SimpleNamespace(sleep=lambda _: setattr(agent, "status", next(states)))
    monkeypatch.setattr("pai_scheduler.engine.agent.launch.time", time)
    assert look_after(cast("Any", node)) == "exit code 2. ERROR The port is taken."
    said = f"{ENDS}exit code 2. ERROR The port is taken."
    assert capsys.readouterr().err.splitlines() == [said, "The agent runs again.", said]


def test_an_agent_that_somebody_removes_is_said_to_be(node: Node) -> None:
    node.ensure()
    node.agent = None
    assert look_after(cast("Any", node)) == "the container pai-agent was removed."


def test_without_a_docker_engine_the_last_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.agent.launch._SOCKET", str(tmp_path / "docker.sock"))
    monkeypatch.setattr("pai_scheduler.engine.agent.launch.signal.signal", lambda *_: None)
    assert main() == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"{ENDS}There is no Docker socket at {tmp_path}/docker.sock.")


def test_where_docker_gives_gpus_the_agent_may_ask_nvml_for_all_and_compute_on_none(node: Node) -> None:
    agent = node.ensure()
    assert "device_requests" not in node.options
    node.runtimes["nvidia"] = {}
    assert node.ensure() is not agent
    (request,) = node.options["device_requests"]
    assert (request["Count"], request["Capabilities"]) == (-1, [["utility"]])


def test_a_shared_folder_with_homes_has_the_nodes_path(node: Node) -> None:
    node.ensure()
    assert node.options["volumes"] == ["/var/lib/pai-agent:/var/lib/pai-agent"]
    node.ensure(PAI_AGENT_HOMES="/mnt/homes")
    assert node.options["volumes"][1:] == ["/mnt/homes:/mnt/homes"]
