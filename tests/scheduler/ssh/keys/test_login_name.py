"""Login names: every way to read one, the most precise first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.ssh.login import LoginName, readings


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("alice", [("alice", "", "")]),
        ("alice+mnist", [("alice", "mnist", ""), ("alice+mnist", "", "")]),
        (
            "a+mnist+worker-0",
            [("a", "mnist", "worker-0"), ("a+mnist", "worker-0", ""), ("a+mnist+worker-0", "", "")],
        ),
        ("a+b+c+d", [("a+b", "c", "d"), ("a+b+c", "d", ""), ("a+b+c+d", "", "")]),
        ("", []),
        ("alice+", [("alice+", "", "")]),
        ("+job", [("+job", "", "")]),
    ],
)
def test_a_name_is_read_in_every_way(name: str, read: list[tuple[str, str, str]]) -> None:
    assert [(found.user, found.job, found.task) for found in readings(name)] == read


@given(
    st.text(min_size=1),
    st.from_regex(r"[a-z0-9-]+", fullmatch=True),
    st.from_regex(r"[a-z]+-\d", fullmatch=True),
)
def test_what_was_meant_is_among_the_readings_whatever_the_user_is_called(
    user: str, job: str, task: str
) -> None:
    for meant in (LoginName(user), LoginName(user, job), LoginName(user, job, task)):
        assert meant in readings(str(meant))
