"""Why a server has ended: read from the scheduler, kept by the spawner, told in the reader's language."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pai_scheduler.client.rest import Client
from pai_scheduler.engine.cgroups import Cgroups
from pai_spawner.startup import wait_until_ended
from pai_spawner.termination import End, ServerEnd, ServerNotStarted, read_ending
from tests.spawner.conftest import SERVER, Make, eventually
from tests.testbed.scheduler import RunningScheduler

#: Serves until a file is there, and then does what it is told.
OBEDIENT = """
import pathlib, threading, time
def serve():
    {serve}
threading.Thread(target=serve, daemon=True).start()
while not pathlib.Path({file!r}).exists():
    time.sleep(0.05)
print("the last words", flush=True)
{what}
"""


def obedient(folder: Path, what: str) -> str:
    """Write a server that does `what` when `now` is in the folder."""
    serve = SERVER.strip().replace("\n", "\n    ")
    return OBEDIENT.format(serve=serve, file=str(folder / "now"), what=what)


async def test_a_server_that_ends_by_itself_says_its_exit_code_and_its_last_lines(
    make: Make, tmp_path: Path
) -> None:
    spawner = make(program=obedient(tmp_path, "raise SystemExit(3)"))
    await spawner.start()
    (tmp_path / "now").touch()
    await eventually(spawner.poll)
    ending = spawner.ending
    assert ending is not None
    assert (ending.kind, ending.exit_code, ending.memory_mb) == (End.EXITED, 3, 2048)
    assert str(ending.title) == "It ended by itself, with exit code 3."
    assert "exit code 3" in ending.reason("en")
    assert "退出码" in ending.reason("zh_CN")
    assert ending.log.endswith("the last words")


async def test_a_server_whose_memory_is_not_enough_says_what_it_had_and_what_to_choose(
    make: Make, tmp_path: Path
) -> None:
    if problem := Cgroups.find(tmp_path).unlimited:
        if os.environ.get("CI") == "true":
            pytest.fail(str(problem))
        pytest.skip(str(problem))
    spawner = make(program=obedient(tmp_path, "hog = bytearray(1_000_000_000)"))
    spawner.user_options = {"memory_mb": 256}
    await spawner.start()
    (tmp_path / "now").touch()
    await eventually(spawner.poll)
    assert spawner.ending is not None
    assert spawner.ending.kind is End.OUT_OF_MEMORY
    assert str(spawner.ending.advice) == (
        "All its notebooks and terminals together had 256 MB. Choose more at the next start, for example "
        "512 MB, or load less at once."
    )


async def test_a_server_that_was_stopped_past_the_hub_says_by_whom(
    make: Make, scheduler: RunningScheduler
) -> None:
    spawner = make()
    await spawner.start()
    async with Client(scheduler.url, "token-of-alice") as client:
        await client.stop("alice", spawner.job_name)
    await eventually(spawner.poll)
    assert spawner.ending is not None
    assert (spawner.ending.kind, spawner.ending.reason("en")) == (End.STOPPED, "Stopped by alice.")


async def test_a_server_whose_time_was_over_says_so_and_not_that_somebody_stopped_it(
    make: Make, scheduler: RunningScheduler
) -> None:
    spawner = make()
    job = spawner.job_of("notebook_brief", spawner.read_options({}, "en"), {})
    # nobody can choose less than a minute
    job["extras"]["maxRunSeconds"] = 1
    job["taskRoles"][0]["command"] = "sleep 1000"
    async with Client(scheduler.url, "token-of-alice") as client:
        await client.submit(job, user="alice")
        await wait_until_ended(client, "alice", "notebook_brief", patience=60)
    ending = await read_ending(spawner.scheduler, "alice", "notebook_brief", 0)
    assert (ending.kind, ending.expected, ending.log) == (End.TIME_LIMIT, False, "")
    assert "time limit of 1 s" in ending.reason("en")


async def test_a_server_that_the_hub_stops_was_stopped_and_a_start_that_it_stops_was_cancelled(
    make: Make,
) -> None:
    ends = []
    for over in (False, True):
        spawner = make()
        await spawner.start()
        if over:
            # the last thing that the Hub does at a start
            spawner.add_poll_callback(lambda: None)
        await spawner.stop()
        ends.append(spawner.ending and spawner.ending.kind)
    assert ends == [End.CANCELLED, End.STOPPED]


@pytest.mark.parametrize("noticed", [True, False])
async def test_a_server_whose_session_was_ended_says_so_though_the_hub_is_told_to_stop_it_then(
    make: Make, scheduler: RunningScheduler, noticed: bool
) -> None:
    spawner = make()
    await spawner.start()
    spawner.add_poll_callback(lambda: None)
    async with Client(scheduler.url, "token-of-pai-sessions") as client:
        await client.stop("alice", spawner.job_name, reason="the session was idle")
    if noticed:
        await eventually(spawner.poll)
    else:
        await spawner.stop()
    assert spawner.ending is not None
    assert (spawner.ending.kind, spawner.ending.expected) == (End.SESSION_ENDED, False)
    assert spawner.ending.reason("en") == "Stopped by pai-sessions: the session was idle"
    assert "pai-sessions" in spawner.ending.reason("zh_CN")


async def test_a_start_that_is_refused_is_kept_with_its_reason(make: Make) -> None:
    spawner = make()
    spawner.user_options = {"gpus": 3, "gpu_type": "TITANX"}
    with pytest.raises(ServerNotStarted):
        await spawner.start()
    assert spawner.ending is not None
    assert spawner.ending.kind is End.NOT_STARTED
    assert "TITANX" in spawner.ending.reason("en")


async def test_an_ending_is_kept_over_a_restart_of_the_hub_until_the_next_start(
    make: Make, tmp_path: Path
) -> None:
    spawner = make(program=obedient(tmp_path, ""))
    await spawner.start()
    (tmp_path / "now").touch()
    await eventually(spawner.poll)
    # as the Hub does when a server has ended
    spawner.clear_state()
    spawner.orm_spawner.state = spawner.get_state()

    again = make()
    assert again.ending == spawner.ending
    assert str(again.ending and again.ending.title) == "It was shut down from inside."
    await again.start()
    assert again.ending is None
    assert "ending" not in again.get_state()


async def test_what_another_version_kept_is_no_ending() -> None:
    kept = ServerEnd(End.GONE, 5).as_json()
    assert ServerEnd.from_json(kept) == ServerEnd(End.GONE, 5)
    assert ServerEnd.from_json(None) is None
    assert ServerEnd.from_json({**kept, "kind": "melted"}) is None
    assert ServerEnd.from_json({**kept, "colour": "red"}) is None


@pytest.mark.parametrize("kind", list(End))
def test_every_kind_of_end_is_told_in_chinese(kind: End) -> None:
    ending = ServerEnd(kind, 5, exit_code=1, memory_mb=100)
    for sentence in (ending.title, ending.advice):
        if sentence is not None:
            assert sentence.in_locale("zh_CN") != str(sentence)
