"""Logs of containers: nothing lost, nothing twice, whatever happens to the service in between."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiodocker
import pytest

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.logs import GAP, file_size
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.engine.protocol import EndCause, Notice, Noticed
from pai_scheduler.testing.lab import PATIENCE, Lab, eventually, make_gang, make_task

#: Writes numbered lines on both streams, some of them longer than Docker takes in one piece.
COUNT = r"""exec python3 -c "
import sys, time
for n in range({lines}):
    sys.stdout.write(f'{{n:06}} ' + 'x' * (40000 if n % 100 == 50 else 10) + chr(10))
    sys.stderr.write(f'{{n:06}}' + chr(10))
    sys.stdout.flush(); sys.stderr.flush()
    time.sleep({pause})
" """


def expected(lines: int) -> tuple[str, str]:
    out = "".join(f"{n:06} " + "x" * (40000 if n % 100 == 50 else 10) + "\n" for n in range(lines))
    return out, "".join(f"{n:06}\n" for n in range(lines))


@pytest.fixture(autouse=True, params=["Docker's files", "Docker is asked"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read logs in both ways: from Docker's own files, and where these are not open to us."""

    async def open_files(engine: DockerEngine) -> None:
        """Find none."""

    if request.param == "Docker is asked":
        monkeypatch.setattr(DockerEngine, "_open_files", open_files)


@pytest.fixture
async def docker(docker_host: str) -> AsyncIterator[aiodocker.Docker]:
    async with aiodocker.Docker(url=docker_host) as client:
        yield client


async def test_a_log_is_exact_when_the_engine_is_left_and_opened_again_and_again(
    docker_lab: Lab, open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str
) -> None:
    lab = docker_lab
    task = await lab.start(COUNT.format(lines=600, pause=0.003))
    gangs, lab.gangs = lab.gangs, []
    for seen in (40, 150, 300):
        await lab.printed(task, f"\n{seen:06} ")
        await lab.stop_listening()
        lab = await Lab.over(await open_docker(), debian_image)
        await lab.adopt([task])
    lab.gangs = gangs
    assert (await lab.ended(task)).exit_code == 0
    out, err = expected(600)
    assert lab.output(task, "stdout") == out
    assert lab.output(task, "stderr") == err
    await lab.clean()


async def test_a_log_is_exact_when_the_service_is_killed_while_it_is_written(
    open_docker: Callable[..., Awaitable[DockerEngine]], docker_host: str, tmp_path: Path, debian_image: str
) -> None:
    task = make_task()
    host = Path(__file__).with_name("docker_service.py")
    command = COUNT.format(lines=400, pause=0.003)
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, host, docker_host, tmp_path / "data", debian_image, task.job_id, command, "1024"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    out_file = tmp_path / "data" / "logs" / task.name / "stdout"
    await eventually(lambda: out_file.exists() and out_file.stat().st_size > 60_000, "the service logs")
    service.send_signal(signal.SIGKILL)
    await service.wait()
    lab = await Lab.over(await open_docker(), debian_image)
    await lab.adopt([task])
    ended = await lab.ended(task)
    out, err = expected(400)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 0)
    assert lab.output(task, "stdout") == out
    assert lab.output(task, "stderr") == err
    lab.gangs.append(make_gang(lab.make("true", task=task)))  # so that all of it is removed
    await lab.clean()


async def test_lines_longer_than_docker_takes_at_once_and_unfinished_ones_are_kept_as_they_are(
    docker_lab: Lab,
) -> None:
    # (at once it takes 16384 bytes)
    lengths = (16383, 16384, 16385, 32768, 40000)
    write = "; ".join(f"print('x' * {length}); print('y')" for length in lengths)
    unfinished = (16383, 16384, 40000)
    *long, short = await docker_lab.run_gang(
        *(f"python3 -c \"{write}; print(end='z' * {length})\"" for length in unfinished),
        "printf 'a\\n\\nb'; printf c >&2",
    )
    for (task, _), length in zip(long, unfinished, strict=True):
        lines = "".join("x" * length + "\ny\n" for length in lengths)
        assert docker_lab.output(task) == lines + "z" * length
    assert docker_lab.output(short[0], "stdout") == "a\n\nb"
    assert docker_lab.output(short[0], "stderr") == "c"


async def test_a_service_that_takes_up_in_the_middle_of_a_long_line_goes_on_there(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str, docker: aiodocker.Docker
) -> None:
    lab = await Lab.over(await open_docker(), debian_image)
    letters = "import sys; sys.stdout.write({!r} * {}); sys.stdout.flush()"
    begin, end = letters.format("x", 40_000), letters.format("y", 40_000)
    task = await lab.start(f'python3 -c "{begin}"; while [ ! -e go ]; do sleep 0.1; done; python3 -c "{end}"')
    await eventually(lambda: lab.engine.log(task).size("stdout") == 2 * 2**14, "whole pieces are copied")
    gangs, lab.gangs = lab.gangs, []
    await lab.stop_listening()
    lab = await Lab.over(await open_docker(), debian_image)
    lab.gangs = gangs
    await lab.adopt([task])
    go = await docker.containers.container(task.name).exec(["touch", "/pai/go"])
    await go.start(detach=True)
    await lab.ended(task)
    assert lab.output(task) == "x" * 40_000 + "y" * 40_000
    await lab.clean()


async def test_a_full_disk_ends_neither_the_task_nor_the_engine_and_is_said(
    docker_host: str, tiny_disk: Path, debian_image: str
) -> None:
    engine = DockerEngine(tiny_disk, DockerSettings(host=docker_host))
    await engine.start()
    lab = await Lab.over(engine, debian_image)
    task, ended = await lab.run("head -c 3000000 /dev/zero | tr '\\0' x; exit 4")
    told = [event for event in lab.events if isinstance(event, Noticed) and event.task == task]
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 4)
    assert "disk is full" in str(told[-1].message)
    assert 0 < engine.log(task).size("stdout") < 3_000_000
    await lab.clean()
    await engine.close()


