"""What is followed ends when the token that opened it is revoked, and only then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from pai_scheduler.api import stream
from pai_scheduler.api.auth import TokensFile
from pai_scheduler.job.messages import msg
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.security.principal import Principal
from tests.scheduler.ssh.authorization.house import House, open_house


async def _read_to_the_end(house: House, path: str, begun: asyncio.Event) -> None:
    async with house.client() as alice, alice.stream("GET", path, params={"follow": 1}, timeout=60) as answer:
        assert answer.status_code == 200
        begun.set()
        async for _ in answer.aiter_bytes():
            pass


@pytest.mark.parametrize("what", ["events", "taskRoles/worker/tasks/0/logs/all"])
async def test_what_a_revoked_token_follows_is_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(stream, "RECHECK_SECONDS", 0.05)
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
    monkeypatch.setattr(stream, "RECHECK_SECONDS", 0.05)
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
