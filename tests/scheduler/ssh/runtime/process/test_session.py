"""Shells and commands in a task of the process engine, by OpenSSH's client and by paramiko."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
from pathlib import Path

import asyncssh
import paramiko
import pytest

from pai_scheduler.engine.process import procfs
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.process.task_folder import COOKIE, TaskFolder
from pai_scheduler.testing.lab import Lab, eventually, processes_running, processes_with
from tests.scheduler.ssh.runtime.process.entered import PATIENCE, Enter, Entered

#: bytes; SSH's window, the buffers of sockets and pipes and ours are a few MB
_MORE_THAN_BUFFERS = 50_000_000


@pytest.fixture
def marker() -> str:
    """Return a number that stands in no other process's command line."""
    return str(int.from_bytes(os.urandom(4), "big"))


# commands


async def test_a_command_runs_in_the_tasks_folder_with_its_whole_environment(enter: Enter) -> None:
    env = {"PAI_TASK_INDEX": "0", "LINES_OF": "one\ntwo", "LONG": "x" * 60_000}
    entered = await enter(env=env)
    done = await entered.ssh('pwd; printf %s "$PAI_TASK_INDEX $LINES_OF"; printf %s "$LONG" | wc -c')
    assert done.stdout.decode() == f"{entered.work}\n0 one\ntwo60000\n"
    assert (done.returncode, done.stderr) == (0, b"")


async def test_output_and_errors_come_apart_and_the_exit_code_is_the_commands(entered: Entered) -> None:
    done = await entered.ssh("echo out; echo err >&2; exit 42")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 42)


async def test_a_command_that_a_signal_ends_is_told_as_that(entered: Entered) -> None:
    async with await entered.connect() as connection:
        for name in ("TERM", "SEGV", "KILL"):
            done = await connection.run(f"kill -{name} $$")
            assert done.exit_signal is not None
            assert (done.exit_status, done.exit_signal[0]) == (-1, name)


async def test_a_signal_is_passed_on_to_the_command(entered: Entered) -> None:
    async with await entered.connect() as connection:
        process = await connection.create_process(
            "trap 'echo caught; exit 3' USR1; echo ready; while :; do sleep 0.05; done"
        )
        assert await process.stdout.readline() == "ready\n"
        process.send_signal("USR1")
        done = await process.wait()
        assert (done.stdout, done.exit_status) == ("caught\n", 3)


async def test_every_byte_passes_both_ways_and_the_end_of_the_input_too(entered: Entered) -> None:
    data = bytes(range(256)) * 40_000
    done = await entered.ssh("cat", input=data)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
    assert done.returncode == 0


async def test_a_command_that_does_not_read_stops_its_client_not_the_server(entered: Entered) -> None:
    writer = entered.begin(*entered.line("sleep 1000"))
    assert writer.stdin is not None
    pipe = writer.stdin.fileno()
    os.set_blocking(pipe, False)
    sent = 0
    # until nothing is taken for so long as another session needs
    while True:
        before = sent
        with contextlib.suppress(BlockingIOError):
            while sent < _MORE_THAN_BUFFERS:
                sent += os.write(pipe, b"x" * 65536)
        assert (await entered.ssh("echo others go on")).stdout == b"others go on\n"
        if sent == before:
            break
    assert 0 < sent < _MORE_THAN_BUFFERS


async def test_what_is_printed_faster_than_it_is_read_waits_in_the_program(
    own_entered: Entered, marker: str
) -> None:
    # its client is stopped, so it takes nothing
    reader = own_entered.begin(*own_entered.line(f"echo begun{marker} > begun; yes | head -c 1000000000"))
    await eventually((own_entered.work / "begun").exists, "the command runs")
    reader.send_signal(signal.SIGSTOP)
    server = own_entered.server()
    for _ in range(20):
        assert (await own_entered.ssh("true")).returncode == 0
    memory = procfs.process(server)
    assert memory is not None
    assert memory.memory_bytes < 150_000_000


async def test_a_program_that_writes_no_text_is_passed_on_as_it_is(entered: Entered) -> None:
    done = await entered.ssh(r"printf '\377\376\000\200'")
    assert done.stdout == b"\xff\xfe\x00\x80"


async def test_a_command_with_any_characters_is_one_command(entered: Entered) -> None:
    done = await entered.ssh("printf '%s|' 'a  b' \"$(echo 'ü$(x)')\" '*'")
    assert done.stdout.decode() == "a  b|ü$(x)|*|"


