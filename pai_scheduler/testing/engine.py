"""The conformance suite of engines: subclass `EngineConformance` in an engine's test file.

What is alike is asked of the tasks of one gang, which run at once: a gang costs as much as a task. An engine
whose tasks another engine runs may take the two halves of the suite apart.

That file provides these fixtures (all functions of one test share one state: data folder, Docker daemon …):

- `engine`: a started engine, closed after the test;
- `reopen`: a coroutine function that makes one more started engine over the same state, as a new service
  process would after the kill -9 of the old one (which is left alone, not closed, until the test is over);
- `image`: the image to run; it has `sh`, `sleep`, `head`, `tr`, `cat` and `setsid`.

The tests are coroutines: pytest-asyncio runs them with `asyncio_mode = "auto"`.
"""

from __future__ import annotations

import asyncio
import shlex
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from pai_scheduler.engine.protocol import (
    EndCause,
    Ended,
    Engine,
    HeldAfterFailure,
    Mount,
    NoSshEndpointError,
    Started,
)
from pai_scheduler.testing.lab import (
    Lab,
    eventually,
    make_code,
    make_gang,
    make_task,
    new_job_id,
    processes_running,
    processes_with,
)
from pai_scheduler.testing.ssh_tasks import KEYS, log_in, with_ssh

Reopen = Callable[[], Awaitable[Engine]]

#: A command that lives until it is ended, and says when it is ready for that.
FOREVER = "echo ready; exec sleep 100000"


#: What may stand in an environment: what shells take for something else, and what no shell could name.
ENV = {
    "QUOTES": 'it\'s "quoted" $HOME `id` \\n %s',
    "LINES": "one\ntwo\n\nfour\t",
    "CHINESE": "你好，世界",
    "EMPTY": "",
    "SPACES": "  a  ",
    "PAI_TASK_ROLE_main_HOST_LIST": "127.0.0.1:1,127.0.0.1:2",
    "LARGE": "0123456789abcdef" * 4096,
    "PAI_HOST_IP_a.b_0": "10.0.0.1",
    "PAI_HOST_IP_c~d_0": 'it\'s "quoted" $HOME',
    "with-dash": "two\nlines",
    "-u": "",
    "0": "=",
}


class Conformance:
    """The fixtures of both halves of the suite."""

    @pytest.fixture
    def code(self, tmp_path: Path) -> Path:
        return make_code(tmp_path)

    @pytest.fixture
    async def lab(self, engine: Engine, image: str) -> AsyncIterator[Lab]:
        lab = await Lab.over(engine, image)
        yield lab
        await lab.clean()

    @pytest.fixture
    async def restarted(self, reopen: Reopen, image: str) -> AsyncIterator[Callable[[Lab], Awaitable[Lab]]]:
        """Leave a lab's engine as a killed service does, and go on with a new one over the same state."""
        labs: list[Lab] = []

        async def restart(lab: Lab) -> Lab:
            await lab.stop_listening()
            labs.append(await Lab.over(await reopen(), image))
            labs[-1].gangs, lab.gangs = lab.gangs, []
            return labs[-1]

        yield restart
        for lab in labs:
            await lab.clean()


