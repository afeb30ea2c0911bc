"""Who gets into a task of the process engine, what is forwarded, and files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from pai_scheduler.engine.process import ssh_server
from pai_scheduler.testing.lab import eventually
from pai_scheduler.testing.ports import free_port
from pai_scheduler.testing.ssh_tasks import KEYS
from tests.scheduler.ssh.runtime.process.entered import PATIENCE, Enter, Entered

PYTHON = sys.executable
#: Answers each connection with a word.
SERVER = (
    f"{PYTHON} -c 'import socket, sys\n"
    'kind = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET\n'
    "listener = socket.create_server((sys.argv[1], int(sys.argv[2])), family=kind)\n"
    "while True:\n"
    "    connection, _ = listener.accept()\n"
    '    connection.sendall(b"hello from the task")\n'
    "    connection.close()'"
)


# who gets in


async def test_another_jobs_key_does_not_open_it(entered: Entered) -> None:
    with pytest.raises(asyncssh.PermissionDenied):
        await entered.connect(identity=KEYS.identity("another job"))


@pytest.mark.parametrize("user", ["alice", "", "Root", "root1", "$(id)", "x" * 1000])
async def test_another_user_name_does_not_open_it(entered: Entered, user: str) -> None:
    with pytest.raises((asyncssh.PermissionDenied, asyncssh.IllegalUserName)):
        await entered.connect(user=user)


async def test_no_password_opens_it(entered: Entered) -> None:
    options = (
        "-o",
        "PubkeyAuthentication=no",
        "-o",
        "PreferredAuthentications=none,password,keyboard-interactive",
    )
    done = await entered.ssh("id", options=options)
    assert done.returncode == 255
    assert b"Permission denied (publickey)" in done.stderr


async def test_it_is_known_by_the_jobs_host_key(entered: Entered) -> None:
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        await entered.connect(host=KEYS.host("another job"))


async def test_silent_clients_keep_nobody_out(entered: Entered) -> None:
    with contextlib.ExitStack() as silent:
        for _ in range(200):
            silent.enter_context(socket.create_connection((entered.way.host, entered.way.port)))
        assert (await entered.ssh("echo in")).stdout == b"in\n"


# forwarding


@contextlib.contextmanager
def listening(address: str = "127.0.0.1") -> Iterator[int]:
    """Listen as a program that is no task's, such as the scheduler."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        yield server.getsockname()[1]


async def _first_words(connection: asyncssh.SSHClientConnection, host: str, port: int) -> bytes:
    reader, _ = await connection.open_connection(host, port)
    return await reader.read()


async def test_a_port_on_which_the_task_listens_is_forwarded_to(enter: Enter) -> None:
    port = free_port()
    entered = await enter(f"{SERVER} 127.0.0.1 {port}")
    async with await entered.connect() as connection:
        await _until_it_listens(connection, "localhost", port)
        for host in ("localhost", "127.0.0.1"):
            assert await _first_words(connection, host, port) == b"hello from the task"


async def test_what_a_session_started_listens_for_the_task_too(entered: Entered) -> None:
    port = free_port()
    async with await entered.connect() as connection, connection.create_process(f"{SERVER} ::1 {port}"):
        await _until_it_listens(connection, "::1", port)
        assert await _first_words(connection, "localhost", port) == b"hello from the task"


async def _until_it_listens(connection: asyncssh.SSHClientConnection, host: str, port: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await _first_words(connection, host, port)
            except asyncssh.ChannelOpenError as error:
                if error.code != asyncssh.OPEN_CONNECT_FAILED:
                    raise
                await asyncio.sleep(0.05)
            else:
                return


async def test_a_port_that_the_task_was_given_is_forwarded_to_what_listens_there(enter: Enter) -> None:
    port = free_port()
    entered = await enter(ports={"web": (port,)})
    with socket.create_server(("127.0.0.1", port)) as server:
        async with await entered.connect() as connection:
            _, writer = await connection.open_connection("localhost", port)
            accepted, _ = await asyncio.to_thread(server.accept)
            accepted.close()
            writer.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "LOCALHOST"])
async def test_ports_of_others_on_loopback_are_refused(entered: Entered, host: str) -> None:
    with listening() as port:
        async with await entered.connect() as connection:
            with pytest.raises(asyncssh.ChannelOpenError, match="is not of this task") as refused:
                await connection.open_connection(host, port)
            assert refused.value.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED


async def test_a_port_that_the_task_has_at_another_address_opens_nothing_of_others(enter: Enter) -> None:
    with listening() as port:
        entered = await enter(f"{SERVER} 127.0.0.2 {port}")
        async with await entered.connect() as connection:
            await asyncio.to_thread(_hears, "127.0.0.2", port)
            with pytest.raises(asyncssh.ChannelOpenError, match="is not of this task"):
                await connection.open_connection("localhost", port)