async def test_a_log_beyond_its_limit_keeps_both_ends_and_nothing_comes_twice_after_a_restart(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str
) -> None:
    few = LogKeeping(max_mb_per_task=1)
    lab = await Lab.over(await open_docker(logs=few), debian_image)
    # some 3 MB at once, then a little more when the service is another one
    count = "for i in range({}): print('%08d' % i, '.' * 90)"
    task = await lab.start(
        f'python3 -c "{count.format(30_000)}"; echo pause; while [ ! -e go ]; do sleep 0.1; done; echo end'
    )
    await lab.printed(task, "pause")
    gangs, lab.gangs = lab.gangs, []
    await lab.stop_listening()
    lab = await Lab.over(await open_docker(logs=few), debian_image)
    lab.gangs = gangs
    await lab.adopt([task])
    await lab.engine.kill(task, 0)
    await lab.ended(task)
    log = lab.engine.log(task)
    lines = [f"{n:08} {'.' * 90}\n" for n in range(30_000)]
    whole = ("".join(lines) + "pause\n").encode()
    assert log.size("stdout") == len(whole)
    removed = log.removed("stdout")
    assert removed is not None
    assert log.read("stdout") == whole[: removed.start] + whole[removed.stop :]
    assert sum(file.stat().st_size for file in log.folder.rglob("*") if file.is_file()) <= 2**20
    await lab.clean()


#: Writes 100 MB as fast as it can: Docker keeps less of it.
FLOOD_LINES = 100_000
FLOOD = f"""python3 -c "
import sys
for n in range({FLOOD_LINES}):
    sys.stdout.write(f'{{n:08}} ' + 'x' * 990 + chr(10))
" """


def flood_line(number: int) -> bytes:
    return b"%08d " % number + b"x" * 990 + b"\n"


class DaemonsFiles:
    """Watches how large Docker's own log of a container becomes."""

    def __init__(self, docker: aiodocker.Docker, container: str, root: Path) -> None:
        self._docker, self._container, self._root = docker, container, root

    async def size(self) -> int:
        found = await self._docker.containers.container(self._container).show()
        folder = self._root / "containers" / found["Id"] / "local-logs"
        return sum(_size(path) for path in await asyncio.to_thread(lambda: list(folder.glob("*.log*"))))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # just rotated
        return 0


