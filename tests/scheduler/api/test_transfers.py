"""One user's transfers are bounded: one more waits for its turn, then is refused."""

from __future__ import annotations

import asyncio

import pytest

from pai_scheduler.api.limits import TransferLimit
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError

ALICE = Principal("alice")


async def test_one_too_many_is_refused_when_its_turn_does_not_come() -> None:
    transfers = TransferLimit(most=2, patience=0.05)
    async with transfers.counted(ALICE), transfers.counted(ALICE):
        with pytest.raises(RequestError, match="2 files at once") as refused:
            async with transfers.counted(ALICE):
                pass
        assert (refused.value.status, refused.value.code) == (429, "RetriableException")
        # nobody else is held up
        async with transfers.counted(Principal("bob")), transfers.counted(Principal("root", admin=True)):
            pass
    async with transfers.counted(ALICE), transfers.counted(ALICE):
        pass


async def test_a_waiting_transfer_gets_the_next_free_slot() -> None:
    transfers, order = TransferLimit(most=1, patience=30), list[str]()

    async def transfer(name: str) -> None:
        async with transfers.counted(ALICE):
            order.append(name)

    async with transfers.counted(ALICE):
        waiting = [asyncio.create_task(transfer(name)) for name in "abc"]
        await asyncio.sleep(0.01)
        assert order == []
    await asyncio.gather(*waiting)
    assert order == ["a", "b", "c"]


async def test_an_administrator_is_bounded_too_and_nothing_is_kept_of_those_who_left() -> None:
    transfers, root = TransferLimit(most=1, patience=0.01), Principal("root", admin=True)
    async with transfers.counted(root):
        with pytest.raises(RequestError):
            async with transfers.counted(root):
                pass
        waits = asyncio.create_task(transfers.counted(root).__aenter__())
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
    assert transfers._turns == {}
