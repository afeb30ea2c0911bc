"""What tests have started ends with them: interrupted by hand or by a machine, alone or in parallel."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.testbed.docker import Daemon, client, end_unused, info, socket_folder
from tests.testbed.fixtures import provide
from tests.testbed.images import tiny_image

ROOT = Path(__file__).parents[2]
#: (pytest-xdist would give its workers ten seconds to end in)
CONFTEST = """
from xdist.workermanage import NodeManager

NodeManager.EXIT_TIMEOUT = 1
pytest_plugins = ["tests.testbed.guard"]
"""
#: It starts what daemons are: processes without a parent, in sessions of their own.
TESTS = """
import subprocess, sys, time
from pathlib import Path

import pytest

@pytest.fixture
def daemon():
    begin = "import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0)"
    say = "open(f'{os.getpid()}.pid', 'w').close(); time.sleep(1000)"
    subprocess.run([sys.executable, "-c", f"{begin}; {say}"], check=True)
    yield subprocess.Popen(["setsid", sys.executable, "-c", f"import os, time; {say}"])
    Path("ended").touch()

@pytest.mark.parametrize("number", [1, 2])
def test_a_test_that_takes_long(daemon, number):
    time.sleep(1000)
"""


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def started(folder: Path, count: int, run: subprocess.Popen[str]) -> list[int]:
    while len(found := list(folder.glob("*.pid"))) < count:
        assert run.poll() is None, run.communicate()[0]
        time.sleep(0.05)
    return [int(path.stem) for path in found]


@pytest.mark.daemon
@pytest.mark.parametrize(
    ("number", "workers", "count"), [(signal.SIGINT, 0, 2), (signal.SIGTERM, 0, 2), (signal.SIGTERM, 2, 4)]
)
def test_interrupted_tests_leave_no_process(
    tmp_path: Path, number: signal.Signals, workers: int, count: int
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_it.py").write_text(TESTS)
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", str(workers)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    pids = started(tmp_path, count, run)
    run.send_signal(number)
    said, _ = run.communicate()
    assert run.returncode == pytest.ExitCode.INTERRUPTED, said
    assert not [pid for pid in pids if is_there(pid)]
    # (the time that workers have for it may be too short)
    assert workers or (tmp_path / "ended").exists()


@pytest.fixture
def daemon(docker_host: str, tmp_path: Path) -> Iterator[Daemon]:
    del docker_host  # only where Docker can be had at all
    own = Daemon(tmp_path / "root", socket_folder(), own_network=True)
    try:
        provide(own.start)
        own.users.touch()
        yield own
    finally:
        own.remove()


def test_the_last_who_used_the_docker_engine_ends_it_with_all_but_its_images(daemon: Daemon) -> None:
    image = tiny_image(daemon.host)
    with client(daemon.host) as engine:
        engine.networks.create("left")
        engine.volumes.create("left")
        engine.containers.run(image, ["sleep", "1000"], detach=True, network="none")
    with daemon.users.open("a") as another:
        fcntl.flock(another, fcntl.LOCK_SH)
        end_unused(daemon)
        assert info(daemon.socket_path) is not None
    end_unused(daemon)
    assert info(daemon.socket_path) is None
    daemon.start()
    assert left(daemon) == ([], ["bridge", "host", "none"], [], [f"{image}:latest"])
    # who starts it by hand wants it to stay
    end_unused(daemon)
    assert info(daemon.socket_path) is not None


def left(daemon: Daemon) -> tuple[list[str], list[str], list[str], list[str]]:
    engine: docker.DockerClient
    with client(daemon.host) as engine:
        return (
            [str(container.name) for container in engine.containers.list(all=True)],
            sorted(str(network.name) for network in engine.networks.list()),
            [str(volume.name) for volume in engine.volumes.list()],
            [tag for image in engine.images.list() for tag in image.tags],
        )
