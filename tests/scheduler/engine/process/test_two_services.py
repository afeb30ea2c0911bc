"""Two services over one folder, one of them frozen for a while: what has run never runs again."""

from __future__ import annotations

from pathlib import Path

from pai_scheduler.engine.protocol import EndCause
from pai_scheduler.testing.engine import Reopen
from pai_scheduler.testing.lab import Lab


async def test_what_another_service_had_run_and_released_is_not_run_again(
    lab: Lab, reopen: Reopen, image: str, tmp_path: Path
) -> None:
    other = await Lab.over(await reopen(), image)
    launch = lab.make(f"echo ran >> {tmp_path}/ran; exit 4")
    # frozen when it knew of the task and had not launched it
    await lab.adopt([launch.task])
    (prepared,) = await other.prepare(launch)
    await other.engine.launch(prepared)
    assert (await other.ended(launch.task)).exit_code == 4
    await other.engine.release(other.gangs[0])
    await lab.engine.launch(prepared)
    ended = await lab.ended(launch.task)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 4)
    assert (tmp_path / "ran").read_text() == "ran\n"
    await other.stop_listening()
