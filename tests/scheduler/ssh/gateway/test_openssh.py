"""OpenSSH's own programs over the gateway: what they do with a server directly, they do here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pai_scheduler.testing.ports import free_port
from tests.scheduler.ssh.gateway.gate import Gate, run
from tests.scheduler.ssh.gateway.stand_in import StandIn, TaskServer, write_key

ASKED, ECHOED = b"some words" * 1000, b"SOME WORDS" * 1000


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    """Return a port at which something in the task listens."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data.upper())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Send words to their end; return what comes back, to its end."""
    writer.write(ASKED)
    writer.write_eof()
    async with asyncio.timeout(30):
        answer = await reader.read(-1)
    writer.close()
    return answer


async def ask_echo(port: int, socks: int | None = None) -> bytes:
    """Ask what listens at a port, or by a SOCKS proxy there at another."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if socks is not None:
        host = b"localhost"
        writer.write(b"\5\1\0" + b"\5\1\0\3" + bytes([len(host)]) + host + socks.to_bytes(2, "big"))
        assert await reader.readexactly(2) == b"\5\0"
        assert (await reader.readexactly(10))[1] == 0
    return await exchange(reader, writer)


async def until(true: Callable[[], bool]) -> None:
    """Wait for what another program does."""
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - another program tells nobody
            await asyncio.sleep(0.02)


def listens(port: int) -> bool:
    """Return whether something on this machine listens at that port; nobody connects."""
    lines = Path("/proc/net/tcp").read_text().split("\n")[1:-1]
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines)


def accepts(path: Path) -> bool:
    """Return whether something on this machine listens at that socket: a file is there a little earlier."""
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return any(line[3] == "00010000" and line[7:] == [str(path)] for line in lines)


async def forwarded(process: asyncio.subprocess.Process) -> None:
    """Wait until ssh has heard that a port or a socket is listened to for it: before, nobody may come."""
    assert process.stderr is not None
    async with asyncio.timeout(30):
        while b"remote forward success" not in (line := await process.stderr.readline()):
            assert line


@asynccontextmanager
async def forwarding(gate: Gate, option: str, what: str) -> AsyncIterator[int]:
    """Run ssh with a forwarding of a free port, until it listens and ssh knows."""
    port = free_port()
    command = gate.ssh()
    command[1:1] = ["-N", "-oExitOnForwardFailure=yes", "-oLogLevel=DEBUG1", option, what.format(port)]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        if option == "-R":
            await forwarded(process)
        await until(lambda: listens(port))
        yield port
    finally:
        process.kill()
        await process.wait()


async def test_a_command_has_its_output_its_errors_and_its_exit_code(gate: Gate) -> None:
    ran = await run(*gate.ssh("echo out; echo wrong >&2; exit 7"))
    assert (ran.code, ran.out, ran.error) == (7, b"out\n", "wrong\n")


async def test_every_byte_passes_both_ways_to_the_end_of_the_input(gate: Gate) -> None:
    sent = os.urandom(3_000_000) + bytes(range(256))
    ran = await run(*gate.ssh("cat"), send=sent)
    assert ran.code == 0
    assert ran.out == sent


async def test_a_signal_that_ends_a_command_is_told(gate: Gate) -> None:
    ran = await run(*gate.ssh("kill -TERM $$"))
    assert ran.code == 255
    assert ran.out == b""


async def test_sftp_puts_and_gets(gate: Gate, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(5_000_000))
    batch = f"put {sent} {tmp_path}/there\nget {tmp_path}/there {tmp_path}/back\n"
    command = ["sftp", *gate.options, "-P", str(gate.port), "-b", "-", "alice+train+worker-0@127.0.0.1"]
    ran = await run(*command, send=batch.encode())
    assert ran.code == 0, ran.error
    assert (tmp_path / "back").read_bytes() == sent.read_bytes()


async def test_scp_copies_in_both_of_its_ways(gate: Gate, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(300_000))
    for name, ways in {"old": ["-O"], "new": []}.items():
        there, back = tmp_path / f"{name}-there", tmp_path / f"{name}-back"
        command = ["scp", *ways, *gate.options, "-P", str(gate.port)]
        ran = await run(*command, str(sent), f"alice@127.0.0.1:{there}")
        assert ran.code == 0, ran.error
        ran = await run(*command, f"alice@127.0.0.1:{there}", str(back))
        assert ran.code == 0, ran.error
        assert back.read_bytes() == there.read_bytes() == sent.read_bytes()


async def test_rsync_copies_a_tree(gate: Gate, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for number in range(30):
        file = tree / f"folder {number % 3}" / f"file {number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(10_000))
    shell = " ".join(["ssh", *gate.options, "-p", str(gate.port), "-l", "alice"])
    ran = await run("rsync", "-a", "-e", shell, f"{tree}/", f"127.0.0.1:{tmp_path}/copy/")
    assert ran.code == 0, ran.error
    ran = await run("diff", "-r", str(tree), str(tmp_path / "copy"))
    assert (ran.code, ran.out) == (0, b"")


async def test_what_the_client_says_of_its_language_reaches_the_task(gate: Gate) -> None:
    command = gate.ssh("echo $LC_PAPER $SECRET")
    command[1:1] = ["-oSendEnv=LC_PAPER SECRET"]
    ran = await run(*command, env={"LC_PAPER": "zh_CN.UTF-8", "SECRET": "x"})
    assert ran.out == b"zh_CN.UTF-8\n"


async def test_ports_of_the_task_are_reached_by_l_and_d_and_w(gate: Gate, echo: int) -> None:
    async with forwarding(gate, "-L", f"127.0.0.1:{{}}:localhost:{echo}") as port:
        assert await ask_echo(port) == ECHOED
    async with forwarding(gate, "-D", "127.0.0.1:{}") as port:
        assert await ask_echo(port, socks=echo) == ECHOED
    command = gate.ssh()
    command[1:1] = ["-W", f"127.0.0.1:{echo}"]
    ran = await run(*command, send=ASKED)
    assert ran.out == ECHOED


async def test_another_ssh_goes_through_the_task_by_proxyjump(gate: Gate, task: TaskServer) -> None:
    own = write_key(gate.folder / "job-key", task.identity)
    (gate.folder / "known").write_text(f"[127.0.0.1]:{task.port} {task.host_key.public}\n")
    inner = ["-F", "none", f"-oUserKnownHostsFile={gate.folder}/known", "-i", str(own), "-oBatchMode=yes"]
    proxy = " ".join([*gate.ssh()[:-1], "-W", "%h:%p", "127.0.0.1"])
    command = ["ssh", *inner, f"-oProxyCommand={proxy}", "-p", str(task.port), "root@127.0.0.1", "echo there"]
    ran = await run(*command)
    assert ran.out == b"there\n", ran.error


async def test_the_task_reaches_the_client_by_r_on_its_loopback_only(gate: Gate, echo: int) -> None:
    # the client asks for all addresses
    async with forwarding(gate, "-R", f"0.0.0.0:{{}}:127.0.0.1:{echo}") as port:
        assert await ask_echo(port) == ECHOED
        listening = Path("/proc/net/tcp").read_text().split("\n")[1:-1]
        addresses = [line.split()[1] for line in listening if line.split()[3] == "0A"]
        assert [address for address in addresses if address.endswith(f":{port:04X}")] == [
            f"0100007F:{port:04X}"
        ]


async def test_a_port_that_the_task_chooses_is_told(gate: Gate, echo: int) -> None:
    command = gate.ssh("sleep 60")
    command[1:1] = ["-oLogLevel=INFO", "-R", f"0:127.0.0.1:{echo}"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        said = await process.stderr.readline()
        assert said.startswith(b"Allocated port ")
        assert await ask_echo(int(said.split()[2])) == ECHOED
    finally:
        process.kill()
        await process.wait()


async def test_socket_files_are_forwarded_both_ways(gate: Gate, echo: int, tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    command = gate.ssh()
    command[1:1] = ["-N", "-oLogLevel=DEBUG1", "-L", f"{here}:{there}", "-R", f"{there}:127.0.0.1:{echo}"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        await forwarded(process)
        await until(lambda: accepts(here) and accepts(there))
        reader, writer = await asyncio.open_unix_connection(here)
        assert await exchange(reader, writer) == ECHOED
    finally:
        process.kill()
        await process.wait()


async def test_many_share_one_connection(gate: Gate, service: StandIn, tmp_path: Path) -> None:
    shared = [f"-oControlPath={tmp_path}/shared", "-oControlMaster=auto", "-oControlPersist=yes"]

    def ssh(*arguments: str) -> list[str]:
        return [*gate.ssh()[:-1], *shared, "127.0.0.1", *arguments]

    try:
        assert (await run(*ssh("echo first"))).out == b"first\n"
        # such a client closes what has ended on both sides, before it knows the exit code
        assert (await run(*ssh("exec >&- 2>&-; sleep 0.3; exit 5"))).code == 5
        several = await asyncio.gather(*(run(*ssh(f"echo {number}; exit {number}")) for number in range(9)))
        assert [(ran.out, ran.code) for ran in several] == [(b"%d\n" % number, number) for number in range(9)]
    finally:
        await run(*ssh()[:-1], "-O", "exit", "127.0.0.1")
    assert len(service.questions("login")) == len(service.questions("open")) == 1


async def test_an_agent_is_lent_to_whom_the_client_lends_it(gate: Gate, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    process = await asyncio.create_subprocess_exec("ssh-agent", "-D", "-a", str(agent))
    try:
        await until(lambda: accepts(agent))
        env = {"SSH_AUTH_SOCK": str(agent)}
        assert (await run("ssh-add", str(gate.key), env=env)).code == 0
        for asked, keys in {"-A": 0, "-a": 2}.items():
            command = gate.ssh("ssh-add -l")
            command[1:1] = [asked]
            assert (await run(*command, env=env)).code == keys, asked
    finally:
        process.kill()
        await process.wait()
