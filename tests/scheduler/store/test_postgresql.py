"""What only PostgreSQL does: sessions that break, servers that are started again, commits in doubt."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
import sqlalchemy as sa

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.store.lease import Lease
from pai_scheduler.store.store import Store, StoreError
from tests.scheduler.store.stored_jobs import add, make_job
from tests.testbed.postgres import Postgres


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    opened = Store(postgres_url)
    yield opened
    opened.close()


#: as the client sends it: kind, length, text
COMMIT = b"Q\0\0\0\x0bCOMMIT\0"


class Wire:
    """The wire to a PostgreSQL, cut at the next COMMIT: before it arrives, or before its answer does."""

    def __init__(self, url: str, *, arrives: bool) -> None:
        place = urlsplit(url)
        self._server = (place.hostname, place.port)
        self._arrives = arrives
        self._armed = False
        self._answering: socket.socket | None = None
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(f":{place.port}/", f":{self._listener.getsockname()[1]}/")
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self) -> None:
        self._armed = True

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                threading.Thread(target=self._carry, args=(client, server), daemon=True).start()
                threading.Thread(target=self._carry, args=(server, client), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (data := source.recv(65536)) and source is not self._answering:
                if self._armed and COMMIT in data:
                    self._armed = False
                    self.cuts += 1
                    if not self._arrives:
                        break
                    self._answering = target
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("kept", [True, False])
def test_a_commit_whose_answer_is_lost_counts_as_what_it_was(postgres_url: str, kept: bool) -> None:
    lease = Lease(postgres_url, "here", lambda: None)
    lease.prepare()
    assert lease.take(lease.look())
    wire = Wire(postgres_url, arrives=kept)
    store = Store(wire.url, lease)
    add(store, "before")
    wire.arm()
    if kept:
        add(store, "j")
    else:
        with pytest.raises(StoreError):
            add(store, "j")
    assert wire.cuts == 1
    assert {job.id for job in store.jobs()} == ({"before", "j"} if kept else {"before"})
    add(store, "after")
    store.close()
    lease.close()
    wire.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_server_that_is_started_again_is_found_again_with_everything_in_it(
    postgres: Postgres, store: Store, number: signal.Signals
) -> None:
    add(store, "j")
    postgres.stop(number)
    for call in (lambda: add(store, "k"), store.jobs, store.live_jobs):
        with pytest.raises(StoreError, match=r"[Cc]onnection.*(refused|terminating|closed)"):
            call()
    postgres.start()
    assert [job.id for job in store.jobs()] == ["j"]
    add(store, "k")
    assert {job.id for job in store.live_jobs()} == {"j", "k"}


def test_a_session_that_the_server_ended_is_replaced_without_a_word(
    postgres: Postgres, postgres_url: str, store: Store
) -> None:
    add(store, "j")
    with postgres.connect(postgres_url.rpartition("/")[2]) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pai-scheduler'"
        )
    add(store, "k")
    assert len(store.jobs()) == 2


def test_readers_see_one_state_in_all_their_queries(store: Store) -> None:
    add(store, "j")
    with store._reading() as reading:
        count = sa.text("SELECT count(*) FROM jobs")
        assert reading.execute(count).scalar() == 1
        add(store, "k")
        assert reading.execute(count).scalar() == 1
    assert len(store.jobs()) == 2


def test_a_commit_waits_for_the_disk_whatever_the_server_is_told(postgres_url: str) -> None:
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    store = Store(postgres_url)
    with store.engine.connect() as connection:
        assert connection.execute(sa.text("SHOW synchronous_commit")).scalar() == "on"
    store.close()


def test_a_table_that_is_gone_is_the_databases_fault_not_the_events(store: Store) -> None:
    add(store, "j")
    with store.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE story RENAME TO away"))
    job, config = make_job("k")
    outcome = Outcome(jobs={"k": job})
    outcome.deleted.append("nobody")
    store.commit(outcome, {"k": config})
    with pytest.raises(StoreError, match="story"):
        store.job_events()


def test_without_its_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"pip install 'pai-for-jupyter\[postgresql\]'"):
        Store("postgresql://somebody@127.0.0.1/db")


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("mysql://root@127.0.0.1/db", "mysql"),
        ("nonsense", "postgresql://USER"),
        ("postgresql://pai@127.0.0.1:1/db", "refused"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused_in_a_sentence(url: str, word: str) -> None:
    with pytest.raises(StoreError, match=word) as caught:
        Store(url)
    assert "\n" not in str(caught.value)
