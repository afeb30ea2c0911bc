"""The spawner against a real scheduler, with faults that a whole Hub does not show so closely."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from jupyterhub import orm

from pai_scheduler.client.rest import Client
from pai_spawner import startup
from pai_spawner.termination import ServerNotStarted
from tests.spawner.conftest import SERVER, Make, eventually
from tests.testbed.scheduler import RunningScheduler

FAILING = "import sys; print('<b>no</b> module named jupyterhub', file=sys.stderr); sys.exit(3)"


async def state_of(scheduler: RunningScheduler, user: str, job: str) -> str:
    async with Client(scheduler.url, "token-of-root") as client:
        return str((await client.job(user, job))["jobStatus"]["state"])


async def test_a_started_server_answers_at_the_address_that_is_given(
    make: Make, scheduler: RunningScheduler
) -> None:
    spawner = make()
    ip, port = await spawner.start()
    _, writer = await asyncio.open_connection(ip, port)
    writer.close()
    assert await spawner.poll() is None
    job = spawner.job_name
    await spawner.stop()
    assert await spawner.poll() == -7351
    assert await state_of(scheduler, "alice", job) == "STOPPED"


async def test_a_virtual_cluster_of_others_is_refused_though_the_hub_may_use_it(make: Make) -> None:
    spawner = make("bob")
    spawner.user_options = {"virtual_cluster": "vision"}
    with pytest.raises(ServerNotStarted) as caught:
        await spawner.start()
    assert caught.value.reason == "options"
    assert "Virtual cluster vision is not open to you." in caught.value.jupyterhub_message


async def test_a_limit_on_sessions_is_said_before_start_in_the_words_of_start(
    make: Make, tmp_path: Path
) -> None:
    rules = tmp_path / "sessions.yaml"
    rules.write_text("rules:\n  - when: {profiles: [gpu]}\n    gpus: 1\n")
    gpu = {"display_name": "GPU", "choices": {"gpus": [1, 2]}}
    spawner = make(sessions_file=str(rules), profiles=[{"display_name": "Small"}, gpu])
    assert (await spawner.answer({"profile": "gpu"}, "en")).fits == "now"
    spawner.user_options = {"profile": "gpu", "gpus": 2}
    (problem,) = (answer := await spawner.answer(spawner.user_options, "en")).problems
    assert (answer.fits, str(answer.sentence)) == ("wrong", "This cannot be started now.")
    assert str(problem).startswith("Your sessions may have 1 GPU together.")
    with pytest.raises(ServerNotStarted) as caught:
        await spawner.start()
    assert caught.value.jupyterhub_message == str(problem)


async def test_a_profile_is_open_to_the_groups_that_it_names(make: Make) -> None:
    spawner = make(profiles=[{"display_name": "Small"}, {"display_name": "Large", "groups": ["vision"]}])
    assert [one.slug for one in spawner.offer.profiles] == ["small"]
    (problem,) = (await spawner.answer({"profile": "large"}, "en")).problems
    assert "not one of those open to you: small." in str(problem)
    spawner.user.orm_user.groups.append(orm.Group(name="vision"))
    assert [one.slug for one in spawner.offer.profiles] == ["small", "large"]
    assert (await spawner.answer({"profile": "large"}, "en")).fits == "now"


async def test_while_the_scheduler_is_away_the_answer_is_that_nobody_knows(make: Make) -> None:
    spawner = make(scheduler_url="http://127.0.0.1:9")
    assert (await spawner.answer({}, "en")).fits == "unknown"
    assert "The scheduler does not answer" in await spawner.form_in("en")


async def test_a_server_that_is_being_ended_does_not_run_any_more(make: Make) -> None:
    takes_a_while = "import os, signal, time; end = lambda *_: (time.sleep(1), os._exit(0))\n"
    spawner = make(program=f"{takes_a_while}signal.signal(signal.SIGTERM, end)\n{SERVER}")
    await spawner.start()
    await spawner.stop(now=True)
    assert await spawner.poll() == -7351


async def test_a_server_that_fails_says_how_with_its_last_lines(make: Make) -> None:
    spawner = make(program=FAILING)
    with pytest.raises(ServerNotStarted) as caught:
        await spawner.start()
    assert caught.value.reason == "exited"
    assert "ended with exit code 3" in caught.value.jupyterhub_message
    assert "<b>no</b> module named jupyterhub" in caught.value.jupyterhub_message
    assert "&lt;b&gt;no&lt;/b&gt; module" in caught.value.jupyterhub_html_message
    assert await spawner.poll() == 3


async def test_another_hub_finds_the_server_by_what_was_stored(make: Make) -> None:
    first = make()
    ip, port = await first.start()
    first.orm_spawner.state = first.get_state()

    second = make()
    second._check_pending = True
    assert await second.poll() is None
    assert await second.get_url() == f"http://{ip}:{port}/user/alice/"


async def test_the_jobs_name_is_stored_before_the_scheduler_hears_of_it(make: Make) -> None:
    spawner = make(scheduler_url="http://127.0.0.1:9", stop_patience=1.0)
    with pytest.raises(ServerNotStarted) as caught:
        await spawner.start()
    assert (caught.value.reason, caught.value.status_code) == ("unreachable", 503)
    assert spawner.orm_spawner.state["job_name"] == spawner.job_name != ""


async def test_a_server_whose_job_never_arrived_counts_as_stopped(make: Make) -> None:
    spawner = make()
    spawner.load_state({"job_name": "notebook_00000000", "answered": True})
    assert await spawner.poll() == 0


async def test_a_server_that_was_never_started_counts_as_stopped(make: Make) -> None:
    assert await make().poll() == 0


async def test_while_the_scheduler_is_away_a_server_counts_as_running(
    make: Make, scheduler: RunningScheduler
) -> None:
    spawner = make()
    await spawner.start()
    scheduler.kill()
    assert await spawner.poll() is None
    scheduler.start()
    assert await spawner.poll() is None


async def test_a_server_that_could_not_be_stopped_is_stopped_when_the_scheduler_is_back(
    make: Make, scheduler: RunningScheduler
) -> None:
    spawner = make(stop_patience=1.0)
    await spawner.start()
    job = spawner.job_name
    scheduler.kill()
    await spawner.stop()
    # as the Hub does after every stop
    spawner.clear_state()
    spawner.orm_spawner.state = spawner.get_state()

    # the Hub is started anew, too
    assert spawner._stops.task is not None
    spawner._stops.task.cancel()
    make()
    scheduler.start()
    async with Client(scheduler.url, "token-of-root") as client:
        await startup.wait_until_ended(client, "alice", job, patience=60)
    await eventually(lambda: "to_stop" not in spawner.orm_spawner.state)


async def test_a_job_that_is_forgotten_while_it_runs_is_stopped(
    make: Make, scheduler: RunningScheduler
) -> None:
    spawner = make()
    await spawner.start()
    job = spawner.job_name
    # as when another start begins while the Hub has not stopped the cancelled one
    spawner.clear_state()
    assert spawner.get_state()["to_stop"] == [job]
    async with Client(scheduler.url, "token-of-root") as client:
        await startup.wait_until_ended(client, "alice", job, patience=60)


async def test_a_hub_that_was_killed_while_it_stopped_a_server_does_not_take_it_up_again(make: Make) -> None:
    spawner = make()
    await spawner.start()
    spawner.load_state({**spawner.get_state(), "to_stop": [spawner.job_name]})
    spawner._check_pending = True
    assert await spawner.poll() == -7351


async def test_only_a_server_that_the_hub_watches_is_ready(make: Make) -> None:
    spawner = make()
    assert not spawner.ready
    spawner.add_poll_callback(lambda: None)
    assert spawner.ready
    spawner.clear_state()
    assert not spawner.ready


async def test_a_start_goes_on_when_the_scheduler_was_away_meanwhile(
    make: Make, scheduler: RunningScheduler
) -> None:
    holder = make("bob")
    holder.user_options = {"gpus": 2, "gpu_type": "P100"}
    await holder.start()
    waiting = make()
    waiting.user_options = {"gpus": 2, "gpu_type": "P100"}
    start = asyncio.ensure_future(waiting.start())
    await eventually(lambda: any("P100" in event["message"] for event in waiting._progress[1:]))
    scheduler.kill()
    await eventually(lambda: any("does not answer" in event["message"] for event in waiting._progress))
    scheduler.start()
    await holder.stop()
    ip, port = await start
    assert (ip, port) != ("", 0)


async def test_time_in_the_queue_is_free(make: Make) -> None:
    holder = make("bob")
    holder.user_options = {"gpus": 2, "gpu_type": "TITANX"}
    await holder.start()
    waiting = make(launch_patience=1.0)
    waiting.user_options = {"gpus": 1, "gpu_type": "TITANX"}
    start = asyncio.ensure_future(waiting.start())
    done, _ = await asyncio.wait([start], timeout=3)
    assert not done
    await holder.stop()
    await start
    told = [event["message"] for event in waiting._progress]
    assert any("TITANX" in message for message in told[1:])
    # it would stand in the place of the reason, as the latest news
    assert "Submitted by alice." not in told


async def test_progress_is_told_from_its_beginning_in_the_users_language(make: Make) -> None:
    spawner = make()
    spawner._locale = "zh_CN"
    await spawner.start()
    told = []
    async for event in spawner.progress():
        told.append(event)
        if event.get("progress") == startup.LISTENING:
            break
    assert told[0]["message"] == "正在向调度器申请 1 个 CPU 和 2048 MB 内存。"
    assert told[-1]["message"] == "服务器已响应。"
    bars = [event["progress"] for event in told if "progress" in event]
    assert bars == sorted(bars)


async def test_the_server_gets_the_hubs_environment_and_a_folder_that_stays(
    make: Make, tmp_path: Path
) -> None:
    spawner = make(homes=str(tmp_path), api_url="http://hub.example/services/pai")
    spawner.api_token = "the token"
    await spawner.start()
    async with Client(spawner.scheduler_url, "token-of-root") as client:
        env = (await client.config("alice", spawner.job_name))["jobEnvs"]
    assert env["JUPYTERHUB_API_TOKEN"] == "the token"
    assert env["JUPYTERHUB_SERVICE_PREFIX"] == "/user/alice/"
    assert env["PAI_API_URL"] == "http://hub.example/services/pai"
    assert env["HOME"] == env["JUPYTERHUB_ROOT_DIR"] == str(tmp_path / "alice")
    # where terminals in the server begin
    assert env["PAI_WORK_DIR"] == env["HOME"]
    assert (tmp_path / "alice").is_dir()


async def test_terminals_begin_in_the_home_that_a_container_has(make: Make) -> None:
    spawner = make(home_in_container="/home/jovyan")
    env = await spawner._task_env(None)
    assert env["PAI_WORK_DIR"] == env["HOME"] == "/home/jovyan"
    assert "PAI_WORK_DIR" not in await make()._task_env(None)
