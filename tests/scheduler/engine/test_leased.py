from __future__ import annotations

import asyncio
from pathlib import Path

from pai_scheduler.engine.fencing import LeasedEngine
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.testing.lab import Lab, make_gang


async def test_nothing_is_changed_before_it_is_certain_that_we_lead(tmp_path: Path) -> None:
    assured = True
    engine = ProcessEngine(tmp_path)
    leased: Engine = LeasedEngine(engine, lambda: assured)
    await leased.start()
    lab = await Lab.over(leased, "any")
    (launch,) = await lab.prepare(lab.make("echo ran; exit 4"))
    gang = make_gang(launch)
    assured = False
    steps = [
        asyncio.create_task(step)
        for step in (
            leased.adopt({}),
            leased.prepare(gang),
            leased.kill(launch.task, 0),
            leased.release(gang),
            leased.forget(launch.task),
        )
    ]
    launching = asyncio.create_task(leased.launch(launch))
    await asyncio.sleep(0.5)
    assert not any(step.done() for step in [*steps, launching])
    assert not (tmp_path / "tasks" / launch.task.name).exists()
    # what only looks goes on
    assert await leased.usage(launch.task) is None
    assert (leased.name, leased.shares_host_ports, leased.own_ssh_server) == ("process", True, True)
    for step in steps:
        step.cancel()
    assured = True
    await launching
    assert (await lab.ended(launch.task)).exit_code == 4
    await lab.clean()
    await leased.close()


async def test_every_call_either_only_looks_or_waits_until_it_is_certain() -> None:
    looks = {
        "front_door_url", "storage_host", "bridge_address", "start", "close", "nodes", "events",
        "refuses_image", "work_dir", "log", "usage", "disk_use", "private_dir", "code_dir",
        "ssh_endpoint", "taken_ports", "reach", "disk",
    }  # fmt: skip
    calls = {name for name in vars(Engine) if not name.startswith("_")} - looks
    assert calls == {"adopt", "prepare", "launch", "kill", "end_for_room", "release", "forget"}
    for name in calls:
        assert "_certainty" in getattr(LeasedEngine, name).__code__.co_names, name
    assert {name for name in vars(LeasedEngine) if not name.startswith("_")} == calls | looks