async def test_the_clients_language_is_taken_where_the_task_says_none(enter: Enter) -> None:
    entered = await enter(env={"LC_TIME": "C"})
    options = ("-o", "SetEnv=LC_TIME=zh_CN.UTF-8 LC_PAPER=de_DE.UTF-8 LD_PRELOAD=/evil.so PAI_TASK_INDEX=9")
    done = await entered.ssh(
        'echo "$LC_TIME $LC_PAPER ${LD_PRELOAD-none} ${PAI_TASK_INDEX-none}"', options=options
    )
    assert done.stdout == b"C de_DE.UTF-8 none none\n"


async def test_the_jobs_own_shell_is_used_where_it_can_be(enter: Enter) -> None:
    for shell, begins in (("/bin/sh", "/bin/sh"), ("/usr/sbin/nologin", "/"), ("no/such", "/")):
        entered = await enter(env={"SHELL": shell})
        done = await entered.ssh('echo "$SHELL"')
        assert done.stdout.decode().startswith(begins)
        assert done.returncode == 0


async def test_a_folder_that_the_task_removed_is_named(own_entered: Entered) -> None:
    (own_entered.work).rmdir()
    done = await own_entered.ssh("true")
    assert done.returncode == 255
    assert b"No such file" in done.stderr


async def test_input_that_arrives_while_the_last_is_written_is_not_lost(entered: Entered) -> None:
    done = await entered.ssh("sleep 0.2; cat | wc -c", input=b"x" * 5_000_000)
    assert int(done.stdout) == 5_000_000


async def test_a_program_that_does_not_read_to_the_end_is_no_trouble(entered: Entered) -> None:
    command = "head -c 1; exec 0<&-; until [ -e go ]; do sleep 0.05; done; echo ' done'; exit 3"
    async with await entered.connect() as connection:
        process = await connection.create_process(command, encoding=None)
        for _ in range(50):
            # the rest is dropped, so there is always room
            process.stdin.write(b"x" * 200_000)
            await asyncio.wait_for(process.stdin.drain(), PATIENCE)
        (entered.work / "go").touch()
        done = await process.wait()
        assert (done.stdout, done.exit_status) == (b"x done\n", 3)


async def test_what_waited_for_a_slow_client_arrives_whole_from_both_outputs(entered: Entered) -> None:
    size = 20_000_000
    command = f"head -c {size} /dev/zero & head -c {size} /dev/zero >&2; wait; exit 6"
    async with await entered.connect() as connection:
        process = await connection.create_process(command, encoding=None, window=65536)
        got = {1: 0, 2: 0}

        async def read(number: int, stream: asyncssh.SSHReader[bytes]) -> None:
            while data := await stream.read(100_000):
                got[number] += len(data)
                await asyncio.sleep(0)

        await asyncio.gather(read(1, process.stdout), read(2, process.stderr))
        assert got == {1: size, 2: size}
        assert (await process.wait()).exit_status == 6


async def test_outputs_that_are_closed_before_the_end_are_told_as_that(entered: Entered) -> None:
    async with await entered.connect() as connection:
        process = await connection.create_process("exec 1>&- 2>&-; read line; exit 4")
        assert await asyncio.wait_for(process.stdout.read(), PATIENCE) == ""
        assert process.exit_status is None
        process.stdin.write("\n")
        assert (await process.wait()).exit_status == 4


async def test_the_end_is_told_after_what_a_child_still_writes(entered: Entered) -> None:
    async with await entered.connect() as connection:
        process = await connection.create_process("mkfifo fifo; (read line; echo late) <fifo & exit 5")
        await eventually((entered.work / "fifo").exists, "it runs")
        await asyncio.to_thread((entered.work / "fifo").write_text, "go\n")
        done = await process.wait()
        assert (done.stdout, done.exit_status) == ("late\n", 5)


async def test_a_signal_or_break_that_there_is_not_is_left_out(entered: Entered) -> None:
    async with await entered.connect() as connection:
        process = await connection.create_process("read line; exit 7")
        for name in ("NONE", "", "_DFL", "15"):
            process.send_signal(name)
        process.send_break(100)
        process.change_terminal_size(66, 55)
        process.stdin.write("\n")
        assert (await process.wait()).exit_status == 7


async def test_a_program_that_does_not_start_on_a_terminal_is_told_too(own_entered: Entered) -> None:
    own_entered.work.rmdir()
    done = await own_entered.ssh("true", options=("-tt",))
    assert done.returncode == 255
    assert b"No such file" in done.stdout + done.stderr


# terminals


