"""What the versions of Hadoop say, and what we make of it."""

from __future__ import annotations

import json

import pytest

from pai_scheduler.storage.hdfs.client import refusal, remote
from pai_scheduler.storage.paths import Problem, StoragePath

PATH = StoragePath.parse("/alice/file")


def answer(name: str, sentence: str, status: int = 403) -> tuple[int, bytes]:
    told = {"exception": name, "javaClassName": f"org.apache.hadoop.{name}", "message": sentence}
    return status, json.dumps({"RemoteException": told}).encode()


@pytest.mark.parametrize(
    ("name", "sentence", "problem"),
    [
        ("FileNotFoundException", "File does not exist: /alice/file", Problem.NOT_FOUND),
        ("FileNotFoundException", "Path is not a file: /alice/file", Problem.IS_A_FOLDER),
        ("FileAlreadyExistsException", "/alice/file for client 127.0.0.1 already exists", Problem.EXISTS),
        ("FileAlreadyExistsException", "Path is not a directory: /alice/file", Problem.EXISTS),
        ("FileAlreadyExistsException", "Parent path is not a directory: /alice/file x", Problem.NOT_A_FOLDER),
        ("FileAlreadyExistsException", "Cannot append to directory /alice", Problem.IS_A_FOLDER),
        # below a file: Hadoop 2.7, and 3
        (
            "AccessControlException",
            'Permission denied: user=alice, access=EXECUTE, inode="/alice/file/x":alice:alice:-rw-r--r--',
            Problem.NOT_A_FOLDER,
        ),
        ("ParentNotDirectoryException", "/alice/file (is not a directory)", Problem.NOT_A_FOLDER),
        (
            "AccessControlException",
            'Permission denied: user=bob, access=EXECUTE, inode="/alice":alice:alice:drwx------',
            Problem.DENIED,
        ),
        ("PathIsNotEmptyDirectoryException", "`/a is non empty': Directory is not empty", Problem.NOT_EMPTY),
        ("IOException", "rename destination directory is not empty: /alice/x", Problem.NOT_EMPTY),
        ("IOException", "Offset=5 out of the range [0, 1); OPEN, path=/alice/file", Problem.INVALID),
        ("DSQuotaExceededException", "The DiskSpace quota of /alice is exceeded", Problem.NO_SPACE),
        ("NSQuotaExceededException", "The NameSpace quota of /alice is exceeded", Problem.NO_SPACE),
        ("InvalidPathException", "Invalid path name", Problem.INVALID),
        ("UnsupportedOperationException", "Symlinks not supported", Problem.UNSUPPORTED),
        ("IOException", "could only be replicated to 0 nodes instead of minReplication", Problem.UNAVAILABLE),
        ("AlreadyBeingCreatedException", "Failed to APPEND_FILE /alice/file", Problem.UNAVAILABLE),
    ],
)  # fmt: skip
def test_an_exception_of_hadoop_becomes_the_kind_that_programs_know(
    name: str, sentence: str, problem: Problem
) -> None:
    assert refusal(PATH, remote(*answer(name, sentence)), "pai").problem is problem


def test_the_servers_sentence_is_kept_without_its_java() -> None:
    sentence = (
        "No lease on /alice/file\n\tat org.apache.hadoop.hdfs.FSNamesystem.checkLease(FSNamesystem.java:3517)"
    )
    error = refusal(PATH, remote(*answer("IOException", sentence)), "pai")
    assert "No lease on /alice/file" in str(error)
    assert "java" not in str(error)


@pytest.mark.parametrize("name", ["SecurityException", "AuthorizationException", "AccessControlException"])
def test_who_may_not_act_for_users_is_told_what_the_administrator_sets(name: str) -> None:
    sentence = "User: pai is not allowed to impersonate alice"
    error = refusal(PATH, remote(*answer(name, sentence)), "pai")
    assert error.problem is Problem.DENIED
    assert "hadoop.proxyuser.pai.hosts" in str(error)
    assert "hadoop.proxyuser.pai.groups" in str(error)
    assert sentence in str(error)


@pytest.mark.parametrize("body", [b"", b"<html>not here</html>", b"[]", b'{"error": 1}', b"\xff"])
def test_what_does_not_speak_webhdfs_is_said_to_be_so(body: bytes) -> None:
    error = refusal(PATH, remote(404, body), "pai")
    assert error.problem is Problem.UNAVAILABLE
    assert "does not speak WebHDFS (HTTP 404)" in str(error)


def test_a_refused_login_mentions_kerberos() -> None:
    error = refusal(PATH, remote(401, b"<html>Authentication required</html>"), "pai")
    assert error.problem is Problem.DENIED
    assert "kinit" in str(error)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("StandbyException", "Operation category READ is not supported in state standby"),
        ("RetriableException", "Namenode is in startup mode"),
        ("IOException", "Namenode is in startup mode"),
        ("SafeModeException", "Cannot create file/alice/file. Name node is in safe mode."),
        ("RemoteException", "Cannot delete /alice/file. Name node is in safe mode."),
    ],
)
def test_a_name_node_that_cannot_now_may_be_asked_again(name: str, sentence: str) -> None:
    assert remote(*answer(name, sentence)).may_pass
    assert not remote(*answer("FileNotFoundException", "File does not exist")).may_pass
