"""Traces are read, written, and refused with the place where they are wrong."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.simulator.traces import TraceError, TraceJob, TraceRole, read_trace, write_trace

roles = st.builds(
    TraceRole,
    st.integers(1, 100),
    st.integers(0, 16),
    st.integers(0, 64),
    st.integers(0, 10**6),
    st.integers(0, 1000),
)
words = st.text("abcäß ,\"';-0", min_size=1).map(str.strip).filter(bool)


@st.composite
def trace_jobs(draw: st.DrawFn) -> list[TraceJob]:
    count = draw(st.integers(0, 6))
    return [
        TraceJob(
            f"{draw(words)}{number}",
            draw(words),
            draw(words),
            draw(st.integers(0, 10**13)),
            draw(st.integers(0, 10**10)),
            tuple(draw(st.lists(roles, min_size=1, max_size=3))),
            draw(st.none() | words),
            draw(st.none() | st.integers(0, 100)),
            draw(st.none() | st.integers(1, 10**6)),
            draw(st.booleans()),
        )
        for number in range(count)
    ]


@given(trace_jobs())
def test_what_is_written_is_read_again(jobs: list[TraceJob]) -> None:
    file = StringIO()
    assert write_trace(file, jobs) == len(jobs)
    file.seek(0)
    assert read_trace(file) == jobs


def read(*lines: str) -> list[TraceJob]:
    return read_trace(line + "\n" for line in lines)


def test_two_columns_are_enough() -> None:
    assert read("submitSeconds,runSeconds", "0.5,10") == [
        TraceJob("2", "somebody", "default", 500, 10_000, (TraceRole(),))
    ]


def test_lines_of_one_job_that_follow_one_another_are_its_task_roles() -> None:
    jobs = read(
        "job,submitSeconds,runSeconds,tasks,gpus",
        "train,0,5,4,8",
        "train,0,5,1,0",
        "other,1,5,,1",
        ",2,5,1,1",
        ",2,5,1,1",
        "train,3,5,1,1",
    )
    assert [(job.name, job.roles, job.gpus) for job in jobs] == [
        ("train", (TraceRole(4, 8), TraceRole(1, 0)), 32),
        ("other", (TraceRole(1, 1),), 1),
        ("5", (TraceRole(1, 1),), 1),
        ("6", (TraceRole(1, 1),), 1),
        ("train", (TraceRole(1, 1),), 1),
    ]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["submitSeconds", "1"], "it has no column runSeconds. Known are: job, user,"),
        ([], "it has no column submitSeconds."),
        (["submitSeconds,runSeconds,gpu", "1,1,1"], "column gpu is not known. Known are: job,"),
        (["submitSeconds,runSeconds", "1"], "line 2: it has not as many cells as the first line"),
        (["submitSeconds,runSeconds", "1,2,3"], "line 2: it has not as many cells as the first line"),
        (["submitSeconds,runSeconds", "1,"], "line 2: runSeconds must be a number, 0 or more, not “”"),
        (
            ["submitSeconds,runSeconds", "1,2", "x,2"],
            "line 3: submitSeconds must be a number, 0 or more, not “x”",
        ),
        (
            ["submitSeconds,runSeconds", "nan,2"],
            "line 2: submitSeconds must be a number, 0 or more, not “nan”",
        ),
        (["submitSeconds,runSeconds", "-1,2"], "line 2: submitSeconds must be a number, 0 or more, not “-1”"),
        (
            ["submitSeconds,runSeconds,gpus", "1,2,1.5"],
            "line 2: gpus must be a whole number, 0 or more, not “1.5”",
        ),
        (
            ["submitSeconds,runSeconds,tasks", "1,2,0"],
            "line 2: tasks must be a whole number, 1 or more, not “0”",
        ),
        (
            ["submitSeconds,runSeconds,preemptible", "1,2,maybe"],
            "line 2: preemptible must be true or false, not “maybe”",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(lines: list[str], sentence: str) -> None:
    with pytest.raises(TraceError) as refused:
        read(*lines)
    assert str(refused.value.message).startswith(sentence)


def test_a_job_is_given_to_the_scheduler_as_it_was_recorded() -> None:
    job = TraceJob("j", "a", "vc", 0, 1, (TraceRole(2, 4, 8, 100, 5),), "V100", 7, 60, preemptible=False)
    spec = job.spec
    assert (spec.virtual_cluster, spec.gpu_type, spec.priority, spec.max_run_seconds) == ("vc", "V100", 7, 60)
    assert (spec.preemptible, spec.total_tasks, spec.total_gpus) == (False, 2, 8)
    role = spec.task_roles[0]
    assert (role.cpu_number, role.memory_mb, role.storage_gb) == (8, 100, 5)
