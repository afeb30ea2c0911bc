"""What is followed ends when the token that opened it is revoked, and only then."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from pai_scheduler.api import logs, streaming
from pai_scheduler.api.auth import TokensFile
from pai_scheduler.engine.logs.watcher import LogGrowth
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from tests.scheduler.service.house import House, open_house


async def _read_to_the_end(house: House, path: str, begun: asyncio.Event) -> None:
    async with house.client() as alice, alice.stream("GET", path, params={"follow": 1}, timeout=60) as answer:
        assert answer.status_code == 200
        begun.set()
        async for _ in answer.aiter_bytes():
            pass


@asynccontextmanager
async def _lines_of_the_log(house: House) -> AsyncIterator[AsyncIterator[str]]:
    """Follow the log of alice's job `one`; gives its lines."""
    path = "/user/alice/jobs/one/taskRoles/worker/tasks/0/logs/all"
    async with (
        house.client() as alice,
        asyncio.timeout(60),
        alice.stream("GET", path, params={"follow": 1}) as answer,
    ):
        yield answer.aiter_lines()


@pytest.mark.parametrize("what", ["events", "taskRoles/worker/tasks/0/logs/all"])
async def test_what_a_revoked_token_follows_is_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(streaming, "RECHECK_SECONDS", 0.05)
    async with open_house(tmp_path) as house:
        await house.begin("one")
        begun = asyncio.Event()
        reader = asyncio.create_task(_read_to_the_end(house, f"/user/alice/jobs/one/{what}", begun))
        await begun.wait()
        house.rewrite_tokens({"token-b": {"name": "bob"}})
        with pytest.raises(httpx.RemoteProtocolError):  # so that nobody takes it for whole
            await asyncio.wait_for(reader, 60)


async def test_what_is_followed_goes_on_while_nobody_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "RECHECK_SECONDS", 0.05)
    asked = asyncio.Queue[None]()
    identify = TokensFile.identify

    async def away(tokens: TokensFile, token: str) -> Principal | None:
        asked.put_nowait(None)
        if asked.qsize() > 1:
            raise RequestError(503, "HubUnreachableError", msg("{reason}", reason="away"))
        return await identify(tokens, token)

    async with open_house(tmp_path) as house:
        await house.begin("one")
        monkeypatch.setattr(TokensFile, "identify", away)
        begun = asyncio.Event()
        reader = asyncio.create_task(_read_to_the_end(house, "/user/alice/jobs/one/events", begun))
        async with asyncio.timeout(60):
            while asked.qsize() < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert not reader.done()
        monkeypatch.setattr(TokensFile, "identify", identify)
        await house.end("one")
        await asyncio.wait_for(reader, 60)


@pytest.fixture
def nobody_looks_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a follower of a log look only when it is told to."""
    monkeypatch.setattr(logs, "_TURN_SECONDS", 10_000)
    monkeypatch.setattr(logs, "_SILENCE_SECONDS", 10_000)


@pytest.mark.usefixtures("nobody_looks_in_turns")
async def test_each_line_of_a_log_is_pushed_and_so_is_its_end(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with open_house(tmp_path) as house:
        # begins, and waits for us before each line
        await house.begin("one", command=f"exec 3<> {gate}; while read line <&3; do echo $line; done")
        writing = os.open(gate, os.O_WRONLY)
        async with _lines_of_the_log(house) as lines:
            for number in range(5):
                os.write(writing, f"{number}\n".encode())
                assert await anext(lines) == str(number)
            await house.end("one")
            assert [line async for line in lines] == []
        os.close(writing)


@pytest.mark.parametrize("told", [True, False])
async def test_a_log_is_followed_also_where_the_kernel_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    def nothing(*_: object) -> bool:
        return told  # nothing comes, whether that is known or not

    monkeypatch.setattr(LogGrowth, "watch", nothing)
    monkeypatch.setattr(logs, "_SILENCE_SECONDS", 0.2)
    async with open_house(tmp_path) as house:
        await house.begin("one", command="echo first; sleep 1; echo second; exec sleep 1000")
        async with _lines_of_the_log(house) as lines:
            assert [await anext(lines), await anext(lines)] == ["first", "second"]
        await house.end("one")
