"""The gateway's processes: killed, without a scheduler, at a port that is taken."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from pai_scheduler.ssh.gateway.protocol import GatewaySettings
from pai_scheduler.ssh.gateway.supervisor import GatewaySupervisor, PortTakenError
from tests.scheduler.ssh.gateway.gate import Gate, run
from tests.scheduler.ssh.gateway.stand_in import KEYS, StandIn, TaskServer


async def gone(*pids: int) -> None:
    async with asyncio.timeout(60):
        while any(Path(f"/proc/{pid}").exists() for pid in pids):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.02)


async def test_a_killed_process_is_replaced_under_load_and_leaves_nothing_in_the_task(
    gate: Gate, task: TaskServer
) -> None:
    async with asyncio.TaskGroup() as group:
        load = await asyncio.create_subprocess_exec(
            *gate.ssh("echo $$; exec cat > /dev/null"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert load.stdin is not None
        assert load.stdout is not None
        in_task = int(await load.stdout.readline())

        async def send(stream: asyncio.StreamWriter) -> None:
            try:
                while True:
                    stream.write(b"x" * 1_000_000)
                    await stream.drain()
            except ConnectionError:
                return

        group.create_task(send(load.stdin))
        [killed] = gate.supervisor.process_ids
        os.kill(killed, signal.SIGKILL)
        assert await asyncio.wait_for(load.wait(), 60) != 0
    await gone(in_task)
    assert (await run(*gate.ssh("echo in"))).out == b"in\n"
    assert gate.supervisor.process_ids != [killed]
    assert not [pid for pid in task.sessions() if pid == in_task]


async def test_processes_are_replaced_while_somebody_is_in_and_others_come(gate: Gate) -> None:
    before = gate.supervisor.process_ids
    async with gate.connect() as connection, connection.create_process("cat") as process:
        process.stdin.write("before\n")
        assert await process.stdout.readline() == "before\n"
        gate.supervisor.renew()
        # nobody is refused at any moment
        for _ in range(5):
            assert (await run(*gate.ssh("echo in"))).out == b"in\n"
        async with asyncio.timeout(60):
            while set(before) & set(gate.supervisor.process_ids):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
        assert len(gate.supervisor.process_ids) == len(before)
        process.stdin.write("after\n")
        assert await process.stdout.readline() == "after\n"
        assert Path(f"/proc/{before[0]}").exists()
    await gone(*before)


async def test_without_the_scheduler_what_is_open_goes_on_and_nothing_new_is_taken(
    gate: Gate, service: StandIn
) -> None:
    processes = gate.supervisor.process_ids
    async with gate.connect() as connection, connection.create_process("cat") as process:
        process.stdin.write("before\n")
        assert await process.stdout.readline() == "before\n"
        await gate.supervisor.close()
        async with asyncio.timeout(60):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", gate.port)
                except ConnectionRefusedError:
                    break
                writer.close()
                await asyncio.sleep(0.02)
        process.stdin.write("after\n")
        assert await process.stdout.readline() == "after\n"
        # and more on the same connection
        assert (await connection.run("echo more")).stdout == "more\n"
        # another scheduler takes the port meanwhile
        other = GatewaySupervisor(
            GatewaySettings(service.url, service.token, KEYS.gateway_host().private.decode()),
            "127.0.0.1",
            gate.port,
            asked=True,
            processes=1,
        )
        await other.start()
        async with gate.connect() as second:
            assert (await second.run("echo in")).stdout == "in\n"
        await other.close()
    await gone(*processes)
    assert [note["event"] for note in service.notes].count("closed") == 2


async def test_a_scheduler_that_is_killed_is_missed_by_none_that_are_in(
    service: StandIn, tmp_path: Path, task: TaskServer
) -> None:
    gate = Gate(service, tmp_path)
    settings = GatewaySettings(service.url, service.token, KEYS.gateway_host().private.decode())
    program = (
        "import asyncio, sys\n"
        "from pai_scheduler.ssh.gateway.protocol import GatewaySettings\n"
        "from pai_scheduler.ssh.gateway.supervisor import GatewaySupervisor\n"
        "async def main():\n"
        "    settings = GatewaySettings.from_line(sys.stdin.buffer.readline())\n"
        "    supervisor = GatewaySupervisor(settings, '127.0.0.1', 0, processes=2)\n"
        "    await supervisor.start()\n"
        "    print(supervisor.port, flush=True)\n"
        "    await asyncio.sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    scheduler = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert scheduler.stdin is not None
    assert scheduler.stdout is not None
    scheduler.stdin.write(settings.to_line())
    gate.supervisor.port = int(await scheduler.stdout.readline())
    gate.known_hosts.write_text(f"[127.0.0.1]:{gate.port} {KEYS.gateway_host().public}\n")
    children = Path(f"/proc/{scheduler.pid}/task/{scheduler.pid}/children").read_text().split()
    async with gate.connect() as connection, connection.create_process("cat") as process:
        process.stdin.write("before\n")
        assert await process.stdout.readline() == "before\n"
        scheduler.kill()
        await scheduler.wait()
        process.stdin.write("after\n")
        assert await process.stdout.readline() == "after\n"
    await gone(*map(int, children))
    # (a session of the task's server ends a moment after its connection)
    await gone(*task.sessions())


async def test_what_is_secret_is_in_no_command_line_and_no_environment(gate: Gate, service: StandIn) -> None:
    [pid] = gate.supervisor.process_ids
    shown = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    assert service.token.encode() not in shown
    assert b"PRIVATE" not in shown


async def test_a_taken_port_that_was_asked_for_is_an_error_and_another_is_not(service: StandIn) -> None:
    settings = GatewaySettings(service.url, service.token, KEYS.gateway_host().private.decode())
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError):
            await GatewaySupervisor(settings, "127.0.0.1", port, asked=True).start()
        free = GatewaySupervisor(settings, "127.0.0.1", port, processes=1)
        await free.start()
        assert free.port not in (0, port)
        processes = free.process_ids
        await free.close()
        await gone(*processes)


async def test_containers_come_by_an_address_of_their_own_and_nobody_misses_one_that_cannot_be_had(
    service: StandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = GatewaySettings(service.url, service.token, KEYS.gateway_host().private.decode())
    gate = Gate(service, tmp_path)
    await gate.supervisor.start("127.0.0.2")
    first = gate.supervisor.process_ids
    gate.known_hosts.write_text(f"* {KEYS.gateway_host().public}\n")
    at_second = [word.replace("127.0.0.1", "127.0.0.2") for word in gate.ssh("echo in; exec cat")]
    inside = await asyncio.create_subprocess_exec(
        *at_second, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert inside.stdin is not None
    assert inside.stdout is not None
    assert await inside.stdout.readline() == b"in\n"
    assert (await run(*gate.ssh("echo in"))).out == b"in\n"

    # the next scheduler has both addresses, and who is in stays
    await gate.supervisor.close()
    gate.supervisor = GatewaySupervisor(settings, "127.0.0.1", gate.port, asked=True, processes=1)
    await gate.supervisor.start("127.0.0.2")
    assert (await run(*at_second)).out == b"in\n"
    inside.stdin.write(b"still here\n")
    assert await inside.stdout.readline() == b"still here\n"
    inside.stdin.close()
    await inside.wait()
    await gate.close()
    await gone(*first)
    assert "containers do not reach" not in caplog.text

    elsewhere = GatewaySupervisor(settings, "127.0.0.1", 0, processes=1)
    await elsewhere.start("192.0.2.1")
    assert "containers do not reach the SSH gateway at 192.0.2.1" in caplog.text
    processes = elsewhere.process_ids
    await elsewhere.close()
    await gone(*processes)


async def test_a_process_that_cannot_run_is_tried_again_more_and_more_rarely(
    service: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    broken = GatewaySupervisor(
        GatewaySettings(service.url, service.token, "no key"), "127.0.0.1", 0, processes=1
    )
    await broken.start()
    async with asyncio.timeout(60):
        while sum("another one" in record.message for record in caplog.records) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await broken.close()
    pauses = [
        record.args[1]
        for record in caplog.records
        if "another one starts" in record.message and isinstance(record.args, tuple)
    ]
    assert pauses[:3] == [0.1, 0.2, 0.4]


async def test_several_processes_share_the_port(service: StandIn, tmp_path: Path) -> None:
    gate = Gate(service, tmp_path)
    gate.supervisor = GatewaySupervisor(
        GatewaySettings(service.url, service.token, KEYS.gateway_host().private.decode()),
        "127.0.0.1",
        0,
        processes=2,
    )
    await gate.start()
    try:
        one, two = gate.supervisor.process_ids
        os.kill(one, signal.SIGSTOP)
        assert (await run(*gate.ssh("echo in"))).out == b"in\n"
        os.kill(one, signal.SIGCONT)
        os.kill(two, signal.SIGSTOP)
        assert (await run(*gate.ssh("echo in"))).out == b"in\n"
        os.kill(two, signal.SIGCONT)
    finally:
        await gate.close()
