"""Containers that are logged into: the way in is found, and a task is what it was without one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiodocker
import asyncssh
import pytest

from pai_scheduler.engine.docker import ssh as docker_way_in
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.protocol import EndCause, Ended, Launch, NoSshEndpointError
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.keys import KeyPair
from pai_scheduler.testing.engine import FOREVER
from pai_scheduler.testing.lab import Lab, eventually, make_task, new_job_id
from pai_scheduler.testing.ssh_tasks import KEYS, log_in, run_in, with_ssh
from tests.testbed.homes import remove_homes

#: (the image has no `pkill`)
KILL_SERVER = (
    r"for p in /proc/[0-9]*; do ! grep -q '\[listener\]' $p/cmdline 2>/dev/null || kill ${p#/proc/}; done"
)

UNTIL_ENDED = f"until [ -e /run/pai/ssh/off ]; do {KILL_SERVER}; sleep 0.01; done"
BOOT = "( /opt/pai/boot </dev/null >/dev/null 2>&1 & )"

OpenDocker = Callable[..., Awaitable[DockerEngine]]


@pytest.fixture
async def lab(open_docker: OpenDocker, debian_image: str, runtime_image: str) -> AsyncIterator[Lab]:
    lab = await Lab.over(await open_docker(runtime_image=runtime_image), debian_image)
    yield lab
    await lab.clean()


async def launch(lab: Lab, command: str = FOREVER, **fields: Any) -> Launch:
    """Launch a task with an SSH server, and wait until it runs."""
    (task,) = with_ssh(*await lab.prepare(lab.make(command, **fields)))
    await lab.engine.launch(task)
    await lab.started(task.task)
    return task


async def run(lab: Lab, command: str) -> tuple[TaskRef, Ended]:
    """Run a task with an SSH server to its end."""
    (task,) = with_ssh(*await lab.prepare(lab.make(command)))
    await lab.engine.launch(task)
    return task.task, await lab.ended(task.task)


async def why_not(lab: Lab, task: TaskRef) -> str:
    with pytest.raises(NoSshEndpointError) as refusal:
        await lab.engine.ssh_endpoint(task)
    return str(refusal.value)


async def test_a_task_is_logged_into_from_its_first_moment_and_no_port_of_this_host_is_opened(
    lab: Lab, docker: aiodocker.Docker
) -> None:
    task = await launch(lab)
    done = await run_in(lab.engine, task, "echo in $(hostname); id -u; exit 5")
    assert (done.stdout, done.stderr, done.exit_status) == (f"in {task.task.hostname}\n0\n", "", 5)
    # what the server keeps is in memory alone
    done = await run_in(lab.engine, task, "stat -f -c %T /run/pai /run/sshd; stat -c %a /run/pai /run/sshd")
    assert str(done.stdout).split() == ["tmpfs", "tmpfs", "1777", "755"]
    assert (await lab.engine.ssh_endpoint(task.task)).published is None
    found = await docker.containers.container(task.task.name).show()
    assert not any(found["NetworkSettings"]["Ports"].values())


async def test_a_server_that_is_slow_to_begin_is_waited_for(lab: Lab) -> None:
    task = await launch(lab, f"{UNTIL_ENDED}; rm /run/pai/ssh/off; echo ready; sleep 1.5; {BOOT}; {FOREVER}")
    await lab.printed(task.task, "ready")
    assert (await run_in(lab.engine, task, "echo late")).stdout == "late\n"


async def test_a_session_has_the_environment_of_the_command(lab: Lab) -> None:
    env = {
        "LINES_OF": "one\ntwo '\"$HOME`id`",
        "LARGE": "0123456789abcdef" * 3750,
        "EMPTY": "",
        "CHINESE": "你好",
    }
    task = await launch(lab, f"env -0 | sort -z | md5sum; env -0 | sort -z; {FOREVER}", env=env)
    await lab.printed(task.task, "ready")
    inside = lab.output(task.task, "stdout").partition("\n")[2].removesuffix("ready\n").split("\0")
    done = await run_in(lab.engine, task, "env -0")
    session = dict(line.partition("=")[::2] for line in str(done.stdout).split("\0") if line)
    command = dict(line.partition("=")[::2] for line in inside if line)
    assert {name: session.get(name) for name in env} == env
    # what a shell and a session have of their own
    own = {"_", "SHLVL", "PWD", "OLDPWD", "SHELL", "USER", "LOGNAME", "PATH"}
    assert {name: session.get(name) for name in command.keys() - own} == {
        name: value for name, value in command.items() if name not in own
    }
    assert session["PATH"].startswith(command["PATH"])
    assert session["PWD"] == "/pai"


async def test_a_session_in_a_notebook_server_is_its_users_in_their_home(
    lab: Lab, notebook_image: str, docker_host: str, tmp_path: Path
) -> None:
    home = "/home/jovyan"
    task = await launch(lab, image=notebook_image, home=home, env={"HOME": home})
    done = await run_in(lab.engine, task, "id -u; cd && pwd && touch here && command -v jupyter-lab")
    assert (done.stdout, done.exit_status) == (f"1000\n{home}\n/opt/jupyter/bin/jupyter-lab\n", 0)
    await lab.clean()
    lab.gangs.clear()
    await asyncio.to_thread(remove_homes, docker_host, tmp_path / "data")


async def test_our_clients_come_first_on_the_path_and_nothing_else_of_ours_and_nobody_changes_them(
    lab: Lab,
) -> None:
    without, _ = await lab.run("echo $PATH; type python3 sh")
    task, _ = await run(
        lab,
        "echo $PATH; type python3 sh; ls /opt/pai/bin; "
        "echo changed > /opt/pai/boot; rm -rf /opt/pai/bin; ls /opt/pai/bin",
    )
    ours = "scp\nsftp\nssh\n"
    assert lab.output(task, "stdout") == f"/opt/pai/bin:{lab.output(without)}{ours}{ours}"
    assert "Read-only file system" in lab.output(task, "stderr")


async def test_the_commands_exit_code_and_output_are_its_own(lab: Lab) -> None:
    command = "echo out; echo err >&2; cat; wait; jobs; ls /proc/self/fd | wc -l; sh -c 'kill -SEGV $$'"
    job = new_job_id()
    plain, plain_held, entered, entered_held = await lab.prepare(
        *(
            lab.make(command, task=make_task(index=index, job_id=job), hold_on_failure=bool(index % 2))
            for index in range(4)
        )
    )
    all_four = (plain, plain_held, *with_ssh(entered, entered_held))
    await asyncio.gather(*(lab.engine.launch(each) for each in all_four))
    ends = [
        await (lab.held(each.task) if each.hold_on_failure else lab.ended(each.task)) for each in all_four
    ]
    assert [end.exit_code for end in ends] == [139] * 4

    def written() -> list[tuple[bool, str]]:
        outputs = [(lab.output(each.task, "stderr"), lab.output(each.task, "stdout")) for each in all_four]
        return [("err\n" in errors, output) for errors, output in outputs]

    # (a held task's log is still being read)
    await eventually(lambda: written() == [(True, "out\n4\n")] * 4, "errors and output are there")


async def test_a_task_that_is_told_to_end_ends_by_its_own_code_with_ssh_and_sessions(lab: Lab) -> None:
    task = await launch(lab, "trap 'echo told; exit 9' TERM; echo ready; while :; do sleep 0.1; done")
    await lab.printed(task.task, "ready")
    way = await lab.engine.ssh_endpoint(task.task)
    async with await log_in(way, task.task.job_id) as connection:
        session = await connection.create_process("sleep 100000", encoding=None)
        await lab.engine.kill(task.task, 20)
        ended = await lab.ended(task.task)
        async with asyncio.timeout(20):
            await session.wait()
    assert (ended.cause, ended.exit_code) == (EndCause.KILLED, 9)
    assert lab.output(task.task, "stdout") == "ready\ntold\n"


async def test_a_held_task_is_still_logged_into(lab: Lab) -> None:
    task = await launch(lab, "exit 3", hold_on_failure=True)
    assert (await lab.held(task.task)).exit_code == 3
    done = await run_in(lab.engine, task, "echo to see why")
    assert done.stdout == "to see why\n"


async def test_the_way_in_outlives_the_service(
    lab: Lab, open_docker: OpenDocker, debian_image: str, runtime_image: str
) -> None:
    task = await launch(lab)
    before = await lab.engine.ssh_endpoint(task.task)
    async with await log_in(before, task.task.job_id) as connection:
        await lab.stop_listening()
        again = await Lab.over(await open_docker(runtime_image=runtime_image), debian_image)
        again.gangs, lab.gangs = lab.gangs, []
        await again.adopt([task.task])
        await again.started(task.task)
        assert await again.engine.ssh_endpoint(task.task) == before
        assert (await connection.run("echo still here")).stdout == "still here\n"
    assert (await run_in(again.engine, task, "echo and again")).stdout == "and again\n"
    await again.clean()


async def test_tasks_of_a_job_log_into_each_other_by_name_and_nobody_else_does(lab: Lab) -> None:
    job_id = new_job_id()
    pair = with_ssh(
        *await lab.prepare(
            *(
                lab.make(
                    # (the other one may be started a moment later)
                    f"until ssh worker-{1 - index} true 2>errors; do sleep 0.1; done; "
                    f"ssh worker-{1 - index} 'echo $WHO; exit 4'; echo $?; {FOREVER}",
                    task=make_task("worker", index, job_id=job_id),
                    env={"WHO": f"I am {index}"},
                )
                for index in range(2)
            )
        )
    )
    await asyncio.gather(*(lab.engine.launch(each) for each in pair))
    for index, each in enumerate(pair):
        await lab.printed(each.task, "ready")
        assert lab.output(each.task) == f"I am {1 - index}\n4\nready\n"
    way = await lab.engine.ssh_endpoint(pair[0].task)
    other = KEYS.identity("another job")
    for user, identity in (("root", other), ("nobody", None), ("sshd", None)):
        with pytest.raises(asyncssh.PermissionDenied):
            await log_in(way, job_id, user=user, identity=identity)
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        await log_in(way, job_id, host=KeyPair.from_seed(b"x" * 32))


async def test_a_published_port_is_reached_at_this_hosts_address(
    open_docker: OpenDocker, debian_image: str, runtime_image: str
) -> None:
    lab = await Lab.over(
        await open_docker(runtime_image=runtime_image, publish_ssh="127.0.0.1"), debian_image
    )
    task = await launch(lab)
    way = await lab.engine.ssh_endpoint(task.task)
    assert way.published is not None
    assert way.published[0] == "127.0.0.1"
    outside = replace(way, host=way.published[0], port=way.published[1])
    async with await log_in(outside, task.task.job_id) as connection:
        assert (await connection.run("hostname")).stdout == f"{task.task.hostname}\n"
    await lab.clean()


# where there is no way in


async def test_without_the_runtimes_image_tasks_run_as_ever_and_it_is_said_what_to_do(
    open_docker: OpenDocker, debian_image: str, caplog: pytest.LogCaptureFixture, runtime_image: str
) -> None:
    lab = await Lab.over(await open_docker(runtime_image="pai/runtime:none"), debian_image)
    task = await launch(lab, f"echo $PATH; ls /opt; {FOREVER}")
    await lab.printed(task.task, "ready")
    assert "pai" not in lab.output(task.task)
    assert "`make runtime` builds it" in await why_not(lab, task.task)
    assert len([each for each in caplog.records if "make runtime" in each.message]) == 1
    await lab.stop_listening()
    again = await Lab.over(await open_docker(runtime_image=runtime_image), debian_image)
    again.gangs, lab.gangs = lab.gangs, []
    await again.adopt([task.task])
    await again.started(task.task)
    assert "Start the job again" in await why_not(again, task.task)
    await again.clean()


async def test_a_task_that_does_not_run_has_no_way_in(lab: Lab) -> None:
    assert await why_not(lab, make_task()) == "The task does not run."
    task, _ = await run(lab, "true")
    assert await why_not(lab, task) == "The task does not run."


async def test_a_port_that_another_program_took_is_said(lab: Lab) -> None:
    (task,) = with_ssh(*await lab.prepare(lab.make("")))
    # begun anew with another program in its place, as the command alone is never so fast
    command = f"""
        {UNTIL_ENDED}
        python3 -c "import socket, time; s = socket.create_server(('', {task.ssh_port})); time.sleep(9999)" &
        until (: </dev/tcp/127.0.0.1/{task.ssh_port}) 2>/dev/null; do sleep 0.01; done
        {BOOT}
        until grep port-taken /run/pai/ssh/off; do sleep 0.01; done
        {FOREVER}
    """
    await lab.engine.launch(replace(task, command=command))
    await lab.printed(task.task, "ready")
    assert await why_not(lab, task.task) == (
        f"Another program of the task listens on port {task.ssh_port}, which is meant for its SSH server."
    )


async def test_a_server_that_was_ended_is_missed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_way_in, "_KNOWN_SECONDS", 0)
    task = await launch(lab)
    way = await lab.engine.ssh_endpoint(task.task)
    async with await log_in(way, task.task.job_id) as connection:
        await connection.run(KILL_SERVER)
    assert "The task's SSH server does not run" in await why_not(lab, task.task)


async def test_without_its_keys_a_task_runs_and_it_is_said(lab: Lab) -> None:
    (task,) = with_ssh(*await lab.prepare(lab.make(FOREVER)))
    files = {name: content for name, content in task.files.items() if name != "ssh_host_key"}
    await lab.engine.launch(replace(task, files=files))
    await lab.printed(task.task, "ready")
    assert await why_not(lab, task.task) == "The task's SSH server did not find its keys (ssh_host_key)."


@pytest.fixture
async def image_with_its_own(docker: aiodocker.Docker, debian_image: str) -> AsyncIterator[str]:
    """Make an image with a Python of its own, for all one can tell, where the runtime would be."""
    make = "mkdir -p /opt/pai/bin && echo 'echo mine' > /opt/pai/bin/mine && chmod +x /opt/pai/bin/mine"
    container = await docker.containers.create({"Image": debian_image, "Cmd": ["sh", "-c", make]})
    try:
        await container.start()
        await container.wait()
        changes = "ENV PATH=/opt/pai/bin:/usr/bin:/bin"
        await container.commit(repository="local/own-folder", tag="1", changes=changes)
    finally:
        await container.delete(force=True)
    yield "local/own-folder:1"
    await docker.images.delete("local/own-folder:1", force=True)


async def test_an_image_with_something_of_its_own_there_keeps_it(lab: Lab, image_with_its_own: str) -> None:
    task = await launch(lab, f"mine; {FOREVER}", image=image_with_its_own)
    await lab.printed(task.task, "ready")
    assert lab.output(task.task) == "mine\nready\n"
    assert "a folder /opt/pai of its own" in await why_not(lab, task.task)


async def test_a_docker_elsewhere_is_said_to_be(
    open_docker: OpenDocker, debian_image: str, runtime_image: str, tcp_docker: str
) -> None:
    lab = await Lab.over(await open_docker(runtime_image=runtime_image, host=tcp_docker), debian_image)
    # among themselves tasks reach each other there too
    task = await launch(lab, f"until ssh main-0 true; do sleep 0.1; done; {FOREVER}")
    await lab.printed(task.task, "ready")
    assert "Docker runs on another machine" in await why_not(lab, task.task)
    await lab.clean()
