"""kill -9 between any two steps: nothing acknowledged is lost, nothing runs twice, nothing is left.

The points are those that one day without a kill passes; each is then the end of a scheduler's life on another
such day. `KILL_AT=all` takes every point, else a sample that is the same in every run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.testbed.fixtures import provide
from tests.testbed.images import TINY, tiny_image

from .drill import Drill, Life, Sort
from .outside import Containers, Processes

CLUSTER = """
nodes: [{name: a, cpus: 32, memoryMB: 100000, storageGB: 1000, gpus: {P100: 1, K80: 4}}]
virtualClusters:
  default: {capacity: 50}
  guaranteed: {capacity: 40}
  shut: {capacity: 0, maxCapacity: 0}
"""
#: days at once
PARALLEL = 4
#: a kill with much under way, and so many steps after the next start that take that up
IN_THE_MIDDLE, TAKEN_UP = "before handling Started gang-0-ps-1", 60


def role(command: str, name: str = "main", tasks: int = 1, gpus: int = 0) -> dict[str, object]:
    return {"name": name, "taskNumber": tasks, "gpuNumber": gpus, "memoryMB": 100, "command": command}


def job(name: str, *roles: dict[str, object], **fields: object) -> dict[str, object]:
    return {"jobName": name, "image": TINY, "taskRoles": list(roles), **fields}


def sorts(say: str) -> list[Sort]:
    """Make the jobs of a day; each task does `say` first."""
    return [
        # it has the only GPU, and `waits` waits for that
        Sort(job("deleted", role(f"{say}exec sleep 1000", gpus=1), gpuType="P100"), "", 0, last="delete"),
        Sort(job("waits", role(f"{say}exit 0", gpus=1), gpuType="P100"), "SUCCEEDED", 0),
        Sort(job("succeeds", role(f"{say}exit 0")), "SUCCEEDED", 0),
        Sort(
            job("gang", role(f"{say}sleep 0.1", "ps", 2), role(f"{say}sleep 0.1", "worker", 2)),
            "SUCCEEDED",
            0,
        ),
        # each task has what was fetched, and changes a copy of its own
        Sort(
            job(
                "coded",
                role(f"{say}echo mine >> code/data && {{ read a; read b; ! read c; }} < code/data", tasks=2),
                codeDir="$PAI_DEFAULT_FS_URI/alice/code",
            ),
            "SUCCEEDED",
            0,
        ),
        Sort(job("retried", role(f"{say}exit 7"), retryCount=2), "FAILED", 7, attempts=3),
        Sort(
            job("half", role(f"{say}[ $PAI_TASK_INDEX = 1 ] && exit 5; exec sleep 1000", tasks=2)),
            "FAILED",
            5,
        ),
        Sort(job("limited", role(f"{say}exec sleep 1000"), extras={"maxRunSeconds": 1}), "STOPPED", -7351),
        # (what a failed task of a debugged job holds stays until the user stops the job)
        Sort(
            job("held", role(f"{say}exit 4"), jobEnvs={"isDebug": True}),
            "STOPPED",
            -7351,
            last="stop",
            when="DEBUG_HELD",
        ),
        Sort(job("stopped", role(f"{say}exec sleep 1000")), "STOPPED", -7351, last="stop"),
        # it has all K80, of which another virtual cluster has one guaranteed; it comes back when that is over
        Sort(
            job("borrows", role(f"{say}exec sleep 1000", tasks=2, gpus=2), gpuType="K80"),
            "STOPPED",
            -7351,
            attempts=2,
            last="stop",
            after="preempts",
            before=(-7120,),
        ),
        Sort(
            job("preempts", role(f"{say}exit 0", gpus=1), gpuType="K80", virtualCluster="guaranteed"),
            "SUCCEEDED",
            0,
            begins="borrows",
        ),
        # its virtual cluster has nothing until an administrator gives it a share
        Sort(
            job("starved", role(f"{say}exit 0"), virtualCluster="shut"), "SUCCEEDED", 0, needs=("shut", 10.0)
        ),
    ]


def sampled(points: Sequence[str], count: int) -> list[str]:
    """Take so many points, evenly over their kinds."""
    if os.environ.get("KILL_AT") == "all" or len(points) <= count:
        return list(points)
    ordered = sorted(points)
    return [ordered[number * len(ordered) // count] for number in range(count)]


async def every_day(days: Sequence[Sequence[str]], live: Callable[[int, Sequence[str]], Drill]) -> list[Life]:
    """Live each day, with its kills; return their first lives. All that went wrong is told together."""
    slots = asyncio.Semaphore(PARALLEL)
    wrong: list[str] = []

    async def one(number: int, kill_at: Sequence[str]) -> Life | None:
        async with slots:
            drill = live(number, kill_at)
            try:
                return (await drill.run())[len(kill_at) - 1]
            except Exception as error:
                wrong.append(f"killed {' and '.join(kill_at)}, in {drill.folder}: {error!r}")
                return None

    lives = await asyncio.gather(*(one(number, kill_at) for number, kill_at in enumerate(days)))
    assert not wrong, "\n\n".join([f"{len(wrong)} of {len(days)} days went wrong:", *wrong])
    return [life for life in lives if life is not None]


def on_docker(folder: Path, host: str) -> Callable[[int, Sequence[str]], Drill]:
    def live(number: int, kill_at: Sequence[str]) -> Drill:
        place = folder / f"day-{number}"
        outside = Containers(place / "data", host)
        return Drill(place, kill_at, sorts("echo ran; "), outside, CLUSTER, ("--engine", "docker"))

    return live


def on_processes(folder: Path) -> Callable[[int, Sequence[str]], Drill]:
    def live(number: int, kill_at: Sequence[str]) -> Drill:
        place = folder / f"day-{number}"
        outside = Processes(place / "data", folder / f"ran-{number}")
        outside.ran_file.touch()
        say = f"echo ran; echo $PAI_JOB_NAME $PAI_CONTAINER_ID >> {outside.ran_file}; "
        return Drill(place, kill_at, sorts(say), outside, CLUSTER)

    return live


async def kill_everywhere(live: Callable[[int, Sequence[str]], Drill], once: int, twice: int) -> None:
    """Kill at so many points, and at so many more while the next life takes up what a kill has left."""
    (calm,) = await live(-1, []).run()
    points = sorted(set(calm.passed))
    days = [[point] for point in sampled(points, once)]
    taking_up = (await live(-2, [IN_THE_MIDDLE]).run())[1].passed
    taking_up = taking_up[: taking_up.index("after Service.start") + TAKEN_UP]
    days += [[IN_THE_MIDDLE, point] for point in sampled(sorted(set(taking_up)), twice)]
    killed = sum(life.killed for life in await every_day(days, live))
    # not every day passes at every point (two events may be written together or not): others instead
    others = [point for point in points if [point] not in days]
    if killed < len(days):
        more = [[point] for point in sampled(others, len(days) - killed)]
        killed += sum(
            life.killed for life in await every_day(more, lambda number, at: live(1000 + number, at))
        )
    print(f"{killed} of {len(days)} days with their last kill, at {len(points)} points")
    assert killed > len(days) * 0.7


@pytest.mark.daemon
@pytest.mark.timeout(3600)
async def test_kills_at_any_moment_are_survived_on_processes(tmp_path: Path, thorough: bool) -> None:
    await kill_everywhere(on_processes(tmp_path), *((60, 20) if thorough else (6, 2)))


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_kills_at_any_moment_are_survived_on_docker(
    docker_host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thorough: bool
) -> None:
    provide(tiny_image, docker_host)
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    await kill_everywhere(on_docker(tmp_path, docker_host), *((10, 4) if thorough else (4, 2)))