async def test_a_task_that_writes_without_end_fills_no_disk_and_nothing_is_lost_twice_or_torn(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str, docker: aiodocker.Docker
) -> None:
    root = Path((await docker.system.info())["DockerRootDir"])
    lab = await Lab.over(await open_docker(logs=LogKeeping(max_mb_per_task=8)), debian_image)
    task = await lab.start(f"{FLOOD}; echo the end; echo apart >&2; while [ ! -e go ]; do sleep 0.1; done")
    await lab.started(task)
    files, largest = DaemonsFiles(docker, task.name, root), 0
    log = lab.engine.log(task)
    async with asyncio.timeout(PATIENCE * 4):
        while log.read("stderr") != b"apart\n":
            largest = max(largest, await files.size())
            await asyncio.sleep(0.1)
    kept = max(largest, await files.size())
    await lab.engine.kill(task, 0)
    await lab.ended(task)
    assert 40_000_000 < kept <= 4 * file_size(8 * 2**20) + 2**20
    removed = log.removed("stdout")
    assert removed is not None
    # every byte was counted: what is left stands where it was written
    assert log.size("stdout") == FLOOD_LINES * 1000 + len("the end\n")
    for place in (0, removed.start // 1000 - 1, removed.stop // 1000 + 1, FLOOD_LINES - 1):
        assert log.read("stdout", place * 1000, 1000) == flood_line(place)
    assert log.read("stdout", -8) == b"the end\n"
    whole = b"".join(flood_line(n) for n in range(removed.stop // 1000, FLOOD_LINES)) + b"the end\n"
    assert log.read("stdout", removed.stop) == whole[removed.stop % 1000 :]
    (noticed,) = lab.noticed(task)
    assert noticed.notice is Notice.LOG_SHORTENED
    assert "longer than 8 MB" in str(noticed.message)
    await lab.clean()


async def test_what_docker_rotated_away_while_the_service_was_down_is_told_as_a_gap(
    open_docker: Callable[..., Awaitable[DockerEngine]],
    docker_host: str,
    tmp_path: Path,
    debian_image: str,
    docker: aiodocker.Docker,
) -> None:
    task = make_task()
    command = f"echo begin; while [ ! -e /pai/go ]; do sleep 0.1; done; {FLOOD}; echo the end; sleep 100000"
    host = Path(__file__).with_name("docker_service.py")
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, host, docker_host, tmp_path / "data", debian_image, task.job_id, command, "8"),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    out_file = tmp_path / "data" / "logs" / task.name / "stdout"
    await eventually(lambda: out_file.exists() and out_file.read_bytes() == b"begin\n", "the service logs")
    service.send_signal(signal.SIGKILL)
    await service.wait()
    container = docker.containers.container(task.name)
    go = await container.exec(["touch", "/pai/go"])
    await go.start(detach=True)
    async with asyncio.timeout(PATIENCE * 4):
        while await container.log(stdout=True, tail=1) != ["the end\n"]:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    # it still writes when there is a service again, which keeps everything that Docker has
    lab = await Lab.over(await open_docker(logs=LogKeeping(max_mb_per_task=1024)), debian_image)
    await lab.adopt([task])
    await eventually(lambda: lab.engine.log(task).read("stdout", -8) == b"the end\n", "all of it is copied")
    lines = lab.engine.log(task).read("stdout").splitlines(keepends=True)
    assert lines[:2] == [b"begin\n", GAP]
    numbers = [int(line[:8]) for line in lines[2:-1]]
    assert numbers == list(range(numbers[0], FLOOD_LINES))
    assert 0 < numbers[0] < FLOOD_LINES - 30_000
    await lab.engine.kill(task, 0)
    await lab.ended(task)
    lab.gangs.append(make_gang(lab.make("true", task=task)))  # so that all of it is removed
    await lab.clean()


async def test_the_age_of_a_log_counts_from_the_release(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str
) -> None:
    lab = await Lab.over(await open_docker(), debian_image)
    running, ended, left = [
        await lab.start(command)
        for command in ("echo ready; exec sleep 100000", "echo long ago", "echo just ended")
    ]
    await lab.printed(running, "ready")
    for task in (ended, left):
        await lab.ended(task)
    await lab.engine.release(lab.gangs.pop(1))
    for task in (running, ended, left):
        os.utime(lab.engine.log(task).folder, (1, 1))
    await lab.engine.release(lab.gangs.pop())
    await lab.adopt([running])
    await eventually(lambda: not lab.engine.log(ended).exists, "the old log is removed")
    assert lab.output(left) == "just ended\n"
    assert lab.output(running) == "ready\n"
    await lab.clean()
