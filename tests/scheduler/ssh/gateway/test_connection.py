"""Who gets in, and who does not: keys, tokens, names with anything in them, impatience."""

from __future__ import annotations

import asyncio
import os
import socket

import asyncssh
import pytest
from asyncssh.packet import String

from pai_scheduler.ssh.keys import KeyPair
from tests.scheduler.ssh.gateway.gate import Gate, run
from tests.scheduler.ssh.gateway.stand_in import StandIn, write_key


async def try_password(gate: Gate, login: str, password: str) -> None:
    async with asyncssh.connect(
        "127.0.0.1",
        gate.port,
        username=login,
        password=password,
        client_keys=None,
        known_hosts=str(gate.known_hosts),
        config=None,
        agent_path=None,
    ):
        pass


async def test_a_key_is_asked_about_once_for_one_login(gate: Gate, service: StandIn) -> None:
    assert (await run(*gate.ssh("true"))).code == 0
    [question] = service.questions("login")
    public = gate.key.with_suffix(".pub").read_text().strip()
    assert question == {
        "login": "alice+train+worker-0",
        "method": "publickey",
        "credential": public,
        "peer": "127.0.0.1",
    }
    [opened] = service.questions("open")
    assert opened["session_token"] == "session token of alice+train+worker-0"


async def test_a_token_is_taken_as_password_and_at_the_keyboard(gate: Gate, service: StandIn) -> None:
    await try_password(gate, "alice", "token-of-alice")
    helper = gate.folder / "ask"
    helper.write_text("#!/bin/sh\necho token-of-alice\n")
    helper.chmod(0o700)
    command = gate.ssh("echo in")
    command[1:1] = ["-oBatchMode=no", "-oPreferredAuthentications=keyboard-interactive"]
    ran = await run(*command, env={"SSH_ASKPASS": str(helper), "SSH_ASKPASS_REQUIRE": "force"})
    assert (ran.code, ran.out) == (0, b"in\n")
    assert [question["method"] for question in service.questions("login")] == ["password", "password"]


async def test_strangers_are_refused_before_any_task_is_looked_for(gate: Gate, service: StandIn) -> None:
    stranger = write_key(gate.folder / "stranger", KeyPair.from_seed(b"s" * 32))
    command = [argument.replace(str(gate.key), str(stranger)) for argument in gate.ssh("true")]
    ran = await run(*command)
    assert ran.code == 255
    assert "Permission denied" in ran.error
    # alice's token, another user's name
    with pytest.raises(asyncssh.PermissionDenied):
        await try_password(gate, "bob", "token-of-alice")
    assert service.questions("open") == []


async def test_a_key_that_one_knows_and_does_not_have_opens_nothing(gate: Gate, service: StandIn) -> None:
    class Claims(asyncssh.SSHKeyPair):
        """Alice's public key, signed for with another."""

        def __init__(self) -> None:
            alice = asyncssh.read_public_key(gate.key.with_suffix(".pub"))
            self._other = asyncssh.generate_private_key("ssh-ed25519")
            super().__init__(
                b"ssh-ed25519", b"ssh-ed25519", (b"ssh-ed25519",), (b"ssh-ed25519",), alice.public_data, None
            )

        def sign(self, data: bytes) -> bytes:
            return self._other.sign(data, b"ssh-ed25519")

    with pytest.raises(asyncssh.PermissionDenied):
        await asyncssh.connect(
            "127.0.0.1",
            gate.port,
            username="alice",
            client_keys=[Claims()],
            known_hosts=str(gate.known_hosts),
            config=None,
            agent_path=None,
        )
    # it was worth asking about
    assert len(service.questions("login")) == 1
    assert service.questions("open") == []


async def test_the_key_that_signed_is_whose_session_token_is_used(gate: Gate, service: StandIn) -> None:
    # both are alice's; the first one offered is known, and never signed with
    first = KeyPair.from_seed(b"f" * 32)
    service.users[first.public] = "alice"
    offered = gate.folder / "offered.pub"
    offered.write_text(f"{first.public}\n")
    command = gate.ssh("echo in")
    command[1:1] = ["-i", str(offered)]
    ran = await run(*command)
    assert ran.out == b"in\n"
    assert service.questions("login")[-1]["credential"] != first.public