def _hears(address: str, port: int) -> None:
    for _ in range(PATIENCE * 20):
        with contextlib.suppress(OSError), socket.create_connection((address, port)):
            return
        time.sleep(0.05)
    raise AssertionError(f"nobody listens on {address}:{port}")


@pytest.mark.parametrize(
    "host",
    [
        *(
            "169.254.169.254",
            "example.org",
            "0.0.0.0",  # noqa: S104
            "::",
            "127.0.0.2",
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
        ),
        *("::ffff:127.0.0.1", "localhost.", " localhost", "localhost\0", "", "ü", "[::1]", "::1%lo"),
    ],
)
async def test_hosts_other_than_the_task_are_refused(entered: Entered, host: str) -> None:
    with listening() as port:
        async with await entered.connect() as connection:
            with pytest.raises(asyncssh.ChannelOpenError) as refused:
                await connection.open_connection(host, port)
            assert refused.value.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED


@pytest.mark.parametrize("port", [0, 65536, 2**32 - 1])
async def test_a_port_that_cannot_be_is_refused_calmly(entered: Entered, port: int) -> None:
    async with await entered.connect() as connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_connection("localhost", port)
        assert (await connection.run("echo on")).stdout == "on\n"


async def test_a_unix_socket_of_the_task_is_forwarded_to_and_no_other(
    entered: Entered, tmp_path: Path
) -> None:
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print(1)\n"
        'while True: c, _ = s.accept(); c.sendall(b"by path"); c.close()'
    )
    own, others = str(tmp_path / "own"), str(tmp_path / "others")
    async with await entered.connect() as connection:
        process = await connection.create_process(f"{PYTHON} -uc '{program}' {own}")
        await process.stdout.readline()
        reader, _ = await connection.open_unix_connection(own)
        assert await reader.read() == b"by path"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(others)
            server.listen()
            with pytest.raises(asyncssh.ChannelOpenError, match="nothing in the task listens"):
                await connection.open_unix_connection(others)


async def test_ssh_forwards_ports_both_ways(enter: Enter) -> None:
    port, here, there = free_port(), free_port(), free_port()
    entered = await enter(f"{SERVER} 127.0.0.1 {port}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        back = server.getsockname()[1]
        forward = ("-L", f"127.0.0.1:{here}:localhost:{port}", "-R", f"{there}:127.0.0.1:{back}")
        options = (*forward, "-o", "ExitOnForwardFailure=yes")
        client = entered.begin(*entered.line("echo ready; sleep 1000", options=options))
        assert client.stdout is not None
        assert await asyncio.to_thread(client.stdout.readline) == b"ready\n"
        await asyncio.to_thread(_hears, "127.0.0.1", port)
        with socket.create_connection(("127.0.0.1", here), PATIENCE) as connection:
            assert await asyncio.to_thread(connection.recv, 100) == b"hello from the task"
        with socket.create_connection(("127.0.0.1", there), PATIENCE):
            accepted, _ = await asyncio.to_thread(server.accept)
            accepted.close()


@pytest.mark.parametrize("asked", ["1023", "192.0.2.1:40000", "169.254.1.1:0"])
async def test_ports_that_no_program_of_the_task_could_have_are_not_listened_on(
    entered: Entered, asked: str
) -> None:
    options = ("-o", "ExitOnForwardFailure=yes", "-R", f"{asked}:127.0.0.1:1")
    done = await entered.ssh("true", options=options)
    assert done.returncode == 255
    assert b"remote port forwarding failed" in done.stderr


@pytest.mark.parametrize("asked", ["", "*", "0.0.0.0"])  # noqa: S104
async def test_what_is_asked_for_everywhere_is_listened_for_on_loopback(entered: Entered, asked: str) -> None:
    port = free_port()
    async with (
        await entered.connect() as connection,
        await connection.forward_remote_port(asked, port, "127.0.0.1", 1),
    ):
        assert _listens("127.0.0.1", port)
        assert not _listens(_own_address(), port)


def _listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), PATIENCE).close()
    except OSError:
        return False
    return True


def _own_address() -> str:
    """Return an address of this machine that is not loopback's; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.2"


@pytest.fixture
def agent(entered: Entered, tmp_path: Path) -> Iterator[Path]:
    """Run an agent that has the job's key."""
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        # it says where it listens once it does
        process.stdout.readline()
        env = {**os.environ, "SSH_AUTH_SOCK": str(path)}
        subprocess.run(["ssh-add", "-q", entered.keys / "identity"], env=env, check=True)
        yield path
    finally:
        process.terminate()
        process.communicate()


async def test_the_clients_agent_is_reached_from_the_task_when_it_is_lent(
    entered: Entered, agent: Path
) -> None:
    lent = ("-A", "-o", f"IdentityAgent={agent}")
    assert b"ED25519" in (await entered.ssh("ssh-add -l", options=lent)).stdout
    kept = ("-a", "-o", f"IdentityAgent={agent}")
    assert (await entered.ssh("ssh-add -l", options=kept)).returncode == 2


