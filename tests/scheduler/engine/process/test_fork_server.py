"""The process that forks supervisors, and the one that waits in it for the next task."""

from __future__ import annotations

from pathlib import Path

import psutil

from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.testing.lab import Lab, eventually


def waiting(engine: ProcessEngine) -> list[psutil.Process]:
    """List what the fork server has forked and not yet given to a task."""
    assert engine._spawner._process is not None
    found = psutil.Process(engine._spawner._process.pid).children()
    return [process for process in found if process.name() != "pai-task"]


async def test_a_supervisor_waits_for_the_next_task_and_another_one_for_the_one_after_it(
    tmp_path: Path,
) -> None:
    engine = ProcessEngine(tmp_path)
    await engine.start()
    lab = await Lab.over(engine, "local/any")
    await eventually(lambda: len(waiting(engine)) == 1, "a supervisor waits")
    (first,) = waiting(engine)
    task = await lab.start("sleep 1000")
    started = await lab.started(task)
    assert psutil.Process(int(started.container_id)).ppid() == first.pid
    await eventually(lambda: len(waiting(engine)) == 1, "another one waits")
    assert waiting(engine) != [first]
    await lab.clean()
    await engine.close()


async def test_one_that_is_killed_while_it_waits_costs_no_task_its_start(tmp_path: Path) -> None:
    engine = ProcessEngine(tmp_path)
    await engine.start()
    lab = await Lab.over(engine, "local/any")
    await eventually(lambda: len(waiting(engine)) == 1, "a supervisor waits")
    (spare,) = waiting(engine)
    spare.kill()
    await eventually(lambda: not spare.is_running(), "it is gone")
    _, ended = await lab.run("exit 3")
    assert ended.exit_code == 3
    await lab.clean()
    await engine.close()


async def test_the_one_that_waits_goes_with_the_service(tmp_path: Path) -> None:
    engine = ProcessEngine(tmp_path)
    await engine.start()
    await eventually(lambda: len(waiting(engine)) == 1, "a supervisor waits")
    (spare,) = waiting(engine)
    await engine.close()
    await eventually(lambda: not spare.is_running(), "it is gone too")