class TaskConformance(Conformance):
    """Promises about tasks where they run: how their commands end, and what is left of them."""

    async def test_the_end_of_a_command_is_known_by_its_exit_code(self, lab: Lab) -> None:
        # (128 and more where a signal of its own ended it)
        codes = {
            "true": 0,
            "exit 7": 7,
            "sh -c 'kill -SEGV $$'": 139,
            "sh -c 'kill -ABRT $$'": 134,
            "sh -c 'kill -TERM $$'": 143,
            "sh -c 'kill -KILL $$'": 137,
            "no-such-command-here --help": 127,
        }
        tasks = await lab.start_gang(*codes)
        for task, code in zip(tasks, codes.values(), strict=True):
            ended = await lab.ended(task)
            assert (ended.cause, ended.exit_code) == (EndCause.EXITED, code)
            if code == 0:
                assert ended.reason is None
        assert "no-such-command-here" in lab.output(tasks[-1], "stderr")

    async def test_a_command_that_fails_is_held_with_its_exit_code_until_it_is_killed(self, lab: Lab) -> None:
        codes = {"exit 7": 7, "kill -SEGV $$": 139, "kill -KILL $$": 137, "kill 0; sleep 100000": 143}
        commands = (f"echo out; echo err >&2; {command}" for command in codes)
        tasks = await lab.start_gang(*commands, hold_on_failure=True)
        for task, code in zip(tasks, codes.values(), strict=True):
            held = await lab.held(task)
            assert (held.cause, held.exit_code) == (EndCause.EXITED, code)
            await lab.engine.kill(task, 60)
        for task, code in zip(tasks, codes.values(), strict=True):
            ended = await lab.ended(task)
            assert (ended.cause, ended.exit_code) == (EndCause.KILLED, code)
            assert [type(event) for event in lab.told(task)] == [Started, HeldAfterFailure, Ended]
            assert lab.output(task, "stdout") == "out\n"
            assert lab.output(task, "stderr") == "err\n"

    async def test_what_a_command_left_running_ends_with_the_task(self, lab: Lab) -> None:
        left, child, held = (str(uuid.uuid4().int)[:9] for _ in range(3))
        main, parent = await lab.start_gang(
            f"sleep 1{left} & setsid sleep 2{left} >/dev/null 2>&1 & echo main ends; exit 3",
            f"trap '' TERM; setsid sh -c 'sleep 1{child}; true' & echo ready; wait; sleep 2{child}",
        )
        holds = await lab.start(f"sleep 1{held} & echo ready; exit 3", hold_on_failure=True)
        # by itself, when the command has ended
        assert (await lab.ended(main)).exit_code == 3
        assert lab.output(main) == "main ends\n"
        await eventually(lambda: not processes_with(left), "what the command left behind is gone")
        # killed
        await lab.printed(parent, "ready")
        await eventually(lambda: len(processes_running(f"sleep 1{child}")) > 0, "the child runs")
        await lab.engine.kill(parent, 0.2)
        await lab.ended(parent)
        await eventually(lambda: not processes_with(child), "the whole process tree is gone")
        # killed after its command has failed
        await lab.held(holds)
        await eventually(lambda: len(processes_running(f"sleep 1{held}")) > 0, "it runs on")
        await lab.engine.kill(holds, 0)
        await lab.ended(holds)
        await eventually(lambda: not processes_with(held), "what the command left behind is gone")

    async def test_code_counts_as_written_by_the_task(self, lab: Lab, tmp_path: Path) -> None:
        (tmp_path / "large").mkdir()
        (tmp_path / "large" / "file").write_bytes(bytes(range(256)) * 2**14)
        _, ended = await lab.run(FOREVER, code=tmp_path / "large", storage_gb=0)
        assert (ended.cause, ended.exit_code) == (EndCause.DISK, 137)


