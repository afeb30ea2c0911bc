"""No question to the database reads a large table from end to end where an index could answer it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from pai_scheduler.clock import ClockMark
from pai_scheduler.cluster.node import Closing, Maintenance
from pai_scheduler.core.dependencies import Dependency
from pai_scheduler.core.instructions import Announcement, Outcome
from pai_scheduler.core.model import State, SubState
from pai_scheduler.job.dependencies import On
from pai_scheduler.job.schedule import Overlap, Schedule
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.public_key import PublicKey
from pai_scheduler.store.records import JobPosition
from pai_scheduler.store.store import Store
from tests.scheduler.store.stored_jobs import Configs, give_attempt, make_job, tell

#: those that grow with every job or user
_LARGE = ("jobs", "attempts", "tasks", "story", "schedules", "dependencies", "announcements")

#: on PostgreSQL, which reads a small table whole: leave that only where nothing else is possible
_NO_WHOLE_TABLES = "SET LOCAL enable_seqscan = off"

_KEY = PublicKey.parse("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPQwWGQBaxrlJhfRYE7tZM9jrDIHzLW8Wd9IR7ZRdzCv a")

_ANNOUNCEMENT = Announcement("j1", "webhook", "ada", "https://hooks.lab/", 1000, {})

_SCHEDULE = Schedule("alice", "s", "* * * * *", "UTC", Overlap.SKIP, False, 1, 1)


@pytest.fixture
def filled(store: Store) -> Store:
    """Return a store with jobs of two users, most of which have ended."""
    outcome, configs = Outcome(), Configs()
    for number in range(60):
        user = ("alice", "bob")[number % 2]
        job, configs[f"j{number}"] = make_job(f"j{number}", user=user, order=number)
        give_attempt(outcome, job)
        if number > 4:
            job.sub_state = SubState.ENDED
        outcome.job_events.extend(tell(job.id, "submitted"))
        outcome.dependencies[job.id, 0] = Dependency("j2", "j2", On.ENDED)
    store.commit(outcome, configs)
    return store


def _commit_everything(store: Store) -> None:
    (job,) = (job for job in store.live_jobs() if job.id == "j2")
    outcome = Outcome(jobs={"j2": job}, deleted={"j1": None})  # type: ignore[arg-type]
    give_attempt(outcome, job, 1)
    outcome.job_events.extend([*tell("j2", "running"), *tell("j3", "access")])
    store.commit(outcome, {})


QUESTIONS: dict[str, Callable[[Store], object]] = {
    "a commit": _commit_everything,
    "forgot": lambda store: store.forgot([TaskRef("j1", 0, "main", 0)]),
    "add a key": lambda store: store.add_public_key("alice", _KEY, 1, 10),
    "remove a key": lambda store: store.remove_public_key("alice", _KEY.fingerprint),
    "remember files": lambda store: store.remember_fingerprints({"a.key": "00"}),
    "files": lambda store: store.fingerprints(),
    "the name": lambda store: store.name(),
    "check": lambda store: store.check_writable(),
    "live jobs": lambda store: store.live_jobs(),
    "last order": lambda store: store.last_order(),
    "all jobs": lambda store: store.jobs(),
    "a user's jobs": lambda store: store.jobs("alice"),
    "a user's jobs in some states": lambda store: store.jobs("alice", states={State.RUNNING}),
    "a page of all jobs in some states": lambda store: store.jobs(states={State.WAITING}, limit=5),
    "a page of all jobs": lambda store: store.jobs(after=JobPosition(9, "j9"), limit=5),
    "a page of a user's jobs": lambda store: store.jobs("alice", after=JobPosition(9, "j9"), limit=5),
    "a job": lambda store: store.job("alice", "j2"),
    "is over": lambda store: store.is_over("j2"),
    "config": lambda store: store.config("j2"),
    "attempts": lambda store: store.attempts("j2"),
    "the events of all": lambda store: store.job_events(after=3),
    "the events of a job": lambda store: store.job_events(job_id="j2", after=3),
    "the events of a user": lambda store: store.job_events(user="alice", after=3),
    "a user's keys": lambda store: store.public_keys("alice"),
    "has a key": lambda store: store.has_public_key("alice", _KEY.fingerprint),
    "counts": lambda store: store.count_by_virtual_cluster(),
    "changed clusters": lambda store: store.virtual_clusters(),
    "close a node": lambda store: store.close_node("n1", Closing("root", "why", 1)),
    "open a node": lambda store: store.open_node("n1"),
    "closed nodes": lambda store: store.closed_nodes(),
    "put a schedule": lambda store: store.put_schedule(_SCHEDULE, {}, 10),
    "change a schedule": lambda store: store.change_schedule(_SCHEDULE),
    "remove a schedule": lambda store: store.remove_schedule("alice", "s"),
    "a user's schedules": lambda store: store.schedules("alice"),
    "a schedule": lambda store: store.schedule("alice", "s"),
    "what is due": lambda store: store.due_schedules(1),
    "what is due next": lambda store: store.next_due(),
    "who waits for whom": lambda store: store.waited_for(),
    "ids by name": lambda store: store.job_ids("alice", ["j2", "j4"]),
    "how jobs ended": lambda store: store.ended_states(["j7", "j8"]),
    "a job's links": lambda store: store.links("j2", 1),
    "forgotten": lambda store: store.forgotten(),
    "the text of a job": lambda store: store.submitted_text("j2"),
    "keep the clock": lambda store: store.keep_clock_mark(ClockMark("boot", 1, 1)),
    "the clock": lambda store: store.clock_mark(),
    "usages": lambda store: store.usages(),
    "plan maintenance": lambda store: store.put_maintenance(Maintenance("m", ("n1",), 1, 2, "why", "root")),
    "planned": lambda store: store.maintenance(),
    "not planned any more": lambda store: store.remove_maintenance("m"),
    "due announcements": lambda store: store.due_announcements(1, 10),
    "the next announcement": lambda store: store.next_announcement(),
    "announce all": lambda store: store.announce_all(1),
    "put an announcement off": lambda store: store.put_off(_ANNOUNCEMENT, 1, 2),
    "an announcement is told": lambda store: store.settle(_ANNOUNCEMENT),
}
#: what gives something of all jobs; and the greatest id, which SQLite calls a search like that for any column
_NOT_ASKED = {"names", "recorded_jobs", "last_ended_runs", "last_job_event"}


def test_every_question_is_looked_at() -> None:
    methods = {name for name, value in vars(Store).items() if callable(value) and not name.startswith("_")}
    asked = {name for question in QUESTIONS.values() for name in question.__code__.co_names}
    assert methods - asked == _NOT_ASKED


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_query_uses_an_index_and_reads_no_whole_table(filled: Store, question: str) -> None:
    with recorded(filled.engine) as statements:
        QUESTIONS[question](filled)
    assert statements
    for statement, parameters in statements:
        for step in plan(filled.engine, statement, parameters):
            assert not reads_whole_table(step), f"{statement}\n{step}"


def test_a_job_is_found_by_its_name_not_among_all_of_its_user(filled: Store) -> None:
    with recorded(filled.engine) as statements:
        filled.job("alice", "j2")
    steps = [step for statement in statements for step in plan(filled.engine, *statement)]
    (found,) = (step for step in steps if re.search(r"\bjobs\b", step))
    assert "uq_jobs_user_name" in found
    assert re.search(r"user_name\W.*\bname\W", found)


def test_whatever_reads_a_whole_table_is_noticed(filled: Store) -> None:
    query = "SELECT id FROM jobs WHERE config = 'x'"
    assert any(map(reads_whole_table, plan(filled.engine, query, None)))


@contextmanager
def recorded(engine: sa.Engine) -> Iterator[list[tuple[str, Any]]]:
    """Return what is asked within, as the database's driver gets it."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, given: Any, _context: Any, many: bool) -> None:
        if statement.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
            asked.append((statement, given[0] if many else given))

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


def plan(engine: sa.Engine, statement: str, parameters: Any) -> list[str]:
    """Return the steps in which a database would answer."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            return [row.detail for row in rows]
        connection.exec_driver_sql(_NO_WHOLE_TABLES)
        (root,) = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
        return [json.dumps(step) for step in _steps(root["Plan"])]


def _steps(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {key: value for key, value in node.items() if key != "Plans"}
    for inner in node.get("Plans", ()):
        yield from _steps(inner)


def reads_whole_table(step: str) -> bool:
    """Return whether a step goes through all rows of a large table, not only through an index of it."""
    if not step.startswith("{"):
        # the largest of a column is a "SEARCH", with an index or without
        found = re.match(r"(?:SCAN|SEARCH) (\w+)(?! USING)", step)
        return found is not None and found[1] in _LARGE
    node = json.loads(step)
    return node["Node Type"] == "Seq Scan" and node["Relation Name"] in _LARGE