async def test_a_shell_has_a_real_terminal_of_the_clients_size(entered: Entered) -> None:
    async with await entered.connect() as connection:
        process = await connection.create_process(term_type="xterm-256color", term_size=(101, 37))
        process.stdin.write(
            'PS1=; stty size; tty | grep -c ^/dev/pts/; echo $TERM; [ "$(tty)" = "$SSH_TTY" ] && echo same\n'
        )
        process.stdin.write("exit 9\n")
        done = await process.wait()
        for line in ("37 101", "1", "xterm-256color", "same"):
            assert f"{line}\r\n" in str(done.stdout)
        assert done.exit_status == 9


async def test_a_terminal_that_gets_another_size_tells_its_programs(entered: Entered) -> None:
    async with await entered.connect() as connection:
        process = await connection.create_process(
            "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done", term_type="vt100"
        )
        await process.stdout.readuntil("ready")
        process.change_terminal_size(66, 55)
        assert "55 66" in str((await process.wait()).stdout)


async def test_keys_that_are_signals_reach_what_runs_in_the_foreground(entered: Entered) -> None:
    async with await entered.connect() as connection:
        process = await connection.create_process("sleep 1000; echo status $?", term_type="vt100")
        await eventually(lambda: bool(_commands(entered, "sleep 1000")), "it runs")
        process.stdin.write("\x03")
        done = await process.wait()
        assert done.exit_signal is not None
        assert done.exit_signal[0] == "INT"


async def test_jobs_can_be_stopped_and_taken_up_again(entered: Entered) -> None:
    async with await entered.connect() as connection:
        process = await connection.create_process(term_type="vt100")
        process.stdin.write("cat\n")
        await eventually(lambda: bool(_commands(entered, "cat")), "cat runs")
        process.stdin.write("\x1a")
        await process.stdout.readuntil("Stopped")
        process.stdin.write("fg\n")
        # as a person does: what is typed ahead is read by the shell, in its own mode
        await process.stdout.readuntil("cat\r\n")
        (cat,) = _commands(entered, "cat")
        await eventually(lambda: _state(cat) == "S", "cat goes on")
        process.stdin.write("again\n")
        await process.stdout.readuntil("again\r\nagain\r\n")
        process.stdin.write("\x04exit 4\n")
        assert (await process.wait()).exit_status == 4


async def test_the_clients_terminal_modes_are_kept(entered: Entered) -> None:
    async with await entered.connect() as connection:
        # VINTR is ^G, no ECHO
        modes = {1: 7, 53: 0}
        process = await connection.create_process("stty -a", term_type="vt100", term_modes=modes)
        told = str((await process.wait()).stdout)
        assert "intr = ^G" in told
        assert " -echo " in told


async def test_a_shell_ends_although_it_leaves_something_behind_on_its_terminal(
    entered: Entered, marker: str
) -> None:
    async with await entered.connect() as connection:
        process = await connection.create_process(term_type="vt100")
        process.stdin.write(f"(trap '' HUP; sleep 1{marker}) & \nexit 2\n")
        assert (await process.wait()).exit_status == 2


async def test_a_terminals_last_words_arrive_before_its_end(entered: Entered) -> None:
    async with await entered.connect() as connection:
        for _ in range(5):
            process = await connection.create_process("seq 3000; exit 8", term_type="vt100", encoding=None)
            done = await process.wait()
            assert done.exit_status == 8
            assert isinstance(done.stdout, bytes)
            assert done.stdout.split() == [str(number).encode() for number in range(1, 3001)]


async def test_a_size_that_cannot_be_ends_no_terminal(entered: Entered) -> None:
    async with await entered.connect() as connection:
        process = await connection.create_process(
            "read line; stty size", term_type="vt100", term_size=(2**32 - 1, 7)
        )
        process.change_terminal_size(2**31, 9)
        process.stdin.write("\n")
        assert "9 65535" in str((await process.wait()).stdout)


# what is started is the task's


async def test_what_is_started_is_in_the_tasks_cgroups(own_entered: Entered) -> None:
    _, record = TaskFolder(own_entered.folder).read()
    command = Path(f"/proc/{record['pid']}/cgroup").read_bytes()
    for options in ((), ("-tt",)):
        done = await own_entered.ssh("cat /proc/self/cgroup", options=options)
        assert done.stdout.replace(b"\r", b"") == command
    assert Path(f"/proc/{own_entered.server()}/cgroup").read_bytes() == Path("/proc/self/cgroup").read_bytes()


async def test_what_is_started_has_the_tasks_mark(own_entered: Entered) -> None:
    done = await own_entered.ssh(f"echo ${COOKIE}")
    assert done.stdout.decode() == f"{own_entered.folder}\n"


