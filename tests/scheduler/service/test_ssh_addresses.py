"""The SSH addresses of a job's tasks, asked of an engine whose tasks have machines of their own."""

from __future__ import annotations

import asyncio

import pytest

from pai_scheduler.engine.protocol import NoSshEndpointError, SshEndpoint
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.service import ssh_access as module
from pai_scheduler.service.ssh_access import ssh_addresses
from tests.scheduler.service.house import House


async def test_a_task_whose_engine_says_nothing_keeps_nobody_waiting(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await house.begin("gang", tasks=3)

    async def ssh_endpoint(task: TaskRef) -> SshEndpoint:
        if task.index == 0:
            await asyncio.Event().wait()
        if task.index == 1:
            raise NoSshEndpointError(msg("{reason}", reason="no runtime"))
        return SshEndpoint("172.17.0.2", 22, ("192.0.2.1", 40000))

    monkeypatch.setattr(house.engine, "ssh_endpoint", ssh_endpoint)
    monkeypatch.setattr(house.engine, "shares_host_ports", False)
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    silent, refused, open_ = await ssh_addresses(house.engine, job)
    assert str(silent.off) == "Nobody could say in time whether its SSH server answers."
    assert str(refused.off) == "no runtime"
    assert (open_.published, open_.off) == (("192.0.2.1", 40000), None)


async def test_to_list_the_addresses_of_processes_starts_no_servers(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await house.begin("gang", tasks=3)
    asked: list[TaskRef] = []

    async def ssh_endpoint(task: TaskRef) -> SshEndpoint:
        asked.append(task)
        return SshEndpoint("127.0.0.1", 1)

    monkeypatch.setattr(house.engine, "ssh_endpoint", ssh_endpoint)
    assert len(await ssh_addresses(house.engine, job)) == 3
    assert asked == []


async def test_asking_for_one_task_looks_at_no_other(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await house.begin("gang", tasks=3)
    asked: list[int] = []

    async def ssh_endpoint(task: TaskRef) -> SshEndpoint:
        asked.append(task.index)
        return SshEndpoint("172.17.0.2", 22)

    monkeypatch.setattr(house.engine, "ssh_endpoint", ssh_endpoint)
    monkeypatch.setattr(house.engine, "shares_host_ports", False)
    (only,) = await ssh_addresses(house.engine, job, "worker-1")
    assert (only.task.ref.index, asked) == (1, [1])
    assert await ssh_addresses(house.engine, job, "worker-7") == []