class ServiceConformance(Conformance):
    """Promises to the service: all that it gives arrives, what it asks for happens once."""

    # the disk of the data folder

    async def test_a_task_that_fills_the_disk_can_be_found_and_ended(self, lab: Lab) -> None:
        calm = await lab.start(FOREVER)
        prints = await lab.start(
            "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo all said; exec sleep 100000"
        )
        await lab.printed(prints, "all said")
        await lab.printed(calm, "ready")
        for task in (calm, prints):
            await lab.started(task)  # (its output may come before the engine knows)
        use = await lab.engine.disk_use()
        assert use[calm] < 2**20 < 3_000_000 <= use[prints]
        await lab.engine.end_for_room(prints)
        ended = await lab.ended(prints)
        assert (ended.cause, ended.exit_code) == (EndCause.DISK, 137)
        assert "was filling it fastest" in str(ended.reason)
        assert set(await lab.engine.disk_use()) == {calm}

    # what it is given

    @pytest.mark.parametrize("hold", [False, True])
    async def test_command_environment_and_output_arrive_untouched(self, lab: Lab, hold: bool) -> None:
        command = (
            "printf '%s|' 'a  b' \"it's\" '$HOME' '`id`' \"\\\\n\" \"$1\"\n"
            'printf "%s|" "$((1 + 1))" "${EMPTY+set}" "$QUOTES" "$LINES" # done\n'
            "printf '训练完成 ✓\\377|'; kill -l >/dev/null\n"
            "echo here > file; cat file; cat; echo end; "
            'cat /proc/self/environ | tr "\\0" "|" >&2'
        )
        task, ended = await lab.run(command, env=ENV, hold_on_failure=hold)
        started = lab.told(task)[0]
        assert isinstance(started, Started)
        assert started.container_id
        assert lab.told(task) == [started, ended]
        assert (ended.cause, ended.exit_code, ended.reason) == (EndCause.EXITED, 0, None)
        assert started.time <= ended.time
        log = lab.engine.log(task)
        assert (
            log.read("stdout")
            == (
                "a  b|it's|$HOME|`id`|\\n||2|set|" + "|".join((ENV["QUOTES"], ENV["LINES"], "训练完成 ✓"))
            ).encode()
            + b"\xff|here\nend\n"
        )
        arrived = log.read("stderr").decode().split("|")
        for name, value in ENV.items():
            assert f"{name}={value}" in arrived

    async def test_code_data_and_files_are_there_for_each_task_and_stay_as_they_were(
        self, lab: Lab, code: Path, tmp_path: Path
    ) -> None:
        again = shlex.quote(lab.engine.code_dir(code))
        command = (
            'cd "my code" && ./run.sh && cat deep/er/data && echo of $SELF >> deep/er/data && rm run.sh && '
            'echo new > "./新 file" && cat deep/er/data "./新 file" && ls -A && '
            f"cat {again}/deep/er/data && ls -A {again} && cd .. && "
            'cat "data sets/own/deep/er/data" deep/er/data && '
            'cat "$FILES/netrc" && ls -A || exit 9; echo x 2>/dev/null >> "$FILES/other"; '
            'rm -rf deep "data sets" 2>/dev/null; exit 0'
        )
        job = new_job_id()
        launches = await lab.prepare(
            *(
                lab.make(
                    command,
                    task=make_task(index=index, job_id=job),
                    code=code,
                    mounts=(Mount(code, "data sets/own"), Mount(code / "deep", "deep")),
                    files={"netrc": b"a secret\n"},
                )
                for index in range(2)
            )
        )
        assert "a secret" not in repr(launches)
        tasks = [launch.task for launch in launches]
        for launch in launches:
            env = {"SELF": str(launch.task.index), "FILES": lab.engine.private_dir(launch.task)}
            await lab.engine.launch(replace(launch, env=env))
        for task in tasks:
            assert (await lab.ended(task)).exit_code == 0
            assert lab.output(task, "stdout").split("\n") == [
                *("run", "data", "data", f"of {task.index}", "new", "deep", "empty", "新 file", "data"),
                *("deep", "empty", "run.sh", "data", "data", "a secret", "data sets", "deep", "my code", ""),
            ]
        assert (code / "deep/er/data").read_text() == "data\n"
        await lab.engine.release(lab.gangs[0])
        assert not list(tmp_path.rglob("netrc"))  # noqa: ASYNC240 (a few folders of a test)

    async def test_code_that_is_not_there_is_a_failed_launch(self, lab: Lab, tmp_path: Path) -> None:
        task, ended = await lab.run("echo ran", code=tmp_path / "none")
        assert (ended.cause, ended.exit_code) == (EndCause.LAUNCH_FAILED, None)
        assert lab.output(task) == ""

    # the way in

    async def test_a_running_task_is_logged_into_with_its_jobs_key(self, lab: Lab, tmp_path: Path) -> None:
        env = {"GREETING": "it's\n$HOME 你好"}
        (launch,) = with_ssh(
            *await lab.prepare(lab.make(FOREVER, env=env)), own_server=lab.engine.own_ssh_server
        )
        await lab.engine.launch(launch)
        # (its first line may be there before the engine knows of its start)
        await lab.started(launch.task)
        await lab.printed(launch.task, "ready")
        way = await lab.engine.ssh_endpoint(launch.task)
        async with await log_in(way, launch.task.job_id) as connection:
            done = await connection.run('printf %s "$GREETING"; echo bad >&2; exit 7', timeout=30)
            assert (done.stdout, done.stderr, done.exit_status) == (env["GREETING"], "bad\n", 7)
            (tmp_path / "file").write_bytes(bytes(range(256)) * 4096)
            async with connection.start_sftp_client() as sftp:
                await sftp.put(str(tmp_path / "file"), "sent")
                await sftp.get("sent", str(tmp_path / "back"))
            assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()
            # relative paths and commands begin in the same place, the task's own
            assert (await connection.run("wc -c < sent; pwd", timeout=30)).stdout == (
                f"{256 * 4096}\n{lab.engine.work_dir(launch.task)}\n"
            )
        for wrong in (KEYS.identity("another"), KEYS.host(launch.task.job_id)):
            with pytest.raises(asyncssh.PermissionDenied):
                await log_in(way, launch.task.job_id, identity=wrong)
        await lab.engine.kill(launch.task, 0)
        await lab.ended(launch.task)
        with pytest.raises(NoSshEndpointError):
            await lab.engine.ssh_endpoint(launch.task)

    async def test_a_running_task_can_be_read_and_measured_and_has_no_way_in_unless_one_is_asked_for(
        self, lab: Lab
    ) -> None:
        task = await lab.start(
            "x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo ready; sleep 100000; echo $x"
        )
        assert await lab.engine.usage(make_task()) is None
        await lab.printed(task, "ready")
        assert [type(event) for event in lab.told(task)] in ([], [Started])
        with pytest.raises(NoSshEndpointError):
            await lab.engine.ssh_endpoint(task)
        usage = await lab.engine.usage(task)
        assert usage is not None
        assert usage.memory_mb > 15
        assert usage.cpu_percent >= 0
        await lab.engine.kill(task, 0)
        await lab.ended(task)
        assert await lab.engine.usage(task) is None

    # logs

    async def test_stdout_and_stderr_are_kept_apart_and_together_in_order_of_arrival(self, lab: Lab) -> None:
        orders = (("stdout", "stderr"), ("stderr", "stdout"))
        number = {"stdout": 1, "stderr": 2}
        tasks = await lab.start_gang(
            *(
                f"trap 'echo second >&{number[second]}; exit 0' TERM; sleep 100000 & "
                f"echo first >&{number[first]}; wait"
                for first, second in orders
            )
        )
        for task, (first, second) in zip(tasks, orders, strict=True):
            await lab.printed(task, "first")
            await lab.engine.kill(task, 60)
            await lab.ended(task)
            assert lab.output(task, first) == "first\n"
            assert lab.output(task, second) == "second\n"
            assert lab.output(task, "all") == lab.output(task, first) + lab.output(task, second)

    async def test_output_of_50_mb_arrives_whole(self, lab: Lab) -> None:
        size = 50 * 1024 * 1024
        task, ended = await lab.run(f"head -c {size} /dev/zero | tr '\\0' x; echo end >&2")
        log = lab.engine.log(task)
        assert (ended.exit_code, ended.reason) == (0, None)
        assert log.size("stdout") == size
        assert log.size("all") == size + 4
        assert log.read("stdout", size - 10) == b"x" * 10
        assert log.read("stderr") == b"end\n"

    async def test_the_log_of_a_task_that_never_ran_is_empty(self, lab: Lab) -> None:
        assert lab.engine.log(make_task()).read("all") == b""

    # exactly once

    async def test_what_is_asked_for_again_happens_once(self, lab: Lab) -> None:
        (launch,) = await lab.prepare(lab.make("echo ran; exit 4"))
        await asyncio.gather(*(lab.engine.launch(launch) for _ in range(5)))
        ended = await lab.ended(launch.task)
        await lab.engine.launch(launch)
        await lab.engine.kill(launch.task, 0)
        told = lab.told(launch.task)
        assert [type(event) for event in told] == [Started, Ended]
        assert told[1:] == [ended]
        assert lab.output(launch.task) == "ran\n"
        for _ in range(2):
            await lab.engine.release(lab.gangs[0])
        assert lab.output(launch.task) == "ran\n"

    async def test_a_gangs_addresses_are_the_same_when_asked_again_and_it_may_be_let_go_unused(
        self, lab: Lab
    ) -> None:
        job = make_task().job_id
        launches = [lab.make("true", task=make_task("a~b", index, job_id=job)) for index in range(2)]
        gang = make_gang(*launches)
        addresses = dict(await lab.engine.prepare(gang))
        assert set(addresses) == {launch.task for launch in launches}
        assert all(addresses.values())
        assert dict(await lab.engine.prepare(gang)) == addresses
        await lab.engine.release(gang)

    # ending

    async def test_each_task_that_is_killed_has_its_grace_to_end_in(self, lab: Lab) -> None:
        says_bye = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
        deaf = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
        saves = "trap 'sleep 2; echo saved; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
        tasks = await lab.start_gang(says_bye, saves, deaf, deaf)
        tasks.append(await lab.start(says_bye, hold_on_failure=True))
        handles, takes_its_time, does_not_hear, is_told_again, may_be_held = tasks
        for task in tasks:
            await lab.printed(task, "ready")
        await lab.engine.kill(handles, 60)
        await lab.engine.kill(takes_its_time, 30)
        await lab.engine.kill(does_not_hear, 1)
        await lab.engine.kill(is_told_again, 100_000)
        await lab.engine.kill(is_told_again, 0)
        await lab.engine.kill(may_be_held, 100_000)
        codes = {
            handles: 3,
            takes_its_time: 5,
            does_not_hear: 137,
            is_told_again: 137,
            may_be_held: 3,
        }
        for task, code in codes.items():
            ended = await lab.ended(task)
            assert (ended.cause, ended.exit_code) == (EndCause.KILLED, code)
            assert [type(event) for event in lab.told(task)] == [Started, Ended]
        assert "bye" in lab.output(handles)
        assert "bye" in lab.output(may_be_held)
        assert "saved" in lab.output(takes_its_time)

    async def test_launch_and_kill_at_once_end_the_task_whichever_is_first(self, lab: Lab) -> None:
        job = make_task().job_id
        launches = await lab.prepare(
            *(lab.make(FOREVER, task=make_task(index=index, job_id=job)) for index in range(5))
        )
        for launch in launches:
            await asyncio.gather(lab.engine.launch(launch), lab.engine.kill(launch.task, 0))
        for launch in launches:
            ended = await lab.ended(launch.task)
            assert ended.cause is EndCause.KILLED

    # a restart of the service

    async def test_what_runs_is_adopted_at_a_restart_as_it_was_and_what_nobody_expects_is_ended(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]], code: Path
    ) -> None:
        marker = str(uuid.uuid4().int)[:9]
        (launch,) = await lab.prepare(lab.make(f'cd "my code"; cat deep/er/data; {FOREVER}', code=code))
        await lab.engine.launch(launch)
        first = await lab.started(launch.task)
        await lab.printed(launch.task, "ready")
        unexpected = await lab.start(f"echo ready; sleep 1{marker}; true")
        await lab.printed(unexpected, "ready")
        stopping = await lab.start("trap 'echo told' TERM; echo ready; while :; do sleep 0.05; done")
        await lab.printed(stopping, "ready")
        await lab.engine.kill(stopping, 1000)
        await lab.printed(stopping, "told")

        later = await restarted(lab)
        later.gangs = [gang for gang in later.gangs if gang.job_id != unexpected.job_id]
        await later.adopt([launch.task, stopping])
        again = await later.started(launch.task)
        assert (again.time, again.container_id) == (first.time, first.container_id)
        await eventually(lambda: not processes_with(marker), "the unexpected task is ended")
        # it hears of its stop once, and has what is left of its grace
        await later.engine.kill(stopping, 2)
        ended = await later.ended(stopping)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, 137)
        assert later.output(stopping).count("told") == 1
        # launched again it is not started again
        await later.engine.launch(launch)
        assert (await later.started(launch.task)).container_id == first.container_id
        await later.engine.kill(launch.task, 0)
        ended = await later.ended(launch.task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, 137)
        assert later.output(launch.task) == "data\nready\n"

    async def test_what_has_ended_before_a_restart_or_meanwhile_is_told_and_not_run_again(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        over, meanwhile = await lab.prepare(
            *(
                lab.make(command, task=make_task(index=index, job_id=job))
                for job in [new_job_id()]
                for index, command in enumerate(("echo ran; exit 6", "sleep 0.4; echo last words; exit 5"))
            )
        )
        await lab.engine.launch(over)
        first = await lab.ended(over.task)
        await lab.engine.launch(meanwhile)
        await lab.started(meanwhile.task)
        later = await restarted(lab)
        await later.adopt([over.task, meanwhile.task])
        await later.engine.launch(over)
        assert await later.ended(over.task) == first
        assert later.output(over.task) == "ran\n"
        ended = await later.ended(meanwhile.task)
        assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 5)
        assert [type(event) for event in later.told(meanwhile.task)] == [Started, Ended]
        assert later.output(meanwhile.task) == "last words\n"

    async def test_a_task_killed_before_its_launch_never_runs_not_after_a_restart_either(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        killed, waits = await lab.prepare(
            *(
                lab.make("echo ran", task=make_task(index=index, job_id=job))
                for job in [new_job_id()]
                for index in range(2)
            )
        )
        await lab.engine.kill(killed.task, 10)
        ended = await lab.ended(killed.task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, None)
        await lab.engine.launch(killed)
        await lab.engine.kill(killed.task, 10)
        assert lab.told(killed.task) == [ended]
        later = await restarted(lab)
        await later.adopt([killed.task, waits.task])
        # what was never launched may be launched
        assert later.told(waits.task) == []
        await later.engine.launch(killed)
        await later.engine.launch(waits)
        ended = await later.ended(killed.task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, None)
        assert later.output(killed.task) == ""
        assert (await later.ended(waits.task)).exit_code == 0
        assert later.output(waits.task) == "ran\n"

    async def test_what_is_held_before_a_restart_or_meanwhile_is_found_held(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        marker = str(uuid.uuid4().int)[:9]
        holds, will_hold = await lab.start_gang(
            "exit 7", f"sleep 0.5; sleep 1{marker} & exit 5", hold_on_failure=True
        )
        first = await lab.held(holds)
        await lab.started(will_hold)
        later = await restarted(lab)
        await eventually(
            lambda: len(processes_running(f"sleep 1{marker}")) > 0, "the command comes to its end"
        )
        await later.adopt([holds, will_hold])
        assert await later.held(holds) == first
        held = await later.held(will_hold)
        assert (held.cause, held.exit_code) == (EndCause.EXITED, 5)
        for task in (holds, will_hold):
            await later.engine.kill(task, 0)
            assert (await later.ended(task)).cause is EndCause.KILLED
        assert [type(event) for event in later.told(holds)] == [Started, HeldAfterFailure, Ended]

    # the nodes

    async def test_there_is_a_node_with_something_on_it_and_room_on_its_disk(self, lab: Lab) -> None:
        nodes = await lab.engine.nodes()
        assert nodes
        for node in nodes:
            assert node.name
            assert node.cpus >= 1
            assert node.memory_mb > 100
            assert node.storage_gb >= 0
            disk = lab.engine.disk(node.name)
            assert disk is not None
            assert 0 <= disk.free_mb <= disk.total_mb
            assert disk.total_mb > 0


class EngineConformance(TaskConformance, ServiceConformance):
    """The engine protocol's promises."""
