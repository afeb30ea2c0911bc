from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pai_scheduler.server import leader as leading
from pai_scheduler.server.leader import Candidate, Watch, kept_alive
from pai_scheduler.store.database import StoreError
from pai_scheduler.store.lease import PATIENCE_SECONDS, Lease, LeaseObservation
from tests.testbed.postgres import Postgres

ALIVE = LeaseObservation(1, "somebody", "there", 5)
VACANT = LeaseObservation(0, "", "", 0)

MakeLease = Callable[[], "Counted"]


class Counted(Lease):
    """A lease that counts how often it was lost, and asked for."""

    losses = beats = 0

    def __init__(self, url: str) -> None:
        super().__init__(url, "here", self._lose)

    def _lose(self) -> None:
        self.losses += 1

    def beat(self) -> None:
        self.beats += 1
        super().beat()


@pytest.fixture
def make_lease(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeLease]:
    monkeypatch.setattr(leading, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(leading, "BEAT_SECONDS", 0.05)
    made: list[Counted] = []

    def make() -> Counted:
        made.append(Counted(postgres_url))
        return made[-1]

    yield make
    for lease in made:
        lease.close()


# -- how long one waits


def test_a_free_lease_is_taken_at_once() -> None:
    assert Watch().may_take(VACANT, 0)


def test_a_leader_whose_beat_goes_on_is_left_alone_for_ever() -> None:
    watch = Watch()
    for second in range(100):
        assert not watch.may_take(replace(ALIVE, beat=second), second)


def test_a_leader_whose_beat_stands_still_is_dead_after_so_long() -> None:
    watch = Watch()
    assert not watch.may_take(ALIVE, 100)
    assert not watch.may_take(ALIVE, 100 + PATIENCE_SECONDS - 0.1)
    assert watch.may_take(ALIVE, 100 + PATIENCE_SECONDS)


def test_another_leader_is_waited_for_as_long_as_the_first() -> None:
    watch = Watch()
    watch.may_take(ALIVE, 0)
    assert not watch.may_take(replace(ALIVE, epoch=2), PATIENCE_SECONDS)
    assert watch.may_take(replace(ALIVE, epoch=2), 2 * PATIENCE_SECONDS)


def test_the_time_in_which_the_database_was_away_does_not_count() -> None:
    watch = Watch()
    watch.may_take(ALIVE, 0)
    watch.look_failed()
    assert not watch.may_take(ALIVE, PATIENCE_SECONDS + 1)


# -- waiting and leading


async def test_one_leads_and_the_other_waits_until_it_steps_down(make_lease: MakeLease) -> None:
    first, second = make_lease(), make_lease()
    never = asyncio.Event()
    assert await Candidate(first).win(never)
    waiting = Candidate(second)
    async with kept_alive(first):
        winning = asyncio.create_task(waiting.win(never))
        await asyncio.sleep(0.5)
        assert not winning.done()
        assert waiting.leader == "here"
        assert first.beats > 2
    assert await winning
    assert first.losses == 0


async def test_a_standby_can_be_stopped(make_lease: MakeLease) -> None:
    assert await Candidate(make_lease()).win(asyncio.Event())
    stopping = asyncio.Event()
    waiting = asyncio.create_task(Candidate(make_lease()).win(stopping))
    await asyncio.sleep(0.2)
    stopping.set()
    assert not await waiting


async def test_a_standby_survives_the_loss_of_its_database(make_lease: MakeLease, postgres: Postgres) -> None:
    leader, lease = make_lease(), make_lease()
    never = asyncio.Event()
    assert await Candidate(leader).win(never)
    waiting = asyncio.create_task(Candidate(lease).win(never))
    await asyncio.sleep(0.2)
    await asyncio.to_thread(postgres.stop, signal.SIGKILL)
    await asyncio.sleep(0.2)
    await asyncio.to_thread(postgres.start)
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await asyncio.to_thread(leader.release)
    assert await waiting


async def test_without_a_database_waiting_does_not_even_begin() -> None:
    lease = Counted("postgresql://pai@127.0.0.1:1/none")
    with pytest.raises(StoreError, match="refused"):
        await Candidate(lease).win(asyncio.Event())


async def test_after_a_freeze_nothing_is_done_before_it_is_known_who_leads(
    make_lease: MakeLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, other = make_lease(), make_lease()
    assert await Candidate(leader).win(asyncio.Event())
    other.prepare()
    monkeypatch.setattr(leading, "BEAT_SECONDS", 60)
    async with kept_alive(leader):
        await asyncio.to_thread(leader.beat)
        # it is certain: nobody is asked
        before = leader.beats
        os.kill(os.getpid(), signal.SIGCONT)
        assert leader.beats == before
        assert other.take(other.look())
        monkeypatch.setattr("pai_scheduler.store.lease.now", lambda: 2**40)
        os.kill(os.getpid(), signal.SIGCONT)
        assert leader.losses == 1
    assert signal.getsignal(signal.SIGCONT) is signal.SIG_DFL


async def test_while_its_database_is_away_a_leader_is_neither_certain_nor_overtaken(
    make_lease: MakeLease, postgres: Postgres
) -> None:
    leader = make_lease()
    assert await Candidate(leader).win(asyncio.Event())
    async with kept_alive(leader):
        await asyncio.to_thread(postgres.stop)
        try:
            async with asyncio.timeout(30):
                while leader.assured:  # noqa: ASYNC110 - others make it so
                    await asyncio.sleep(0.05)
        finally:
            await asyncio.to_thread(postgres.start)
        async with asyncio.timeout(30):
            while not leader.assured:  # noqa: ASYNC110 - others make it so
                await asyncio.sleep(0.05)
    assert leader.losses == 0
