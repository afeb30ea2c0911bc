"""A JobSpec knows its totals, its standard ports and whether it is debugged."""

from __future__ import annotations

import pytest

from pai_scheduler.job.spec import JobSpec, PortRequest, Scalar, TaskRole

SPEC = JobSpec(
    "j",
    "i",
    (TaskRole("a", "x", task_number=2, gpu_number=3), TaskRole("b", "x", task_number=4, gpu_number=1)),
)


def test_totals_are_over_all_tasks_of_all_roles() -> None:
    assert SPEC.total_tasks == 6
    assert SPEC.total_gpus == 10


def test_a_role_is_found_by_its_name() -> None:
    assert SPEC.role("b").task_number == 4
    with pytest.raises(KeyError):
        SPEC.role("c")


def test_every_role_has_an_http_and_an_ssh_port_listed_or_not() -> None:
    http, ssh = PortRequest("http", 0, 1), PortRequest("ssh", 0, 1)
    own = PortRequest("ssh", 22, 2)
    assert TaskRole("a", "x").all_ports == (http, ssh)
    assert TaskRole("a", "x", ports=(own,)).all_ports == (own, http)


@pytest.mark.parametrize(
    ("value", "debug"), [(True, True), ("true", True), (False, False), ("false", False), (None, False)]
)
def test_is_debug_is_true_whether_json_or_a_form_said_so(value: Scalar, debug: bool) -> None:
    assert JobSpec("j", "i", (), envs={"isDebug": value}).is_debug is debug
