"""Very many failed log-ins from one place: refused, logged in a few lines, and nobody is kept out."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import asyncssh

from pai_scheduler.ssh.gateway.server import MOST_OF_A_PLACE
from tests.scheduler.ssh.gateway.gate import Gate, run

#: of this machine too, and another address than everybody else's
ATTACKER = "127.0.0.66"
GUESSES, THOROUGH_GUESSES = 300, 1500


async def log_in_from(address: str, gate: Gate, token: str) -> str:
    """Log in as alice with a token; return what a command says."""
    async with asyncssh.connect(
        "127.0.0.1", gate.port, local_addr=(address, 0), username="alice", password=token, client_keys=None,
        known_hosts=str(gate.known_hosts), config=None, agent_path=None,
    ) as connection:  # fmt: skip
        return str((await connection.run("echo in", check=True)).stdout)


async def test_guesses_keep_nobody_out_not_even_with_the_same_name_and_address(
    gate: Gate, thorough: bool
) -> None:
    guesses = THOROUGH_GUESSES if thorough else GUESSES
    async with gate.connect() as before, before.create_process("cat") as process:
        attack = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("guesser.py")),
            str(gate.port),
            ATTACKER,
            str(guesses),
            stdout=asyncio.subprocess.PIPE,
        )
        assert attack.stdout is not None
        served = 0
        try:
            while attack.returncode is None:
                # who is in works on; others come in, from elsewhere and from the same address
                process.stdin.write("here\n")
                assert await asyncio.wait_for(process.stdout.readline(), 20) == "here\n"
                assert (await run(*gate.ssh("echo in"))).out == b"in\n"
                neighbour = gate.ssh("echo in")
                neighbour[1:1] = ["-b", ATTACKER]
                assert (await run(*neighbour)).out == b"in\n"
                assert await log_in_from(ATTACKER, gate, "token-of-alice") == "in\n"
                served += 1
                await asyncio.sleep(0.5)
        finally:
            if attack.returncode is None:
                attack.kill()
        assert int(await attack.stdout.read()) >= guesses
    assert served
    await gate.close()
    assert "login refused from 127.0.0.66: password for 'alice'" in gate.log()
    assert gate.log().count("login refused") < 100


async def test_a_silent_connection_keeps_nobody_out(gate: Gate) -> None:
    silent = [
        await asyncio.open_connection("127.0.0.1", gate.port, local_addr=(ATTACKER, 0))
        for _ in range(MOST_OF_A_PLACE * 2)
    ]
    try:
        neighbour = gate.ssh("echo in")
        neighbour[1:1] = ["-b", ATTACKER]
        assert (await run(*neighbour)).out == b"in\n"
        assert (await run(*gate.ssh("echo in"))).out == b"in\n"
        # the first of them have made room
        first, _ = silent[0]
        assert (await asyncio.wait_for(first.read(), 30)).startswith(b"SSH-2.0-")
    finally:
        for _, writer in silent:
            writer.close()


async def test_an_unproven_client_cannot_open_anything(gate: Gate) -> None:
    class Impatient(asyncssh.SSHClientConnection):
        """Opens a session where it would log in."""

        def try_next_auth(self, **_: object) -> None:
            self._auth_complete = True
            self.send_packet(90, b"\0\0\0\7session" + b"\0\0\0\0" + b"\0\1\0\0" * 2)

    options = asyncssh.SSHClientConnectionOptions(
        username="alice", client_keys=None, known_hosts=None, config=None, agent_path=None
    )
    loop = asyncio.get_running_loop()
    options.waiter = loop.create_future()
    _, client = await loop.create_connection(
        lambda: Impatient(loop, options, wait="auth"), "127.0.0.1", gate.port
    )
    await asyncio.wait_for(client.wait_closed(), 30)
    assert (await run(*gate.ssh("echo in"))).out == b"in\n"
