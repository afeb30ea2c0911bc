"""The options of engines, the processes and secrets they lead to, and the shared folders they refuse."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import pytest

from pai_scheduler.cluster.definition import Definition
from pai_scheduler.cluster.shared_folders import SharedFolder
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.engine.swarm.engine import SwarmEngine
from pai_scheduler.server import engines
from pai_scheduler.server.main import main
from pai_scheduler.server.options import make_parser
from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.workers.supervisor import ConnectionServers


def options(*arguments: str) -> argparse.Namespace:
    return make_parser().parse_args(["--engine", "swarm", *arguments])


def engine(data_dir: Path, *arguments: str) -> SwarmEngine:
    around = engines.Surroundings(Definition(()), JobKeys.in_folder(data_dir))
    made = engines.make_engine(options(*arguments), data_dir, around)
    assert isinstance(made, SwarmEngine)
    return made


@pytest.mark.parametrize("processes", [None, 1, 64])
def test_some_processes_or_the_usual_number_are_allowed(processes: int | None) -> None:
    engines.check_options(argparse.Namespace(tunnel_processes=processes, home_gb=None))


@pytest.mark.parametrize("processes", ["0", "-1", "5000"])
def test_no_tunnel_processes_or_far_too_many_are_refused_at_the_start(
    processes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    arguments = ["--engine", "swarm", "--data-dir", str(data), f"--tunnel-processes={processes}"]
    assert main(arguments) == 2
    assert "--tunnel-processes must be from 1 to 1024." in capsys.readouterr().err
    assert not data.exists()


def test_a_number_that_is_none_is_refused_by_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options("--tunnel-processes", "many")
    assert "--tunnel-processes: invalid int value: 'many'" in capsys.readouterr().err


@pytest.mark.parametrize("wanted", [1, 3])
async def test_as_many_processes_carry_connections_as_were_asked_for(
    wanted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ConnectionServers] = []

    def noted(*arguments: object, **more: object) -> ConnectionServers:
        made.append(tunnel_servers(*arguments, **more))  # type: ignore[arg-type]
        return made[-1]

    tunnel_servers = engines.tunnel_servers
    monkeypatch.setattr(engines, "tunnel_servers", noted)
    engine(tmp_path, "--tunnel-processes", str(wanted))
    (servers,) = made
    servers.start()
    try:
        async with asyncio.timeout(60):
            while len(servers.process_ids) < wanted:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.05)
        await asyncio.sleep(0)
        assert len(servers.process_ids) == wanted
    finally:
        await servers.close()


def test_homes_that_no_node_could_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"must be a path from / on \(--homes homes\)"):
        engine(tmp_path, "--homes", "homes")


@pytest.mark.parametrize(
    "arguments", [["--home-gb", "5"], ["--engine", "docker", "--homes", "/srv", "--home-gb", "5"]]
)
def test_homes_that_cannot_be_limited_are_refused(arguments: list[str]) -> None:
    with pytest.raises(StartError, match="Only homes that are volumes of one Docker"):
        engines.check_options(options(*arguments))
    with pytest.raises(StartError, match="--home-gb must be from 1"):
        engines.check_options(options("--engine", "docker", "--home-gb", "0"))
    engines.check_options(options("--engine", "docker", "--home-gb", "5"))


def test_a_data_folder_keeps_the_authority_of_its_agents(tmp_path: Path) -> None:
    assert engines.kept_credentials(tmp_path) is None
    engine(tmp_path)
    kept = engines.kept_credentials(tmp_path)
    assert kept is not None
    assert kept.stat().st_mode & 0o077 == 0
    secrets = [(tmp_path / "agents.key").read_bytes()]
    engine(tmp_path)
    assert [(tmp_path / "agents.key").read_bytes()] == secrets


SETS = SharedFolder("sets", "/data/sets", "", "/data/sets")


def test_the_process_engine_has_none_as_its_tasks_see_the_same_files_for_everybody() -> None:
    engines.check_shared_folders([], "process", [])
    with pytest.raises(StartError, match="process engine has no shared folders"):
        engines.check_shared_folders([SETS], "process", [])


@pytest.mark.parametrize("engine", ["docker", "swarm"])
def test_what_is_the_schedulers_own_is_not_shared(engine: str) -> None:
    engines.check_shared_folders([SETS], engine, [Path("/srv/pai"), None, Path("/data/homes")])
    for own in ("/data/sets", "/data", "/data/sets/pai"):
        with pytest.raises(StartError, match="would open"):
            engines.check_shared_folders([SETS], engine, [None, Path(own)])


def test_in_a_swarm_no_folder_is_made() -> None:
    folder = SharedFolder("scratch", "/scratch/{username}", "", "/scratch", create=True)
    engines.check_shared_folders([folder], "docker", [])
    with pytest.raises(StartError, match="leave create out"):
        engines.check_shared_folders([folder], "swarm", [])