async def test_a_shell_outlives_the_service(own_entered: Entered) -> None:
    async with await own_entered.connect() as connection:
        process = await connection.create_process("echo before; read line; echo after $line")
        assert await process.stdout.readline() == "before\n"
        await own_entered.lab.engine.close()
        process.stdin.write("all\n")
        assert await process.stdout.readline() == "after all\n"
    engine = ProcessEngine(own_entered.folder.parents[1])
    await engine.start()
    later = await Lab.over(engine, "any-image")
    later.gangs, own_entered.lab.gangs = own_entered.lab.gangs, []
    await later.adopt([own_entered.task])
    await later.started(own_entered.task)
    assert await engine.ssh_endpoint(own_entered.task) == own_entered.way
    await later.clean()
    await engine.close()


# the ends of sessions


@pytest.mark.parametrize("terminal", [True, False], ids=["a terminal", "pipes"])
async def test_a_client_whose_connection_is_cut_leaves_no_process(
    entered: Entered, marker: str, terminal: bool
) -> None:
    connection = await entered.connect()
    process = await connection.create_process(
        f"sleep 1{marker} & sleep 2{marker}", term_type="vt100" if terminal else None
    )
    await eventually(lambda: len(processes_with(marker)) >= 2, "the command runs")
    connection.abort()
    await process.wait_closed()
    await eventually(lambda: not processes_with(marker), "it is hung up")


async def test_what_is_to_stay_stays_and_is_the_tasks(own_entered: Entered, marker: str) -> None:
    await own_entered.ssh(f"nohup setsid sleep 1{marker} < /dev/null > /dev/null 2>&1 & echo")
    # while it becomes one program after the other it has no command line
    await eventually(lambda: len(processes_with(f"1{marker}")) == 1, "it stays")
    await own_entered.lab.engine.kill(own_entered.task, 0)
    await own_entered.lab.ended(own_entered.task)
    assert not processes_with(marker)


async def test_no_zombies_are_left(own_entered: Entered) -> None:
    for _ in range(5):
        await own_entered.ssh("(sleep 0.01 &) ; exit 1")
    server = own_entered.server()
    await eventually(lambda: not _zombies(server), "all are waited for")
    await eventually(lambda: not _zombies(_parent(server)), "the supervisor waits for the others")


async def test_after_sessions_nothing_of_them_is_open(own_entered: Entered, marker: str) -> None:
    await own_entered.ssh("true")
    server = own_entered.server()
    before = _open_files(server)
    await own_entered.ssh("cat", input=b"x" * 500_000)
    await own_entered.ssh(f"(trap '' HUP; sleep 1{marker}) & exit 2", options=("-tt",))
    for term_type in ("vt100", None):
        connection = await own_entered.connect()
        # one whose input waits, and that does not hear the hang-up
        process = await connection.create_process(
            "trap '' HUP; echo on; sleep 1000", term_type=term_type, encoding=None
        )
        assert (await process.stdout.readline()).startswith(b"on")
        process.stdin.write(b"x" * 1_000_000)
        connection.abort()
        await process.wait_closed()
    await eventually(lambda: _open_files(server) <= before, "all is closed")


async def test_paramiko_runs_commands_and_gets_their_exit_codes(entered: Entered) -> None:
    key = paramiko.Ed25519Key.from_private_key_file(str(entered.keys / "identity"))

    def use() -> tuple[bytes, int]:
        with paramiko.SSHClient() as client:
            client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
            client.connect(
                entered.way.host, entered.way.port, "root", pkey=key, allow_agent=False, look_for_keys=False
            )
            transport = client.get_transport()
            assert transport is not None
            channel = transport.open_session()
            channel.exec_command("cat; exit 6")
            channel.sendall(b"hello")
            channel.shutdown_write()
            return channel.makefile().read(), channel.recv_exit_status()

    assert await asyncio.to_thread(use) == (b"hello", 6)


def _commands(own_entered: Entered, line: str) -> list[int]:
    """Find processes of the task by their command line."""
    below = {process.pid for process in procfs.tree(own_entered.server())}
    return [pid for pid in processes_running(line) if pid in below]


def _state(pid: int) -> str:
    """Return the letter that /proc has for what a process does."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _parent(pid: int) -> int:
    found = procfs.process(pid)
    assert found is not None
    return found.parent


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _zombies(parent: int) -> list[int]:
    """Find children that nobody has waited for."""
    return [
        pid
        for pid in procfs.children(parent)
        if procfs.process(pid) is None and Path(f"/proc/{pid}").exists()
    ]
