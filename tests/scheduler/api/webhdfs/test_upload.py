"""A body becomes pieces: in order, bounded, and with its end or its break known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pai_scheduler.api.webhdfs import transfer as webhdfs_upload
from pai_scheduler.api.webhdfs.transfer import PIECE, BodyUpload, BrokenOffError


class Taker:
    """Takes pieces as a storage does; `refusal` is raised before the first, or after `after` of them."""

    def __init__(self, refusal: Exception | None = None, after: int = 0) -> None:
        self.taken: list[bytes] = []
        self._refusal, self._after = refusal, after

    async def __call__(self, pieces: AsyncIterator[bytes]) -> None:
        if self._refusal and not self._after:
            raise self._refusal
        async for piece in pieces:
            self.taken.append(piece)
            if self._refusal and len(self.taken) == self._after:
                raise self._refusal


async def test_what_is_sent_arrives_in_pieces_of_a_mib_or_more() -> None:
    taker = Taker()
    upload = BodyUpload(taker)
    await upload.accepted()
    chunks = [bytes([number % 251]) * 300_000 for number in range(20)]
    for chunk in chunks:
        await upload.receive(chunk)
    await upload.finish()
    assert b"".join(taker.taken) == b"".join(chunks)
    assert min(map(len, taker.taken[:-1])) >= PIECE
    assert max(map(len, taker.taken)) < PIECE + 300_000


async def test_an_empty_body_makes_an_empty_file() -> None:
    taker = Taker()
    upload = BodyUpload(taker)
    await upload.accepted()
    await upload.finish()
    assert taker.taken == []


async def test_a_refusal_comes_before_the_first_byte_is_wanted() -> None:
    upload = BodyUpload(Taker(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        await upload.accepted()


async def test_a_refusal_in_the_middle_holds_nobody_up_who_still_sends() -> None:
    upload = BodyUpload(Taker(ZeroDivisionError(), after=2))
    await upload.accepted()
    for _ in range(10):
        await upload.receive(bytes(PIECE))
    with pytest.raises(ZeroDivisionError):
        await upload.finish()


async def test_a_break_is_known_after_all_that_had_come() -> None:
    taker = Taker()
    upload = BodyUpload(taker)
    await upload.accepted()
    await upload.receive(bytes(PIECE))
    await upload.receive(b"rest")
    upload.break_off()
    with pytest.raises(BrokenOffError):
        await upload.task
    assert taker.taken == [bytes(PIECE), b"rest"]


async def test_a_silent_upload_is_broken_off_and_a_slow_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhdfs_upload, "SILENCE", 0.3)
    taker = Taker()
    upload = BodyUpload(taker)
    await upload.accepted()
    for _ in range(10):  # three times as long as one may say nothing
        await asyncio.sleep(0.1)
        await upload.receive(b"x")
    with pytest.raises(BrokenOffError):
        await upload.task
    assert taker.taken == [b"x" * 10]