NAMES = [
    b"$(touch /tmp/x)",
    b"a;b|c`d`",
    b"..",
    b"../../etc",
    b"alice\n2026 ERROR forged",
    b"alice\r\n",
    b"\x1b[2J",
    b"'\"\\",
    b"+",
    b"a+b+c+d+e",
    b" ",
    "张三".encode(),
    b"\xff\xfe",
    b"a\0b",
    b"x" * 1000,
    b"x" * 2000,
    b"x" * 1_000_000,
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:30])
async def test_a_name_may_have_anything_in_it_and_is_refused_calmly(
    gate: Gate, service: StandIn, name: bytes
) -> None:
    class Client(asyncssh.SSHClientConnection):
        """Sends that name, whatever the rules say."""

        def _get_userauth_request_packet(self, method: bytes, args: tuple[bytes, ...]) -> bytes:
            return b"".join((String(name), String(b"ssh-connection"), String(method), *args))

    options = asyncssh.SSHClientConnectionOptions(
        username="x",
        password="token-of-nobody",
        client_keys=None,
        known_hosts=None,
        config=None,
        agent_path=None,
    )
    loop = asyncio.get_running_loop()
    options.waiter = loop.create_future()
    _, client = await loop.create_connection(
        lambda: Client(loop, options, wait="auth"), "127.0.0.1", gate.port
    )
    with pytest.raises((asyncssh.Error, OSError)):
        await asyncio.wait_for(options.waiter, 30)
    client.abort()
    assert all(question["login"].encode() == name for question in service.questions("login"))
    assert (await run(*gate.ssh("echo in"))).out == b"in\n"
    await gate.close()
    log = gate.log()
    assert "\x1b" not in log
    assert not any(line.startswith("2026 ERROR") for line in log.splitlines())
    assert "Traceback" not in log


async def test_one_connection_may_not_try_for_ever(gate: Gate, service: StandIn) -> None:
    tried = 0

    class Guesses(asyncssh.SSHClient):
        def password_auth_requested(self) -> str:
            nonlocal tried
            tried += 1
            return f"guess {tried}"

    with pytest.raises(asyncssh.Error):
        await asyncio.wait_for(
            asyncssh.connect(
                "127.0.0.1",
                gate.port,
                username="alice",
                client_factory=Guesses,
                client_keys=None,
                known_hosts=str(gate.known_hosts),
                config=None,
                agent_path=None,
                kbdint_auth=False,
            ),
            60,
        )
    assert 3 <= len(service.questions("login")) <= 6
    assert tried <= 8


async def test_a_client_that_does_not_speak_ssh_is_cut_off(gate: Gate) -> None:
    for said in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        os.urandom(100_000),
        b"SSH-2.0-x\r\n" + b"\xff" * 100_000,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
        writer.write(said)
        await asyncio.wait_for(_drained(reader), 30)
        writer.close()
    assert (await run(*gate.ssh("echo in"))).out == b"in\n"


async def _drained(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(65536):
            pass
    except ConnectionError:
        return


async def test_when_the_clients_connection_breaks_nothing_of_theirs_is_left_in_the_task(
    gate: Gate, service: StandIn
) -> None:
    client = await asyncssh.connect(
        "127.0.0.1",
        gate.port,
        username="alice",
        client_keys=[str(gate.key)],
        known_hosts=str(gate.known_hosts),
        config=None,
        agent_path=None,
    )
    process = await client.create_process("echo $$; exec cat", term_type="xterm")
    pid = int(await process.stdout.readline())
    taken = client.get_extra_info("socket")
    # RST, as from a machine that was switched off and on
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.abort()
    async with asyncio.timeout(30):
        while os.path.exists(f"/proc/{pid}"):  # noqa: ASYNC110, PTH110 - the kernel tells nobody
            await asyncio.sleep(0.02)
    await service.until(lambda: [note["event"] for note in service.notes] == ["opened", "closed"])