# files


async def test_sftp_starts_in_the_tasks_folder(entered: Entered, tmp_path: Path) -> None:
    (tmp_path / "local file").write_bytes(os.urandom(3_000_000))
    batch = (
        f'pwd\nmkdir sub\nput "{tmp_path}/local file" sub/there\nls -l sub\nget sub/there "{tmp_path}/back"\n'
    )
    port = ("-P", str(entered.way.port))
    done = await entered.run(
        "sftp", *entered.options, *port, "-b", "-", f"root@{entered.way.host}", input=batch.encode()
    )
    assert done.returncode == 0, done.stderr
    assert f"Remote working directory: {entered.work}".encode() in done.stdout
    assert (tmp_path / "back").read_bytes() == (tmp_path / "local file").read_bytes()
    assert (entered.work / "sub" / "there").stat().st_size == 3_000_000


@pytest.mark.parametrize("protocol", [[], ["-O"]], ids=["sftp", "old"])
async def test_scp_copies_both_ways_with_both_protocols(
    entered: Entered, tmp_path: Path, protocol: list[str]
) -> None:
    source = tmp_path / "a folder"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "run.sh").write_bytes(b"#!/bin/sh\n\xff\0")
    (source / "deep" / "run.sh").chmod(0o755)
    scp = ("scp", *protocol, "-q", "-r", "-p", *entered.options, "-P", str(entered.way.port))
    done = await entered.run(*scp, str(source), f"root@{entered.way.host}:there")
    assert done.returncode == 0, done.stderr
    assert (entered.work / "there" / "deep" / "run.sh").stat().st_mode & 0o777 == 0o755
    done = await entered.run(*scp, f"root@{entered.way.host}:there", str(tmp_path / "back"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "back" / "deep" / "run.sh").read_bytes() == b"#!/bin/sh\n\xff\0"


async def test_rsync_copies_what_has_changed(entered: Entered, tmp_path: Path) -> None:
    source = tmp_path / "project"
    source.mkdir()
    (source / "train.py").write_text("print('one')\n")
    (source / "old.py").write_text("old\n")
    through = " ".join(["ssh", *entered.options, "-p", str(entered.way.port)])
    rsync = ("rsync", "-a", "--delete", "-i", "-e", through, f"{source}/", f"root@{entered.way.host}:project")
    assert (await entered.run(*rsync)).returncode == 0
    (source / "old.py").unlink()
    (source / "train.py").write_text("print('two and more')\n")
    done = await entered.run(*rsync)
    assert done.returncode == 0, done.stderr
    assert b"*deleting   old.py" in done.stdout
    assert (entered.work / "project" / "train.py").read_text() == "print('two and more')\n"


# how it ends


async def test_clients_are_cut_off_when_the_task_ends(own_entered: Entered, agent: Path) -> None:
    shell = own_entered.begin(*own_entered.line(options=("-tt", "-A", "-o", f"IdentityAgent={agent}")))
    assert shell.stdin is not None
    shell.stdin.write(b"echo $SSH_AUTH_SOCK > in; mv in inside\n")
    shell.stdin.flush()
    await eventually((own_entered.work / "inside").exists, "the shell is open")
    agent_socket = Path((own_entered.work / "inside").read_text().strip())
    assert agent_socket.exists()
    await own_entered.lab.engine.kill(own_entered.task, 0)
    await own_entered.lab.ended(own_entered.task)
    _, told = await asyncio.to_thread(shell.communicate, timeout=PATIENCE)
    assert shell.returncode == 255
    assert b"closed by remote host" in told
    assert not agent_socket.exists()


async def test_one_that_nobody_uses_goes_and_one_that_is_used_stays(own_entered: Entered) -> None:
    """It is started by hand for this: the engine's waits for minutes."""
    os.kill(own_entered.server(), signal.SIGKILL)
    await eventually(lambda: not ssh_server.look(own_entered.folder).alive, "it is dead")
    program = [PYTHON, "-m", "pai_scheduler.ssh.runtime.process", str(own_entered.folder), "--idle-seconds"]
    process = await asyncio.create_subprocess_exec(*program, "2")
    listens = (True, {"port": own_entered.way.port})
    await eventually(lambda: ssh_server.look(own_entered.folder) == listens, "it listens")
    async with await own_entered.connect() as connection:
        # longer than it would wait
        assert (await connection.run("sleep 3; echo still")).stdout == "still\n"
    async with asyncio.timeout(PATIENCE):
        assert await process.wait() == 0
    assert (await own_entered.lab.engine.ssh_endpoint(own_entered.task)) == own_entered.way
    assert (await own_entered.ssh("echo again")).stdout == b"again\n"
