"""What an authFile says, and what a person is told about one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_scheduler.engine.protocol import RegistryLogin
from pai_scheduler.job.parse import parse_job
from pai_scheduler.registry_login import LoginError, parse_login, read_login
from pai_scheduler.storage.local import storage_for

URI = "file:///s/alice/auth"


@pytest.mark.parametrize(
    "text",
    [
        "lab.example:5000\nalice\np4ss word",
        "lab.example:5000\nalice\np4ss word\n",
        "\ufefflab.example:5000\r\nalice\r\np4ss word\r\n\r\n",
        " lab.example:5000 \n alice \np4ss word\n  \n",
    ],
)
def test_three_lines_are_the_registry_the_user_and_the_password(text: str) -> None:
    assert parse_login(text.encode(), URI) == RegistryLogin("lab.example:5000", "alice", "p4ss word")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: the registry is missing"),
        ("\nalice\nsecret", "line 1: the registry is missing"),
        ("lab\n\nsecret", "line 2: the user name is missing"),
        ("lab", "line 2: the user name is missing"),
        ("lab\nalice\n", "line 3: the password is missing"),
        ("lab\nalice\n \n", "line 3: the password is missing"),
        ("lab\nalice\nsecret\nsecret too\n", "line 4: there is more than three lines"),
    ],
)
def test_a_wrong_line_is_named_and_the_password_is_not(text: str, problem: str) -> None:
    with pytest.raises(LoginError) as caught:
        parse_login(text.encode(), URI)
    said = str(caught.value)
    assert said.startswith(f"The authFile {URI} cannot be used: {problem}. It has three lines:")
    assert "secret" not in said


def test_a_file_that_is_no_text_is_said_to_be_none() -> None:
    with pytest.raises(LoginError, match="it is not UTF-8 text"):
        parse_login(b"\xff\xfe\x00", URI)


def test_a_password_is_not_shown_with_the_login() -> None:
    assert "p4ss" not in repr(parse_login(b"lab\nalice\np4ss\n", URI))


async def read(default_fs_uri: str, auth_file: str) -> RegistryLogin | None:
    spec = parse_job(
        {
            "jobName": "j",
            "image": "i",
            "authFile": auth_file,
            "taskRoles": [{"name": "main", "command": "true"}],
        }
    )
    return await read_login(spec, "alice", default_fs_uri, storage_for(default_fs_uri))


async def test_the_file_is_found_with_the_variables_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / "auth-j").write_text("lab\nalice\nsecret\n")
    uri = "$PAI_DEFAULT_FS_URI/${PAI_USER_NAME}/auth-$PAI_JOB_NAME"
    assert await read(tmp_path.as_uri(), uri) == RegistryLogin("lab", "alice", "secret")


async def test_a_job_without_one_pulls_as_nobody(tmp_path: Path) -> None:
    assert await read(tmp_path.as_uri(), "") is None


async def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "alice").mkdir()
    uri = f"{tmp_path.as_uri()}/alice/none"
    with pytest.raises(LoginError) as caught:
        await read(tmp_path.as_uri(), uri)
    assert str(caught.value) == f"The authFile cannot be read. There is no file {uri}."


async def test_a_storage_that_cannot_be_read_here_is_said_to_be_so() -> None:
    with pytest.raises(LoginError, match=r"the scheduler cannot read the cluster's storage hdfs://far"):
        await read("hdfs://far", "hdfs://far/alice/auth")
