"""The names of tasks in addresses: what is one, and what can be none."""

from __future__ import annotations

import pytest

from pai_labextension.tasks.connections import NoTaskError, TaskName


def test_a_task_is_named_by_its_user_job_role_and_index():
    task = TaskName.read("王 小/明", "train-1.0~b", "task_1-12")
    assert (task.user, task.job, task.role, task.index, task.task) == (
        "王 小/明",
        "train-1.0~b",
        "task_1",
        12,
        "task_1-12",
    )


@pytest.mark.parametrize(
    ("user", "job", "task"),
    [
        ("", "a", "r-0"),
        ("a\nb", "a", "r-0"),
        ("a", "b+c", "r-0"),
        ("a", "..", "r-0"),
        ("a", "b/c", "r-0"),
        ("a", "", "r-0"),
        ("a", "b", "r"),
        ("a", "b", "r-"),
        ("a", "b", "r-0x"),
        ("a", "b", "r+s-0"),
        ("a", "b", "r-٣"),
        ("a", "b", "r-0\n"),
    ],
)
def test_what_could_be_read_as_another_task_is_none(user, job, task):
    with pytest.raises(NoTaskError):
        TaskName.read(user, job, task)
