from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_scheduler.cluster.resources import Assignment
from pai_scheduler.core.events import EndCause
from pai_scheduler.core.model import Attempt, Job, JobEvent, RetryCounts, State, SubState, Task, Verdict
from pai_scheduler.i18n import Message
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validation import config_of, parse_job
from pai_scheduler.store import rows, tables
from tests.scheduler.job.strategies import jobs as job_configs
from tests.scheduler.making import make_config

TEXT = st.text(st.characters(codec="utf-8"), max_size=10)
TIME = st.integers(0, 2**53)
NAME = st.from_regex(r"\A[A-Za-z0-9._~]{1,8}\Z")
MESSAGES = st.recursive(
    st.builds(
        Message, TEXT, st.dictionaries(NAME, TEXT | st.integers() | st.booleans() | st.none(), max_size=2)
    ),
    lambda inner: st.builds(
        Message, TEXT, st.dictionaries(NAME, inner | TEXT, max_size=2), NAME, st.none() | TEXT
    ),
    max_leaves=4,
)
VERDICTS = st.builds(
    Verdict,
    st.sampled_from(State),
    st.integers(-8000, 256),
    st.integers(-8000, 256),
    st.none() | st.tuples(NAME, st.integers(0, 9)),
    MESSAGES,
)
ASSIGNMENTS = st.builds(
    Assignment,
    NAME,
    st.lists(st.integers(0, 15), max_size=3).map(tuple),
    st.dictionaries(NAME, st.lists(st.integers(1, 65535), max_size=3).map(tuple), max_size=3),
)
TASKS = st.builds(
    Task,
    st.builds(TaskRef, st.just("j"), st.integers(0, 99), NAME, st.integers(0, 99)),
    ASSIGNMENTS,
    st.sampled_from(State),
    st.none() | TIME,
    st.none() | TIME,
    st.none() | st.integers(-8000, 256),
    TEXT,
    TEXT,
    st.booleans(),
    st.none() | TIME,
    st.none() | st.sampled_from(EndCause),
    st.none() | MESSAGES,
)
ATTEMPTS = st.builds(
    Attempt, st.integers(0, 99), TIME, st.none() | TIME, st.none() | TIME, st.none() | VERDICTS
)
RETRIES = st.builds(RetryCounts, *[st.integers(0, 1000)] * 4)


@given(job_configs)
def test_a_job_is_read_back_from_its_json_as_it_was_submitted(config: dict[str, Any]) -> None:
    kept = json.dumps(config_of(config), ensure_ascii=False)
    assert _read(Job("j", "alice", parse_job(config), 5), kept).spec == parse_job(config)


@given(job_configs)
@settings(max_examples=20)
def test_jobs_that_differ_in_their_names_are_read_back_each_under_its_own(job: dict[str, Any]) -> None:
    for config in (job | {"jobName": name} for name in ("one", "t~2", "one")):
        kept = json.dumps(config_of(config), ensure_ascii=False, separators=(",", ":"))
        assert _read(Job("j", "alice", parse_job(config), 5), kept).spec == parse_job(config)


def test_a_variable_that_is_called_as_the_field_of_the_name_stays_as_it_is() -> None:
    for name in ("one", "two"):
        config = {"extras": {"jobName": name}, "jobEnvs": {"jobName": name}} | make_config(name=name)
        kept = json.dumps(config_of(config), separators=(",", ":"))
        read = _read(Job("j", "alice", parse_job(config), 5), kept).spec
        assert (read.name, read.extras["jobName"], read.envs["jobName"]) == (name, name, name)


def _read(job: Job, config: str, attempt: Attempt | None = None) -> Job:
    values = {**rows.job_row(job), "config": config, "submitted": None, "submitted_type": None}
    return rows.read_job([values[column.name] for column in tables.jobs.columns], attempt)


@given(
    job_configs,
    st.none() | ATTEMPTS,
    RETRIES,
    st.none() | VERDICTS,
    st.sampled_from(State),
    st.sampled_from(SubState),
    st.booleans(),
    st.none() | TIME,
    st.none() | st.integers(0, 100),
    st.integers(0, 1000),
)
def test_a_jobs_state_is_read_back_as_it_was(
    config: dict[str, Any],
    attempt: Attempt | None,
    retries: RetryCounts,
    verdict: Verdict | None,
    state: State,
    sub_state: SubState,
    doomed: bool,
    time: int | None,
    priority: int | None,
    overtaken: int,
) -> None:
    job = Job(
        "j",
        "alice",
        parse_job(config),
        5,
        7,
        priority=priority,
        overtaken=overtaken,
        state=state,
        sub_state=sub_state,
        completed=time,
        attempt=attempt,
        retries=retries,
        not_before=time,
        verdict=verdict,
        doomed=doomed,
    )
    assert _read(job, json.dumps(config_of(config)), attempt) == job


@given(TASKS)
def test_a_task_is_read_back_as_it_was(task: Task) -> None:
    row: Any = rows.task_row(task)
    assert rows.read_task(row) == task


@given(ATTEMPTS)
def test_an_attempt_is_read_back_as_it_was(attempt: Attempt) -> None:
    row: Any = rows.attempt_row("j", attempt)
    assert rows.read_attempt(row) == attempt


@given(
    st.builds(
        JobEvent,
        st.just("j"),
        TIME,
        NAME,
        MESSAGES,
        st.none() | st.integers(0, 99),
        st.none() | NAME,
        st.none() | st.integers(0, 99),
        st.dictionaries(NAME, TEXT | st.integers() | st.none(), max_size=3),
    )
)
def test_a_job_event_is_read_back_as_it_was(entry: JobEvent) -> None:
    row: Any = rows.job_event_row(entry)
    assert rows.read_job_event(row) == entry


def test_only_small_job_jsons_are_kept_for_the_next_time() -> None:
    def config(pad: int) -> str:
        job = {"jobName": "j", "image": "i", "taskRoles": [{"name": "m", "command": "c"}]}
        return json.dumps({**job, "extras": {"pad": "x" * pad}})

    for pad, kept in ((10, True), (100_000, False)):
        first, second = (rows._spec(config(pad), "j") for _ in range(2))
        assert first == second
        assert (first.task_roles is second.task_roles) is kept
