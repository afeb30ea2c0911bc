"""Logs of containers: nothing lost, nothing twice, whatever happens to the service in between."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.engine.docker import DockerEngine
from pai_scheduler.engine.protocol import EndCause, Progress

from .lab import Lab, eventually, make_gang, make_task

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
        *(sys.executable, host, docker_host, tmp_path / "data", debian_image, task.job_id, command),
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


@pytest.mark.parametrize("length", [16383, 16384, 16385, 32768, 40000])
async def test_a_line_longer_than_docker_takes_at_once_is_kept_as_it_is(docker_lab: Lab, length: int) -> None:
    task, _ = await docker_lab.run(
        f"python3 -c \"print('x' * {length}); print('y'); print(end='z' * {length})\""
    )
    assert docker_lab.output(task) == "x" * length + "\ny\n" + "z" * length


async def test_an_unfinished_last_line_is_kept_as_it_is(docker_lab: Lab) -> None:
    task, _ = await docker_lab.run("printf 'a\\n\\nb'; printf c >&2")
    assert docker_lab.output(task, "stdout") == "a\n\nb"
    assert docker_lab.output(task, "stderr") == "c"


async def test_a_full_disk_ends_neither_the_task_nor_the_engine_and_is_said(
    docker_host: str, tiny_disk: Path, debian_image: str
) -> None:
    engine = DockerEngine(tiny_disk, host=docker_host)
    await engine.start()
    lab = await Lab.over(engine, debian_image)
    task, ended = await lab.run("head -c 3000000 /dev/zero | tr '\\0' x; exit 4")
    told = [event for event in lab.events if isinstance(event, Progress) and event.task == task]
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


async def test_the_age_of_a_log_counts_from_the_release(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str
) -> None:
    lab = await Lab.over(await open_docker(), debian_image)
    running = await lab.start("echo ready; sleep 100000")
    await lab.printed(running, "ready")
    ended, _ = await lab.run("echo long ago")
    await lab.engine.release(lab.gangs.pop())
    left = await lab.start("echo just ended")
    await lab.ended(left)
    for task in (running, ended, left):
        os.utime(lab.engine.log(task).folder, (1, 1))
    await lab.engine.release(lab.gangs.pop())
    await lab.engine.adopt([running])
    await eventually(lambda: not lab.engine.log(ended).exists, "the old log is removed")
    assert lab.output(left) == "just ended\n"
    assert lab.output(running) == "ready\n"
    await lab.clean()
