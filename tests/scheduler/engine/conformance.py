"""What every engine must do, as tests: subclass `EngineConformance` in an engine's test file.

That file provides these fixtures (all functions of one test share one state: data folder, Docker daemon …):

- `engine`: a started engine, closed after the test;
- `reopen`: a coroutine function that makes one more started engine over the same state, as a new service
  process would after the kill -9 of the old one (which is left alone, not closed, until the test is over);
- `image`: the image to run; it has `sh`, `sleep`, `head`, `tr`, `cat` and `setsid`.
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
from tests.scheduler.engine.lab import (
    Lab,
    eventually,
    make_gang,
    make_task,
    new_job_id,
    processes_running,
    processes_with,
)
from tests.scheduler.engine.ssh_tasks import KEYS, log_in, with_ssh

Reopen = Callable[[], Awaitable[Engine]]

#: A command that lives until it is ended, and says when it is ready for that.
FOREVER = "echo ready; exec sleep 100000"


class EngineConformance:
    """The engine protocol's promises, one test each."""

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

    # what runs, and how it ends

    async def test_a_task_starts_then_ends_with_its_exit_code(self, lab: Lab) -> None:
        task, ended = await lab.run("exit 7")
        started = lab.told(task)[0]
        assert isinstance(started, Started)
        assert started.container_id
        assert lab.told(task) == [started, ended]
        assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 7)
        assert started.time <= ended.time

    async def test_success_is_exit_code_0_without_a_reason(self, lab: Lab) -> None:
        _, ended = await lab.run("true")
        assert (ended.cause, ended.exit_code, ended.reason) == (EndCause.EXITED, 0, None)

    @pytest.mark.parametrize(("signal", "code"), [("SEGV", 139), ("ABRT", 134), ("TERM", 143), ("KILL", 137)])
    async def test_a_command_ended_by_a_signal_of_its_own_has_exit_code_128_and_more(
        self, lab: Lab, signal: str, code: int
    ) -> None:
        _, ended = await lab.run(f"sh -c 'kill -{signal} $$'")
        assert (ended.cause, ended.exit_code) == (EndCause.EXITED, code)

    async def test_a_command_that_is_not_found_exits_127_with_the_shells_own_words(self, lab: Lab) -> None:
        task, ended = await lab.run("no-such-command-here --help")
        assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 127)
        assert "no-such-command-here" in lab.output(task, "stderr")

    async def test_the_command_is_handed_over_untouched(self, lab: Lab) -> None:
        command = "printf '%s|' 'a  b' \"it's\" '$HOME' '`id`' \"\\\\n\"\nprintf '%s' \"$((1 + 1))\" # done"
        task, _ = await lab.run(command)
        assert lab.output(task) == "a  b|it's|$HOME|`id`|\\n|2"

    async def test_the_environment_arrives_untouched(self, lab: Lab) -> None:
        env = {
            "QUOTES": 'it\'s "quoted" $HOME `id` \\n %s',
            "LINES": "one\ntwo\n\nfour\t",
            "CHINESE": "你好，世界",
            "EMPTY": "",
            "SPACES": "  a  ",
            "PAI_TASK_ROLE_main_HOST_LIST": "127.0.0.1:1,127.0.0.1:2",
        }
        command = "".join(f'printf "%s|" "${name}"; ' for name in env) + "echo ${EMPTY+set}"
        task, _ = await lab.run(command, env=env)
        assert lab.output(task) == "|".join(env.values()) + "|set\n"

    @pytest.mark.parametrize("hold", [False, True])
    async def test_variables_whose_names_no_shell_could_have_arrive(self, lab: Lab, hold: bool) -> None:
        env = {
            "PAI_HOST_IP_a.b_0": "10.0.0.1",
            "PAI_HOST_IP_c~d_0": 'it\'s "quoted" $HOME',
            "with-dash": "two\nlines",
            "-u": "",
            "0": "=",
        }
        command = 'printf "%s|" "$1"; cat /proc/self/environ | tr "\\0" "|"'
        task, ended = await lab.run(command, env=env, hold_on_failure=hold)
        assert ended.exit_code == 0
        arrived = lab.output(task).split("|")
        assert arrived[0] == ""
        for name, value in env.items():
            assert f"{name}={value}" in arrived

    async def test_an_environment_variable_of_64_kb_arrives_whole(self, lab: Lab) -> None:
        task, ended = await lab.run('printf %s "$LARGE"', env={"LARGE": "0123456789abcdef" * 4096})
        assert ended.exit_code == 0
        assert lab.output(task) == "0123456789abcdef" * 4096

    async def test_the_working_folder_can_be_written_and_input_is_empty(self, lab: Lab) -> None:
        task, _ = await lab.run("echo here > file; cat file; cat; echo end")
        assert lab.output(task) == "here\nend\n"

    async def test_what_a_command_leaves_behind_ends_with_it(self, lab: Lab) -> None:
        marker = str(uuid.uuid4().int)[:9]
        task, ended = await lab.run(
            f"sleep 1{marker} & setsid sleep 2{marker} >/dev/null 2>&1 & echo main ends; exit 3"
        )
        assert ended.exit_code == 3
        assert lab.output(task) == "main ends\n"
        await eventually(lambda: not processes_with(marker), "what the command left behind is gone")

    # code and files of its own

    async def test_code_is_there_to_change_and_once_more_as_it_was(self, lab: Lab, code: Path) -> None:
        command = (
            'cd "my code" && ./run.sh && cat deep/er/data && echo more >> deep/er/data && rm run.sh && '
            'echo new > "./新 file" && cat deep/er/data "./新 file" && ls -A && '
            f"cat {shlex.quote(lab.engine.code_dir(code))}/deep/er/data && "
            f"ls -A {shlex.quote(lab.engine.code_dir(code))}"
        )
        task, ended = await lab.run(command, code=code)
        assert lab.output(task).split("\n") == [
            *("run", "data", "data", "more", "new", "deep", "empty", "新 file", "data"),
            *("deep", "empty", "run.sh", ""),
        ]
        assert ended.exit_code == 0
        assert (code / "deep/er/data").read_text() == "data\n"

    async def test_each_task_of_a_gang_changes_its_own_code(self, lab: Lab, code: Path) -> None:
        tasks = [make_task(index=index, job_id=job_id) for job_id in [new_job_id()] for index in range(2)]
        command = 'cd "my code" && echo of $SELF >> deep/er/data && cat deep/er/data'
        launches = await lab.prepare(
            *(lab.make(command, task=task, code=code, env={"SELF": str(task.index)}) for task in tasks)
        )
        await asyncio.gather(*(lab.engine.launch(launch) for launch in launches))
        for task in tasks:
            assert (await lab.ended(task)).exit_code == 0
            assert lab.output(task) == f"data\nof {task.index}\n"

    async def test_its_own_files_are_outside_the_working_folder_and_go_with_it(
        self, lab: Lab, tmp_path: Path
    ) -> None:
        (launch,) = await lab.prepare(lab.make("true", files={"netrc": b"a secret\n"}))
        place = shlex.quote(lab.engine.private_dir(launch.task))
        launch = replace(launch, command=f"cat {place}/netrc; ls -A; echo x 2>/dev/null >> {place}/other")
        await lab.engine.launch(launch)
        await lab.ended(launch.task)
        assert lab.output(launch.task, "stdout") == "a secret\n"
        assert "a secret" not in repr(launch)
        await lab.engine.release(make_gang(launch))
        assert not list(tmp_path.rglob("netrc"))

    async def test_mounted_data_is_there_before_the_command_and_stays_as_it_was(
        self, lab: Lab, code: Path
    ) -> None:
        mounts = (Mount(code, "data sets/own"), Mount(code / "deep", "deep"))
        command = 'cat "data sets/own/deep/er/data" deep/er/data; rm -rf deep "data sets"; ls -A'
        task, _ = await lab.run(command, mounts=mounts, code=code)
        assert lab.output(task, "stdout").startswith("data\ndata\n")
        assert "my code" in lab.output(task, "stdout")
        assert (code / "deep/er/data").read_text() == "data\n"

    async def test_code_that_is_not_there_is_a_failed_launch(self, lab: Lab, tmp_path: Path) -> None:
        task, ended = await lab.run("echo ran", code=tmp_path / "none")
        assert (ended.cause, ended.exit_code) == (EndCause.LAUNCH_FAILED, None)
        assert lab.output(task) == ""

    async def test_code_counts_as_written_by_the_task(self, lab: Lab, tmp_path: Path) -> None:
        (tmp_path / "large").mkdir()
        (tmp_path / "large" / "file").write_bytes(bytes(range(256)) * 2**14)
        _, ended = await lab.run(FOREVER, code=tmp_path / "large", storage_gb=0)
        assert (ended.cause, ended.exit_code) == (EndCause.DISK, 137)

    async def test_code_outlives_the_service(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]], code: Path
    ) -> None:
        task = await lab.start(f'cd "my code"; cat deep/er/data; {FOREVER}', code=code)
        await lab.printed(task, "ready")
        lab = await restarted(lab)
        await lab.adopt([task])
        await lab.started(task)
        await lab.engine.kill(task, 0)
        await lab.ended(task)
        assert lab.output(task) == "data\nready\n"

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

    async def test_a_task_without_a_port_for_it_has_no_way_in(self, lab: Lab) -> None:
        task = await lab.start(FOREVER)
        await lab.printed(task, "ready")
        with pytest.raises(NoSshEndpointError):
            await lab.engine.ssh_endpoint(task)

    # logs

    @pytest.mark.parametrize(("first", "second"), [("stdout", "stderr"), ("stderr", "stdout")])
    async def test_stdout_and_stderr_are_kept_apart_and_together_in_order_of_arrival(
        self, lab: Lab, first: str, second: str
    ) -> None:
        number = {"stdout": 1, "stderr": 2}
        task = await lab.start(
            f"trap 'echo second >&{number[second]}; exit 0' TERM; sleep 100000 & "
            f"echo first >&{number[first]}; wait"
        )
        await lab.printed(task, "first")
        await lab.engine.kill(task, 60)
        await lab.ended(task)
        assert lab.output(task, first) == "first\n"
        assert lab.output(task, second) == "second\n"
        assert lab.output(task, "all") == lab.output(task, first) + lab.output(task, second)

    async def test_a_line_can_be_read_while_the_task_runs(self, lab: Lab) -> None:
        task = await lab.start(FOREVER)
        await lab.printed(task, "ready")
        assert [type(event) for event in lab.told(task)] in ([], [Started])

    async def test_output_of_50_mb_arrives_whole(self, lab: Lab) -> None:
        size = 50 * 1024 * 1024
        task, ended = await lab.run(f"head -c {size} /dev/zero | tr '\\0' x; echo end >&2")
        log = lab.engine.log(task)
        assert (ended.exit_code, ended.reason) == (0, None)
        assert log.size("stdout") == size
        assert log.size("all") == size + 4
        assert log.read("stdout", size - 10) == b"x" * 10
        assert log.read("stderr") == b"end\n"

    async def test_output_is_bytes_and_utf8_passes_unharmed(self, lab: Lab) -> None:
        task, _ = await lab.run("printf '训练完成 ✓\\377\\n'")
        assert lab.engine.log(task).read("stdout") == "训练完成 ✓".encode() + b"\xff\n"

    async def test_the_log_of_a_task_that_never_ran_is_empty(self, lab: Lab) -> None:
        assert lab.engine.log(make_task()).read("all") == b""

    # exactly once

    async def test_launching_twice_at_once_runs_the_command_once(self, lab: Lab) -> None:
        (launch,) = await lab.prepare(lab.make("echo ran"))
        await asyncio.gather(*(lab.engine.launch(launch) for _ in range(5)))
        await lab.ended(launch.task)
        await lab.engine.launch(launch)
        assert [type(event) for event in lab.told(launch.task)] == [Started, Ended]
        assert lab.output(launch.task) == "ran\n"

    async def test_a_gangs_addresses_are_the_same_when_asked_again(self, lab: Lab) -> None:
        job = make_task().job_id
        launches = [lab.make("true", task=make_task("a~b", index, job_id=job)) for index in range(2)]
        gang = make_gang(*launches)
        lab.gangs.append(gang)
        addresses = dict(await lab.engine.prepare(gang))
        assert set(addresses) == {launch.task for launch in launches}
        assert all(addresses.values())
        assert dict(await lab.engine.prepare(gang)) == addresses

    # ending

    async def test_kill_ends_a_task_with_a_signal_it_can_handle(self, lab: Lab) -> None:
        task = await lab.start("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
        await lab.printed(task, "ready")
        await lab.engine.kill(task, 60)
        ended = await lab.ended(task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, 3)
        assert "bye" in lab.output(task)

    async def test_a_task_that_saves_its_work_within_its_grace_ends_by_itself(self, lab: Lab) -> None:
        task = await lab.start(
            "trap 'sleep 3; echo saved; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
        )
        await lab.printed(task, "ready")
        await lab.engine.kill(task, 30)
        ended = await lab.ended(task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, 5)
        assert "saved" in lab.output(task)

    async def test_kill_ends_what_ignores_the_signal_once_the_grace_is_over(self, lab: Lab) -> None:
        task = await lab.start("trap '' TERM; echo ready; while :; do sleep 0.05; done")
        await lab.printed(task, "ready")
        await lab.engine.kill(task, 1)
        ended = await lab.ended(task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, 137)

    async def test_a_second_kill_can_shorten_the_grace(self, lab: Lab) -> None:
        task = await lab.start("trap '' TERM; echo ready; while :; do sleep 0.05; done")
        await lab.printed(task, "ready")
        await lab.engine.kill(task, 100_000)
        await lab.engine.kill(task, 0)
        assert (await lab.ended(task)).cause is EndCause.KILLED

    async def test_kill_ends_children_that_left_for_a_session_of_their_own(self, lab: Lab) -> None:
        marker = str(uuid.uuid4().int)[:9]
        task = await lab.start(
            f"trap '' TERM; setsid sh -c 'sleep 1{marker}; true' & echo ready; wait; sleep 2{marker}"
        )
        await lab.printed(task, "ready")
        await eventually(lambda: len(processes_running(f"sleep 1{marker}")) > 0, "the child runs")
        await lab.engine.kill(task, 0.2)
        await lab.ended(task)
        await eventually(lambda: not processes_with(marker), "the whole process tree is gone")

    async def test_a_task_killed_before_its_launch_never_runs(self, lab: Lab) -> None:
        (launch,) = await lab.prepare(lab.make("echo ran"))
        await lab.engine.kill(launch.task, 10)
        ended = await lab.ended(launch.task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, None)
        await lab.engine.launch(launch)
        await lab.engine.kill(launch.task, 10)
        assert lab.told(launch.task) == [ended]
        assert lab.output(launch.task) == ""

    async def test_killing_what_has_ended_changes_nothing(self, lab: Lab) -> None:
        task, ended = await lab.run("exit 4")
        await lab.engine.kill(task, 0)
        assert lab.told(task)[1:] == [ended]

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

    async def test_release_keeps_the_log_and_may_be_repeated(self, lab: Lab) -> None:
        task, _ = await lab.run("echo kept")
        for _ in range(2):
            await lab.engine.release(lab.gangs[0])
        assert lab.output(task) == "kept\n"

    async def test_releasing_a_gang_that_was_only_prepared_is_no_error(self, lab: Lab) -> None:
        (launch,) = await lab.prepare(lab.make("true"))
        await lab.engine.release(make_gang(launch))

    # a restart of the service

    async def test_a_running_task_is_adopted_as_it_was_reported_first(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        task = await lab.start(FOREVER)
        first = await lab.started(task)
        await lab.printed(task, "ready")
        later = await restarted(lab)
        await later.adopt([task])
        again = await later.started(task)
        assert (again.time, again.container_id) == (first.time, first.container_id)
        await later.engine.kill(task, 0)
        ended = await later.ended(task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, 137)

    async def test_a_task_that_is_being_stopped_hears_of_it_once_and_has_what_is_left_of_its_grace(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        task = await lab.start("trap 'echo told' TERM; echo ready; while :; do sleep 0.05; done")
        await lab.printed(task, "ready")
        await lab.engine.kill(task, 1000)
        await lab.printed(task, "told")
        later = await restarted(lab)
        await later.adopt([task])
        await later.engine.kill(task, 2)
        ended = await later.ended(task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, 137)
        assert later.output(task).count("told") == 1

    async def test_a_task_that_ends_while_nobody_looks_is_reported_with_its_exit_code(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        task = await lab.start("sleep 0.4; echo last words; exit 5")
        await lab.started(task)
        later = await restarted(lab)
        await later.adopt([task])
        ended = await later.ended(task)
        assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 5)
        assert [type(event) for event in later.told(task)] == [Started, Ended]
        assert later.output(task) == "last words\n"

    async def test_a_task_that_had_ended_is_reported_again_after_a_restart_and_not_run_again(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        (launch,) = await lab.prepare(lab.make("echo ran; exit 6"))
        await lab.engine.launch(launch)
        first = await lab.ended(launch.task)
        later = await restarted(lab)
        await later.adopt([launch.task])
        await later.engine.launch(launch)
        assert await later.ended(launch.task) == first
        assert later.output(launch.task) == "ran\n"

    async def test_launching_again_what_runs_since_before_a_restart_starts_nothing(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        (launch,) = await lab.prepare(lab.make(FOREVER))
        await lab.engine.launch(launch)
        first = await lab.started(launch.task)
        await lab.printed(launch.task, "ready")
        later = await restarted(lab)
        await later.adopt([launch.task])
        await later.engine.launch(launch)
        assert (await later.started(launch.task)).container_id == first.container_id
        await later.engine.kill(launch.task, 0)
        await later.ended(launch.task)
        assert later.output(launch.task) == "ready\n"

    async def test_what_was_never_launched_may_be_launched_after_adoption(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        (launch,) = await lab.prepare(lab.make("echo ran"))
        later = await restarted(lab)
        await later.adopt([launch.task])
        assert later.told(launch.task) == []
        await later.engine.launch(launch)
        assert (await later.ended(launch.task)).exit_code == 0
        assert later.output(launch.task) == "ran\n"

    async def test_a_kill_before_the_launch_outlives_a_restart(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        (launch,) = await lab.prepare(lab.make("echo ran"))
        await lab.engine.kill(launch.task, 10)
        await lab.ended(launch.task)
        later = await restarted(lab)
        await later.adopt([launch.task])
        await later.engine.launch(launch)
        ended = await later.ended(launch.task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, None)
        assert later.output(launch.task) == ""

    async def test_a_running_task_that_nobody_expects_is_ended(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        marker = str(uuid.uuid4().int)[:9]
        task = await lab.start(f"echo ready; sleep 1{marker}; true")
        await lab.printed(task, "ready")
        later = await restarted(lab)
        await later.adopt([])
        await eventually(lambda: not processes_with(marker), "the unexpected task is ended")
        later.gangs.clear()

    # a task that is held

    @pytest.mark.parametrize(
        ("command", "code"),
        [("exit 7", 7), ("kill -SEGV $$", 139), ("kill -KILL $$", 137), ("kill 0; sleep 100000", 143)],
    )
    async def test_a_command_that_fails_is_held_with_its_exit_code_until_it_is_killed(
        self, lab: Lab, command: str, code: int
    ) -> None:
        task = await lab.start(f"echo out; echo err >&2; {command}", hold_on_failure=True)
        held = await lab.held(task)
        assert (held.cause, held.exit_code) == (EndCause.EXITED, code)
        await lab.engine.kill(task, 60)
        ended = await lab.ended(task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, code)
        assert [type(event) for event in lab.told(task)] == [Started, HeldAfterFailure, Ended]
        assert lab.output(task, "stdout") == "out\n"
        assert lab.output(task, "stderr") == "err\n"

    async def test_a_command_that_succeeds_is_not_held(self, lab: Lab) -> None:
        task, ended = await lab.run("echo done", hold_on_failure=True)
        assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 0)
        assert [type(event) for event in lab.told(task)] == [Started, Ended]
        assert lab.output(task) == "done\n"

    async def test_the_command_of_a_task_that_may_be_held_is_handed_over_untouched(self, lab: Lab) -> None:
        command = "printf '%s|' 'a  b' \"it's\" '$HOME' '`id`' \"\\\\n\"; kill -l >/dev/null; cat; echo end"
        task, _ = await lab.run(command, hold_on_failure=True)
        assert lab.output(task) == "a  b|it's|$HOME|`id`|\\n|end\n"

    async def test_a_task_that_may_be_held_is_killed_with_a_signal_it_can_handle(self, lab: Lab) -> None:
        command = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
        task = await lab.start(command, hold_on_failure=True)
        await lab.printed(task, "ready")
        await lab.engine.kill(task, 100_000)
        ended = await lab.ended(task)
        assert (ended.cause, ended.exit_code) == (EndCause.KILLED, 3)
        assert [type(event) for event in lab.told(task)] == [Started, Ended]
        assert "bye" in lab.output(task)

    async def test_what_a_held_command_left_running_runs_on_until_the_kill(self, lab: Lab) -> None:
        marker = str(uuid.uuid4().int)[:9]
        task = await lab.start(f"sleep 1{marker} & echo ready; exit 3", hold_on_failure=True)
        await lab.held(task)
        await eventually(lambda: len(processes_running(f"sleep 1{marker}")) > 0, "it runs on")
        await lab.engine.kill(task, 0)
        await lab.ended(task)
        await eventually(lambda: not processes_with(marker), "what the command left behind is gone")

    async def test_a_held_task_is_told_again_as_it_was_after_a_restart(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        task = await lab.start("exit 7", hold_on_failure=True)
        first = await lab.held(task)
        later = await restarted(lab)
        await later.adopt([task])
        assert await later.held(task) == first
        await later.engine.kill(task, 0)
        await later.ended(task)
        assert [type(event) for event in later.told(task)] == [Started, HeldAfterFailure, Ended]

    async def test_a_command_that_fails_while_nobody_looks_is_found_held(
        self, lab: Lab, restarted: Callable[[Lab], Awaitable[Lab]]
    ) -> None:
        marker = str(uuid.uuid4().int)[:9]
        task = await lab.start(f"sleep 0.5; sleep 1{marker} & exit 5", hold_on_failure=True)
        await lab.started(task)
        later = await restarted(lab)
        await eventually(
            lambda: len(processes_running(f"sleep 1{marker}")) > 0, "the command comes to its end"
        )
        await later.adopt([task])
        held = await later.held(task)
        assert (held.cause, held.exit_code) == (EndCause.EXITED, 5)
        await later.engine.kill(task, 0)
        assert (await later.ended(task)).cause is EndCause.KILLED

    # what is used

    async def test_usage_is_measured_while_a_task_runs(self, lab: Lab) -> None:
        task = await lab.start(
            "x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo ready; sleep 100000; echo $x"
        )
        assert await lab.engine.usage(make_task()) is None
        await lab.printed(task, "ready")
        usage = await lab.engine.usage(task)
        assert usage is not None
        assert usage.memory_mb > 15
        assert usage.cpu_percent >= 0
        await lab.engine.kill(task, 0)
        await lab.ended(task)
        assert await lab.engine.usage(task) is None

    async def test_there_is_a_node_with_something_on_it(self, lab: Lab) -> None:
        for node in await lab.engine.nodes():
            assert node.name
            assert node.cpus >= 1
            assert node.memory_mb > 100
            assert node.storage_gb >= 0

    async def test_the_room_on_the_disk_of_each_node_is_known(self, lab: Lab) -> None:
        for node in await lab.engine.nodes():
            disk = lab.engine.disk(node.name)
            assert disk is not None
            assert 0 <= disk.free_mb <= disk.total_mb
            assert disk.total_mb > 0
