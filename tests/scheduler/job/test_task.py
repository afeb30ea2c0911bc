"""A task's name is good for containers, files and hosts alike, and can be read back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.job.task import TaskRef

refs = st.builds(
    TaskRef,
    st.from_regex(r"\A[a-z0-9]{1,12}\Z"),
    st.integers(0, 10**6),
    st.from_regex(r"\A[A-Za-z0-9._~]{1,20}\Z"),
    st.integers(0, 9999),
)


@given(refs)
def test_a_name_is_read_back_as_the_task_it_was_made_of(ref: TaskRef) -> None:
    assert TaskRef.parse(ref.name) == ref


@given(refs)
def test_a_name_is_one_that_docker_accepts(ref: TaskRef) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+", ref.name)


@given(refs, refs)
def test_different_tasks_have_different_names(one: TaskRef, other: TaskRef) -> None:
    assert (one.name == other.name) == (one == other)


@pytest.mark.parametrize("name", ["", "pai-", "pai-a-b-c-1", "x-pai-a-0-r-1", "pai-a-0-r-1\n", "pai-a-0-r-"])
def test_other_names_are_not_ours(name: str) -> None:
    assert TaskRef.parse(name) is None


def test_tasks_know_each_other_by_role_and_index() -> None:
    assert TaskRef("j1", 3, "worker", 2).hostname == "worker-2"
