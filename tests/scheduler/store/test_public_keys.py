"""Public keys in the database, and what is told late of jobs that are gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import ACCESS, JobEvent
from pai_scheduler.i18n import msg
from pai_scheduler.ssh.keys import KeyPair
from pai_scheduler.ssh.public_key import PublicKey
from pai_scheduler.store.store import Store
from tests.scheduler.store.conftest import OpenStore
from tests.scheduler.store.stored_jobs import add


def key(number: int, comment: str = "") -> PublicKey:
    return PublicKey.parse(f"{KeyPair.from_seed(bytes([number]) * 32).public} {comment}")


def test_a_users_keys_are_kept_in_their_order_until_they_are_removed(open_store: OpenStore) -> None:
    store = open_store()
    assert store.add_public_key("alice", key(1, "笔记本"), 5, 50) == 5
    assert store.add_public_key("alice", key(2), 6, 50) == 6
    assert store.add_public_key("alice", key(1, "again"), 7, 50) == 5
    assert store.add_public_key("王 小/明", key(1), 8, 50) == 8
    again = open_store()
    assert again.public_keys("alice") == [(key(1, "笔记本"), 5), (key(2), 6)]
    assert again.has_public_key("alice", key(1).fingerprint)
    assert store.remove_public_key("alice", key(1).fingerprint)
    assert not store.remove_public_key("alice", key(1).fingerprint)
    assert again.public_keys("alice") == [(key(2), 6)]
    assert again.has_public_key("王 小/明", key(1).fingerprint)
    assert not again.has_public_key("Alice", key(2).fingerprint)


def test_there_are_no_more_than_allowed_however_many_come_at_once(store: Store) -> None:
    with ThreadPoolExecutor(1) as writer:
        added = list(
            writer.map(lambda number: store.add_public_key("alice", key(number), number, 5), range(20))
        )
    assert [one is None for one in added] == [False] * 5 + [True] * 15
    assert len(store.public_keys("alice")) == 5


@pytest.mark.parametrize("user", ["\0", "a\0b", "' OR 1=1 --", "x" * 100_000])
def test_hostile_names_have_no_keys(store: Store, user: str) -> None:
    store.add_public_key("alice", key(1), 5, 50)
    assert store.public_keys(user) == []
    assert not store.has_public_key(user, key(1).fingerprint)
    assert not store.has_public_key("alice", "' OR 1=1 --")


def test_what_is_told_late_of_who_was_in_a_job_is_kept_as_long_as_the_job(store: Store) -> None:
    add(store, "one")
    late = Outcome(
        job_events=[
            JobEvent(job_id, 5, ACCESS, msg("{user} left.", user="alice"), 0, "w", 0)
            for job_id in ("one", "gone")
        ]
    )
    add_to = JobEvent("one", 6, "ended", msg("Ended."))
    late.job_events.append(add_to)
    store.commit(late, {})
    assert [str(told.entry.message) for told in store.job_events(job_id="one")] == ["alice left.", "Ended."]
    assert store.job_events(job_id="gone") == []
