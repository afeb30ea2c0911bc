"""Ports chosen on the process engine are free when a gang starts, and every task is told the same."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

from pai_scheduler.cluster.placement import PORT_RANGE
from tests.scheduler.service.house import ALICE, open_house


async def test_a_gang_starts_at_once_on_ports_that_no_other_program_holds(tmp_path: Path) -> None:
    with ExitStack() as held:
        for port in PORT_RANGE[:12:2]:
            with suppress(OSError):  # a program of this machine has it already
                held.enter_context(socket.create_server(("127.0.0.1", port)))
        async with open_house(tmp_path) as house:
            command = "echo $PAI_TASK_ROLE_worker_HOST_LIST $PAI_CONTAINER_SSH_PORT; exec sleep 1000"
            job = await house.begin("gang", tasks=4, command=command)
            assert job.attempt is not None
            assert job.attempt.number == 0
            ports = {task.ref.index: task.assignment.ports for task in job.attempt.tasks.values()}
            numbers = [port for of_task in ports.values() for label in of_task.values() for port in label]
            assert not {*PORT_RANGE[:12:2]} & {*numbers}
            hosts = ",".join(f"127.0.0.1:{ports[index]['http'][0]}" for index in range(4))
            for index in range(4):
                task = await house.service.tasks.find(ALICE, "alice", "gang", "worker", index, None)
                log = house.service.tasks.log(task)
                async with asyncio.timeout(60):
                    while not log.size("stdout"):  # noqa: ASYNC110 - another program writes it
                        await asyncio.sleep(0.02)
                said = log.read("stdout", 0, 1000).decode()
                assert said == f"{hosts} {ports[index]['ssh'][0]}\n"
            kinds = [told.entry.type for told in await house.service.job_events.read(ALICE, "alice", "gang")]
            assert kinds.count("ports-changed") >= 1
