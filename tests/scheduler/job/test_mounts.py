"""Where data and a home may be mounted, and what a person is told about a place where it may not."""

from __future__ import annotations

import pytest

from pai_scheduler.job.spec import MountRequest
from pai_scheduler.job.validation import parse_job, validate


def job(*targets: object, **mount: object) -> dict[str, object]:
    mounts = [{"source": "/Public/data", "target": target, **mount} for target in targets]
    return {
        "jobName": "j",
        "image": "i",
        "taskRoles": [{"name": "main", "command": "true"}],
        "extras": {"mounts": mounts},
    }


def complaints(*targets: object, **mount: object) -> list[str]:
    return [str(error) for error in validate(job(*targets, **mount))]


def test_a_mount_is_a_source_and_a_target() -> None:
    assert parse_job(job("data")).mounts == (MountRequest("/Public/data", "data"),)
    assert parse_job({**job(), "extras": {}}).mounts == ()


@pytest.mark.parametrize(
    "target", ["data", "data/train", "/data", "/mnt/data", "/home/me/x", "etc", "数据 集"]
)
def test_data_may_be_in_the_working_folder_and_beside_the_system(target: str) -> None:
    assert complaints(target) == []


@pytest.mark.parametrize("target", ["/", "//", ".", "..", "../x", "a/../b", "a/./b", "/data/..", "a\0b"])
def test_a_path_that_leads_elsewhere_is_no_target(target: str) -> None:
    (complaint,) = complaints(target)
    assert complaint.startswith("$.extras.mounts[0].target: ")
    assert "without . and .." in complaint


@pytest.mark.parametrize(
    "target",
    [
        *("/etc", "/etc/ssl", "//etc", "/pai", "/pai/x", "/pai-job", "/proc", "/usr/lib", "/home", "/var/"),
        *("/opt", "/opt/pai", "/opt/pai/bin"),
    ],
)
def test_a_mount_never_hides_system_folders(target: str) -> None:
    (complaint,) = complaints(target)
    assert "would hide a part of the system" in complaint


@pytest.mark.parametrize(
    ("first", "second"), [("data", "data"), ("data", "data/"), ("data", "data/train"), ("/a/b", "/a")]
)
def test_two_mounts_are_not_within_each_other(first: str, second: str) -> None:
    (complaint,) = complaints(first, second)
    assert complaint.startswith("$.extras.mounts[1].target: ")


@pytest.mark.parametrize("home", ["/home/jovyan", "/data", "/opt/me", "/主目录/"])
def test_a_home_may_be_beside_the_system(home: str) -> None:
    with_home = {**job(), "extras": {"home": home}}
    assert validate(with_home) == []
    assert parse_job(with_home).home == home


def test_a_job_has_no_home_that_it_does_not_ask_for() -> None:
    assert parse_job(job()).home == ""


@pytest.mark.parametrize(
    ("home", "words"),
    [
        ("", ""),
        (True, ""),
        ({"target": "/x"}, ""),
        ("home", "name a path from / on"),
        ("/home/../etc", "without . and .."),
        ("/", "without . and .."),
        ("/a\0b", "without . and .."),
        *(
            (place, "would hide a part of the system")
            for place in ("/home", "/etc", "/pai", "/pai/x", "//usr/x")
        ),
    ],
)
def test_a_home_is_where_a_mount_may_be(home: object, words: str) -> None:
    (complaint,) = [str(error) for error in validate({**job(), "extras": {"home": home}})]
    assert complaint.startswith("$.extras.home: ")
    assert words in complaint


@pytest.mark.parametrize("target", ["/home/me", "/home/me/", "/home/me/data"])
def test_a_mount_is_not_where_the_home_is(target: str) -> None:
    extras = {"home": "/home/me", "mounts": [{"source": "/Public/data", "target": target}]}
    (complaint,) = [str(error) for error in validate({**job(), "extras": extras})]
    assert complaint.startswith("$.extras.mounts[0].target: ")
    assert "are the same place, or one is within the other" in complaint


def test_a_relative_and_an_absolute_target_are_not_the_same() -> None:
    assert complaints("data", "/data", "data2") == []


@pytest.mark.parametrize(
    ("mount", "path"),
    [
        ({"target": 7}, "$.extras.mounts[0].target"),
        ({"target": ""}, "$.extras.mounts[0].target"),
        ({"source": ""}, "$.extras.mounts[0].source"),
        ({"readOnly": False}, "$.extras.mounts[0].readOnly"),
    ],
)
def test_what_is_no_mount_is_said_to_be_none(mount: dict[str, object], path: str) -> None:
    (complaint,) = complaints("data", **mount)
    assert complaint.startswith(f"{path}: ")


def test_mounts_are_a_list() -> None:
    assert validate({**job(), "extras": {"mounts": {"source": "/x", "target": "y"}}})
    assert validate({**job(), "extras": {"mounts": ["x"]}})
    assert len(validate(job(*(f"d{number}" for number in range(21))))) == 1
