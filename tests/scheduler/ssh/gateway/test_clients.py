"""Other clients that nobody here wrote: PuTTY's, lftp, paramiko; asyncssh for what commands cannot do."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import paramiko
import pytest

from tests.scheduler.ssh.gateway.gate import Gate, run
from tests.scheduler.ssh.gateway.stand_in import KEYS, StandIn, TaskServer

LOGIN = "alice+train+worker-0"


@pytest.fixture
async def connected(gate: Gate) -> AsyncIterator[asyncssh.SSHClientConnection]:
    async with gate.connect() as connection:
        yield connection


async def putty_key(gate: Gate) -> str:
    key = gate.folder / "key.ppk"
    ran = await run("puttygen", str(gate.key), "-O", "private", "-o", str(key))
    assert ran.code == 0, ran.error
    return str(key)


async def host_key() -> str:
    ran = await run("ssh-keygen", "-l", "-f", "-", send=KEYS.gateway_host().public.encode())
    return ran.out.split()[1].decode()


async def test_putty_runs_a_command_and_copies_files(gate: Gate, tmp_path: Path) -> None:
    common = ["-batch", "-i", await putty_key(gate), "-P", str(gate.port), "-hostkey", await host_key()]
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(2_000_000))
    ran = await run("plink", *common, f"{LOGIN}@127.0.0.1", "echo out; echo wrong >&2; exit 3")
    assert (ran.code, ran.out, ran.error) == (3, b"out\n", "wrong\n")
    batch = tmp_path / "batch"
    batch.write_text(f"put {sent} {tmp_path}/there\nget {tmp_path}/there {tmp_path}/back\n")
    ran = await run("psftp", *common, "-b", str(batch), f"{LOGIN}@127.0.0.1")
    assert ran.code == 0, ran.error
    assert (tmp_path / "back").read_bytes() == sent.read_bytes()


async def test_lftp_mirrors_a_folder(gate: Gate, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(10):
        (tree / str(number)).write_bytes(os.urandom(20_000))
    program = " ".join(["ssh", "-a", "-x", *gate.options])
    script = (
        f"set sftp:connect-program '{program}'; set sftp:auto-confirm yes; "
        f"open -u '{LOGIN},' -p {gate.port} sftp://127.0.0.1; mirror -R -P 3 {tree} {tmp_path}/copy"
    )
    ran = await run("lftp", "-c", script)
    assert ran.code == 0, ran.error
    assert (await run("diff", "-r", str(tree), str(tmp_path / "copy"))).code == 0


async def test_paramiko_logs_in_with_a_token_and_copies_files(gate: Gate, tmp_path: Path) -> None:
    sent = os.urandom(1_000_000)

    def use() -> tuple[int, bytes, bytes]:
        with paramiko.SSHClient() as client:
            client.load_host_keys(str(gate.known_hosts))
            client.connect(
                "127.0.0.1",
                gate.port,
                LOGIN,
                "token-of-alice",
                allow_agent=False,
                look_for_keys=False,
            )
            _, out, _ = client.exec_command("echo out; exit 5")
            text = out.read()
            with client.open_sftp() as sftp:
                sftp.putfo(io.BytesIO(sent), f"{tmp_path}/there")
                back = io.BytesIO()
                sftp.getfo(f"{tmp_path}/there", back)
            return out.channel.recv_exit_status(), text, back.getvalue()

    assert await asyncio.to_thread(use) == (5, b"out\n", sent)


async def test_a_terminal_has_its_size_and_is_resized(connected: asyncssh.SSHClientConnection) -> None:
    async with connected.create_process(
        "stty size; trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.05; done",
        term_type="xterm-256color",
        term_size=(91, 33),
    ) as process:
        assert (await process.stdout.readline()).strip() == "33 91"
        assert (await process.stdout.readline()).strip() == "ready"
        process.change_terminal_size(120, 40)
        assert (await process.stdout.readline()).strip() == "40 120"
        assert (await process.wait()).exit_status == 4


async def test_keys_are_echoed_in_a_shell_and_its_end_is_the_last_exit_code(
    connected: asyncssh.SSHClientConnection,
) -> None:
    async with connected.create_process(term_type="xterm") as process:
        process.stdin.write("echo $((6 * 7)); exit 9\n")
        text = await process.stdout.read()
        assert "42\r\n" in text.replace("6 * 7", "")
        assert (await process.wait()).exit_status == 9


async def test_the_signal_that_ended_a_command_is_named(connected: asyncssh.SSHClientConnection) -> None:
    ended = await connected.run("kill -SEGV $$")
    assert ended.exit_signal is not None
    assert ended.exit_signal[0] == "SEGV"


async def test_signals_and_breaks_are_passed_on(gate: Gate, service: StandIn, task: TaskServer) -> None:
    # OpenSSH's server takes neither from root; the process engine's does
    async def tell(process: asyncssh.SSHServerProcess[str]) -> None:
        for _ in range(2):
            try:
                await process.stdin.readline()
            except asyncssh.SignalReceived as received:
                process.stdout.write(f"{received.signal}\n")
            except asyncssh.BreakReceived as received:
                process.stdout.write(f"break of {received.msec}\n")
        process.exit_with_signal("USR1", core_dumped=True, msg="so it ended")

    keys = asyncssh.import_authorized_keys(task.identity.public)
    host_key = asyncssh.import_private_key(task.host_key.private)
    async with asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[host_key], authorized_client_keys=keys, process_factory=tell
    ) as server:
        service.target = {**task.target(), "port": server.get_port()}
        async with gate.connect() as connection, connection.create_process() as process:
            process.send_signal("TERM")
            assert await process.stdout.readline() == "TERM\n"
            process.send_break(1500)
            assert await process.stdout.readline() == "break of 1500\n"
            assert (await process.wait()).exit_signal == ("USR1", True, "so it ended", "en-US")


async def test_the_end_of_the_input_is_not_the_end_of_the_output(
    connected: asyncssh.SSHClientConnection,
) -> None:
    ran = await connected.run("cat; echo more; echo wrong >&2", input="words\n")
    assert (ran.stdout, ran.stderr) == ("words\nmore\n", "wrong\n")


async def test_a_hundred_terminals_are_open_at_once(
    connected: asyncssh.SSHClientConnection, service: StandIn
) -> None:
    processes = [await connected.create_process(term_type="xterm") for _ in range(100)]
    for number, process in enumerate(processes):
        process.stdin.write(f"echo $(( {number} + 1000 )); exit {number % 50}\n")
    for number, process in enumerate(processes):
        text = await process.stdout.read()
        assert f"{number + 1000}\r\n" in text
        assert (await process.wait()).exit_status == number % 50
    assert len(service.questions("open")) == 1


async def test_one_connection_may_open_as_many_channels_one_after_the_other_as_it_likes(
    connected: asyncssh.SSHClientConnection, service: StandIn
) -> None:
    for _ in range(11):
        streams = await asyncio.gather(
            *(connected.open_connection("127.0.0.1", service.port) for _ in range(100))
        )
        for _, writer in streams:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in streams))
