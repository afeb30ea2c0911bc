"""The doctor looks at a real Swarm whose network is broken in several ways."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pai_scheduler.server.main import main
from tests.testbed.docker import client
from tests.testbed.swarm import Swarm

Doctor = Callable[..., tuple[int, dict[str, str]]]


@pytest.fixture
def doctor(
    three_nodes: Swarm,
    agent_image: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Doctor]:
    """Return how to ask; what comes back is the exit code, and the text by its place."""
    monkeypatch.setenv("DOCKER_HOST", three_nodes.manager.host)
    monkeypatch.delenv("PAI_DATABASE_URL", raising=False)
    monkeypatch.setattr(
        "pai_scheduler.engine.swarm.agent_deployment.DOCKER_SOCKET",
        f"{three_nodes.folder}/{{{{.Node.Hostname}}}}/docker.sock",
    )
    data_dir = three_nodes.give_key(tmp_path / "data")
    options = ("--engine", "swarm", "--data-dir", str(data_dir))

    def ask(*words: str, image: str = agent_image) -> tuple[int, dict[str, str]]:
        code = main([*options, "--agent-image", image, "doctor", *words])
        place, places = "", dict[str, str]()
        for line in capsys.readouterr().out.splitlines():
            if line.startswith(" "):
                places[place] += f"{line.strip()}\n"
            else:
                place = line.split(" (")[0]
                places[place] = ""
        return code, places

    yield ask
    with client(three_nodes.manager.host) as manager:
        assert [service.name for service in manager.services.list() if "everywhere" in service.name] == []
        # (a node lets go of a network some time after the Swarm)
        give_up = time.monotonic() + 30
        while left := [network for network in manager.networks.list() if "everywhere" in str(network.name)]:
            assert time.monotonic() < give_up, left
            time.sleep(0.2)


@contextmanager
def blocked(swarm: Swarm, name: str, *what: str) -> Iterator[None]:
    """Let some packets not reach a node."""
    namespace = swarm.node(name).namespace
    rule = ("INPUT", *what, "-j", "DROP")
    _run("ip", "netns", "exec", namespace, "iptables", "-I", *rule)
    try:
        yield
    finally:
        _run("ip", "netns", "exec", namespace, "iptables", "-D", *rule)


def test_a_swarm_that_works_has_nothing_wrong_and_one_node_can_be_asked_about(
    doctor: Doctor, three_nodes: Swarm
) -> None:
    code, places = doctor()
    assert code == 0, places
    assert set(places) == {"This machine", "node-a", "node-b", "node-c"}
    assert "It manages a Swarm of 3 nodes, 1 of them managers." in places["This machine"]
    for name, others in (("node-a", "node-b, node-c"), ("node-b", "node-a, node-c")):
        assert f"The networks of jobs reach {others}, with large packets too." in places[name]
        assert "Its agent hears this scheduler." in places[name]
    with three_nodes.without("node-c"):
        code, places = doctor("--node", "node-c")
    assert (code, list(places)) == (0, ["node-c"])
    assert "It is paused or drained" in places["node-c"]


@pytest.mark.long
def test_a_network_that_is_not_let_through_is_named_with_its_port(doctor: Doctor, three_nodes: Swarm) -> None:
    with blocked(three_nodes, "node-c", "-p", "udp", "--dport", "4789"):
        code, places = doctor()
    assert code == 1
    for name, reached in (("node-a", "node-b"), ("node-b", "node-a")):
        assert "WRONG The networks of jobs do not reach node-c.\n→ Open 4789/udp" in places[name]
        assert f"do not reach {reached}" not in places[name]
    assert "WRONG The networks of jobs do not reach node-a." in places["node-c"]


def test_a_way_for_small_packets_only_is_found(doctor: Doctor, three_nodes: Swarm) -> None:
    # as a way with a smaller MTU does that tells nobody
    large = ("-m", "length", "--length", "1301:65535")
    with blocked(three_nodes, "node-b", "-p", "udp", "--dport", "4789", *large):
        code, places = doctor("--node", "node-a")
    assert code == 1
    assert "WRONG Small packets reach node-b, large ones do not." in places["node-a"]
    assert "node-c, large" not in places["node-a"]


def test_an_agent_behind_a_closed_port_and_one_of_another_scheduler_are_told_apart(
    doctor: Doctor, three_nodes: Swarm, tmp_path: Path
) -> None:
    with blocked(three_nodes, "node-b", "-p", "tcp", "--dport", str(three_nodes.agent_port)):
        code, places = doctor("--node", "node-b")
    assert code == 1
    assert "WRONG No agent answers at port 7947" in places["node-b"]
    assert "Open 7947/tcp" in places["node-b"]
    (tmp_path / "data" / "agents.key").write_bytes(b"the key of some other scheduler.")
    code, places = doctor("--node", "node-b")
    assert code == 1
    assert "WRONG The agent does not know this scheduler" in places["node-b"]


def test_an_image_that_no_node_gets_is_said_with_dockers_reason(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.server.doctor.checks._PROBE_SECONDS", 20.0)
    code, places = doctor("--node", "node-b", image="127.0.0.1:9/nothing:1")
    assert code == 1
    assert "WRONG The image 127.0.0.1:9/nothing:1 does not start on it: " in places["node-b"]


def test_a_socket_that_leads_to_another_docker_engine_is_said_in_the_words_of_what_failed(
    doctor: Doctor, three_nodes: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pai_scheduler.engine.swarm.agent_deployment.DOCKER_SOCKET",
        f"{three_nodes.folder}/node-a/docker.sock",
    )
    code, places = doctor("--node", "node-b")
    assert code == 1
    said = "has failed: The Docker Engine at /var/run/docker.sock of this node does not know"
    assert said in places["node-b"]
    assert "registry" not in places["node-b"]


def test_a_name_that_no_node_has_is_refused(
    three_nodes: Swarm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", three_nodes.manager.host)
    code = main(["--engine", "swarm", "--data-dir", str(tmp_path), "doctor", "--node", "node-x"])
    assert (code, "No node of the Swarm has the name node-x." in capsys.readouterr().err) == (2, True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
