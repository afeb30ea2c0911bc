"""Which task is meant, and why there is no way to it; the command line's tests ask a real scheduler."""

from __future__ import annotations

import httpx
import pytest

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.client.ssh.connection import RemoteError, find_way, find_ways, is_task_name
from pai_scheduler.rest.models import SshContainer, SshGateway, SshInfo
from tests.testbed.scheduler import RunningScheduler, hello_job

GATEWAY: SshGateway = {"host": None, "port": 2222, "hostKey": "ssh-ed25519 x"}


def client_of(containers: list[SshContainer], gateway: SshGateway | None = GATEWAY) -> Client:
    """Be a client of a scheduler that says this of a job: of states that a real one is rarely in."""
    info: SshInfo = {
        "containers": containers,
        "keyPair": {
            "folderPath": "",
            "publicKeyFileName": "",
            "privateKeyFileName": "",
            "privateKeyDirectDownloadLink": "",
        },
        "gateway": gateway,
    }

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path.endswith("/ssh")
        return httpx.Response(200, json=info)

    return Client("http://scheduler", "t", transport=httpx.MockTransport(answer))


def container(task: str, off: str | None = None) -> SshContainer:
    return {
        "id": "",
        "task": task,
        "sshIp": "h",
        "sshPort": "1",
        "sshUser": "u",
        "published": False,
        "off": off,
    }


async def test_the_only_task_need_not_be_named(entered: RunningScheduler) -> None:
    async with Client(entered.url, "token-of-alice") as client:
        assert str((await find_way(client, "alice", "one", None)).login) == "alice+one+main-0"
        ways = await find_ways(client, "alice", "two")
    assert [way.task for way in ways] == ["main-0", "main-1"]


async def test_a_task_in_which_ssh_is_off_says_why_and_the_others_are_open() -> None:
    client = client_of([container("a-0"), container("a-1", off="The port is taken.")])
    assert (await find_way(client, "u", "j", "a-0")).task == "a-0"
    with pytest.raises(RemoteError, match=r"^SSH is off in a-1: The port is taken\.$"):
        await find_way(client, "u", "j", "a-1")


async def test_of_many_tasks_some_are_listed() -> None:
    client = client_of([container(f"worker-{index}") for index in range(500)])
    with pytest.raises(RemoteError, match=r"name one of worker-0, .*, worker-9, …\.$"):
        await find_way(client, "u", "j", None)


async def test_without_a_gateway_there_is_no_way() -> None:
    with pytest.raises(RemoteError, match="has no SSH gateway"):
        await find_way(client_of([container("a-0")], gateway=None), "u", "j", None)


async def test_an_ended_job_says_how_it_ended(entered: RunningScheduler) -> None:
    async with Client(entered.url, "token-of-alice") as client:
        await client.submit(hello_job("ended", "exit 3"))
        async for _ in client.events("alice", "ended"):
            pass
        with pytest.raises(RemoteError, match=r"Job ended has ended \(FAILED\)"):
            await find_way(client, "alice", "ended", None)
        with pytest.raises(ApiError) as refused:
            await find_way(client, "alice", "nothing", None)
    assert refused.value.status == 404


def test_a_task_is_called_by_its_role_and_index() -> None:
    assert all(map(is_task_name, ("worker-0", "a.b_~-12")))
    assert not any(map(is_task_name, ("worker", "worker-", "-0", "wor-ker-0", "8888", "worker-0\n", "w-x")))
