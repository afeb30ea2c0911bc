"""What `make run` says, above all when it cannot start."""

from __future__ import annotations

import fcntl
import socket
from pathlib import Path

import pytest

from hub_config.leftovers import end_leftovers
from hub_config.run import _public_url, _welcome, main, parse_settings
from hub_config.settings import Settings, port_is_free
from pai_scheduler.testing.ports import free_port
from tests.hub import REPOSITORY, use_own_ports

ANY = "0.0.0.0"  # noqa: S104 - written down, not listened at


def test_a_taken_port_is_one_clear_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["--folder", str(tmp_path), "--port", str(port)]) == 1
    assert capsys.readouterr().err == (
        f"Port {port} is taken by another program. Stop it, or choose another port, "
        f"for example: make run PORT={port + 10}\n"
    )


def test_a_second_hub_on_the_same_data_names_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(tmp_path / "lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711 http://127.0.0.1:8000")
        lock.flush()
        assert main(["--folder", str(tmp_path)]) == 1
    assert "runs already, at http://127.0.0.1:8000 (process 4711)" in capsys.readouterr().err


def test_a_password_that_is_too_short_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", "short")
    assert main(["--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "PASSWORD must have at least 8 characters.\n"


def test_a_docker_that_does_not_answer_is_said_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    assert main(["--folder", str(tmp_path), "--engine", "docker"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("ENGINE=docker needs a Docker Engine")
    assert f"There is no Docker socket at {tmp_path}/docker.sock." in said


def test_a_cluster_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--cluster", "no-such.yaml"])
    assert "there is no cluster file no-such.yaml" in capsys.readouterr().err


def test_the_welcome_says_how_to_log_into_a_task(tmp_path: Path) -> None:
    settings = Settings(tmp_path, "docker", None, 8000, "p")
    assert "ssh -p 2022 NAME+JOB@127.0.0.1" in _welcome(settings, "2022", settings.url)


def test_the_welcome_says_that_only_this_machine_reaches_the_hub_and_what_to_do(tmp_path: Path) -> None:
    settings = Settings(tmp_path, "docker", None, 8010, "p")
    said = _welcome(settings, "2022", settings.url)
    assert "JupyterHub is at   http://127.0.0.1:8010\n" in said
    assert f"ssh -L 8010:127.0.0.1:8010 {socket.gethostname()}" in said
    page = (REPOSITORY / "docs/administrators/hub.md").read_text(encoding="utf-8")
    assert "docs/administrators/hub.md, “TLS”" in said
    assert "### TLS" in page


@pytest.mark.parametrize(
    ("lines", "url"),
    [
        ('c.JupyterHub.public_url = "https://hub.lab/"', "https://hub.lab"),
        (f'c.JupyterHub.bind_url = "http://{ANY}:8010"', f"http://{socket.gethostname()}:8010"),
        ('c.JupyterHub.bind_url = "http://10.0.0.7:8010/pai/"', "http://10.0.0.7:8010/pai"),
        ('c.JupyterHub.bind_url = "http://127.0.0.1:" + os.environ["PAI_PORT"]', "http://127.0.0.1:8010"),
        ("this is no Python", "http://127.0.0.1:8010"),
    ],
)
def test_the_welcome_gives_the_address_that_others_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, url: str
) -> None:
    config = tmp_path / "hub_config.py"
    config.write_text(f"import os\nc = get_config()\n{lines}\n")
    settings = Settings(tmp_path, "docker", None, 8010, "p", config=config)
    for name in settings.decided():
        monkeypatch.setenv(name, "")  # (put back afterwards)
    found = _public_url(settings, settings.decided())
    assert found == url
    assert ("Only this machine reaches it" in _welcome(settings, "2022", found)) == ("127.0.0.1" in url)


@pytest.mark.parametrize(
    ("cluster", "engine", "says"),
    [
        ("registries: ['*']", "swarm", "declares no node: nodes and GPUs are those of the Swarm."),
        ("defaults: {storageGB: 5}", "docker", "declares no node: nodes and GPUs are those of this machine."),
        ("nodes: [{name: a, cpus: 2}]", "process", ": a."),
        (
            "nodes: [{name: a, cpus: 2, gpus: {P100: 1}}, {name: b}]",
            "docker",
            ": a, b. GPUs that are declared and not found are simulated.",
        ),
        (
            "nodes: [{name: a, gpus: {P100: 1}}]",
            "swarm",
            "Nodes are those of the Swarm; of a cluster.yaml says what they have. "
            "GPUs that are declared and not found are simulated.",
        ),
    ],
)
def test_the_welcome_says_which_nodes_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: str, engine: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "cluster.yaml"
    file.write_text(cluster)
    (line,) = [
        line
        for line in _welcome(Settings(tmp_path, engine, file, 8000, "p"), "2022", "http://hub").splitlines()
        if "cluster.yaml" in line
    ]
    assert line.endswith(says)
    assert ("simulated" in line) == ("gpus" in cluster)


@pytest.mark.daemon
def test_a_hub_that_cannot_start_says_why_in_a_sentence_and_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("nodes:\n  - {name: a, cpus: many}\n")
    port = free_port()
    use_own_ports(tmp_path / "run")

    assert main(["--folder", str(tmp_path / "run"), "--port", str(port), "--cluster", str(cluster)]) == 1

    said = capsys.readouterr().err
    assert f"pai-scheduler: The cluster file {cluster} cannot be used: " in said
    assert len(said.splitlines()) == 2
    assert (tmp_path / "run" / "hub").stat().st_mode & 0o077 == 0
    assert end_leftovers(tmp_path / "run") == []
    assert port_is_free(port)


@pytest.mark.daemon
def test_a_lost_database_is_said_with_what_to_type_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    (folder / "scheduler" / "tasks" / "pai-j-0-main-0").mkdir(parents=True)
    use_own_ports(folder)
    assert main(["--folder", str(folder), "--port", str(free_port())]) == 1
    said = capsys.readouterr().err
    assert f"pai-scheduler: The data folder {folder}/scheduler was in use" in said
    assert said.endswith("\nThat is here: make run SCHEDULER_OPTIONS=--start-empty\n")


def test_an_administrator_has_a_password_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADMIN_PASSWORD", "short")
    assert main(["--folder", str(tmp_path), "--admin", "root"]) == 1
    assert capsys.readouterr().err == "ADMIN_PASSWORD must have at least 32 characters.\n"
    monkeypatch.delenv("ADMIN_PASSWORD")
    settings = parse_settings(["--folder", str(tmp_path), "--admin", "root eve"])
    environment = settings.environment()
    assert environment["PAI_ADMINISTRATORS"] == "root eve"
    assert len(environment["PAI_ADMIN_PASSWORD"]) >= 32
    assert environment["PAI_ADMIN_PASSWORD"] in _welcome(settings, "2222", settings.url)
    without = parse_settings(["--folder", str(tmp_path)])
    assert without.environment()["PAI_ADMIN_PASSWORD"] == ""
    assert "administrators  " not in _welcome(without, "2222", settings.url)


def test_a_sessions_file_that_is_wrong_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text("rules: [{idelAfter: 1h}]")
    assert main(["--folder", str(tmp_path), "--sessions", str(tmp_path / "mine.yaml")]) == 1
    assert "rules[0]: idelAfter is not known here. Did you mean idleAfter?" in capsys.readouterr().err
