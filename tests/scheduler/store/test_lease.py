from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.store import lease as lease_module
from pai_scheduler.store.lease import Lease
from pai_scheduler.store.store import Store, StoreError
from tests.scheduler.store.stored_jobs import make_job

MakeLease = Callable[..., "Tried"]


class Tried(Lease):
    """A lease that remembers how often it was said to be lost."""

    def __init__(self, url: str, address: str = "here") -> None:
        self.losses = 0
        super().__init__(url, address, self._count)
        self.prepare()

    def _count(self) -> None:
        self.losses += 1

    def grab(self) -> bool:
        return self.take(self.look())


@pytest.fixture
def make_lease(postgres_url: str) -> Iterator[MakeLease]:
    made: list[Tried] = []

    def make(address: str = "here") -> Tried:
        made.append(Tried(postgres_url, address))
        return made[-1]

    yield make
    for lease in made:
        lease.close()


def add(store: Store, job_id: str) -> None:
    job, config = make_job(job_id)
    store.commit(Outcome(jobs={job_id: job}), {job_id: config})


def test_of_many_candidates_for_a_free_lease_one_gets_it(make_lease: MakeLease) -> None:
    leases = [make_lease() for _ in range(4)]
    seen = leases[0].look()
    assert seen.vacant
    taken: list[bool] = []
    threads = [threading.Thread(target=lambda one=one: taken.append(one.take(seen))) for one in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False, False, False, True]


def test_tables_are_made_by_many_at_once(postgres_url: str) -> None:
    leases: list[Lease] = []
    threads = [threading.Thread(target=lambda: leases.append(Tried(postgres_url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({lease.look() for lease in leases}) == 1
    assert len(leases) == 4
    for lease in leases:
        lease.close()


def test_a_standby_sees_where_the_leader_is_and_that_it_lives(make_lease: MakeLease) -> None:
    leader, other = make_lease("there"), make_lease()
    assert leader.grab()
    before = other.look()
    assert (before.vacant, before.address) == (False, "there")
    leader.beat()
    assert other.look().beat > before.beat


def test_a_leader_thought_dead_keeps_the_lease_if_it_beats_in_time(make_lease: MakeLease) -> None:
    leader, other = make_lease(), make_lease()
    assert leader.grab()
    seen = other.look()
    leader.beat()
    assert not other.take(seen)
    leader.beat()
    assert leader.losses == 0


def test_a_leader_that_was_overtaken_learns_it_once_and_is_never_assured_again(make_lease: MakeLease) -> None:
    leader, other = make_lease(), make_lease()
    assert leader.grab()
    assert leader.assured
    assert other.grab()
    for _ in range(2):
        # (its first connection was ended by the other)
        with pytest.raises(StoreError):
            leader.beat()
    with pytest.raises(StoreError, match="another scheduler leads"):
        leader.beat()
    assert leader.losses == 1
    assert not leader.assured
    assert other.assured


def test_a_leader_that_cannot_beat_stops_being_assured_before_others_take_over(
    make_lease: MakeLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(lease_module, "now", lambda: now)
    leader = make_lease()
    assert leader.grab()
    now += lease_module.ASSURED_SECONDS + 0.1
    assert not leader.assured
    leader.beat()
    assert leader.assured
    assert lease_module.ASSURED_SECONDS < lease_module.PATIENCE_SECONDS


def test_a_leader_that_steps_down_frees_the_lease(make_lease: MakeLease) -> None:
    leader, other = make_lease(), make_lease()
    assert leader.grab()
    leader.release()
    assert not leader.assured
    assert other.look().vacant
    assert other.grab()
    # too late to do harm
    leader.release()
    assert not other.look().vacant


def test_a_store_writes_only_while_its_service_leads(postgres_url: str, make_lease: MakeLease) -> None:
    leader, other = make_lease(), make_lease()
    assert leader.grab()
    store = Store(postgres_url, leader)
    add(store, "before")
    assert other.grab()
    for _ in range(2):
        with pytest.raises(StoreError):
            add(store, "after")
    assert leader.losses == 1
    assert [job.id for job in store.jobs()] == ["before"]
    store.close()


def test_a_leader_frozen_within_a_transaction_neither_delays_the_next_nor_commits(
    postgres_url: str, make_lease: MakeLease
) -> None:
    leader, other = make_lease(), make_lease()
    assert leader.grab()
    store = Store(postgres_url, leader)
    add(store, "before")
    connection = store.engine.connect()
    transaction = connection.begin()
    leader.sign(connection)
    connection.exec_driver_sql("UPDATE jobs SET created = 5")
    assert other.grab()
    other.beat()
    with pytest.raises(Exception, match=r"terminating connection|closed"):
        transaction.commit()
    connection.close()
    assert [job.created for job in store.jobs()] == [1001]
    store.close()


def test_only_the_leader_migrates(postgres_url: str, make_lease: MakeLease) -> None:
    leader, other = make_lease(), make_lease()
    assert leader.grab()
    assert other.grab()
    with pytest.raises(StoreError, match="another scheduler leads"):
        Store(postgres_url, leader)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regclass('jobs')").fetchone() == (None,)


def test_it_is_known_which_transactions_were_kept(postgres_url: str, make_lease: MakeLease) -> None:
    leader = make_lease()
    assert leader.grab()
    store = Store(postgres_url, leader)
    with store.engine.begin() as connection:
        kept = leader.sign(connection)
    assert leader.has_kept(kept)
    with store.engine.connect() as connection:
        undone = leader.sign(connection)
        connection.rollback()
    assert not leader.has_kept(undone)
    assert leader.has_kept(kept)
    store.close()


def test_whether_a_transaction_was_kept_is_not_said_before_it_is_over(
    postgres_url: str, make_lease: MakeLease
) -> None:
    leader = make_lease()
    assert leader.grab()
    store = Store(postgres_url, leader)
    answers: list[bool] = []
    with store.engine.begin() as connection:
        mark = leader.sign(connection)
        asking = threading.Thread(target=lambda: answers.append(leader.has_kept(mark)))
        asking.start()
        asking.join(0.3)
        assert answers == []
    asking.join()
    assert answers == [True]
    store.close()
