"""Each refusal has a status and an exception that clients of Hadoop know."""

from __future__ import annotations

import pytest

from pai_scheduler.api.webhdfs.request import refusal_answer, refusal_of, remote_exception
from pai_scheduler.i18n import msg
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.storage.paths import Problem, StorageError

SENTENCE = msg("This scheduler has no storage for files.")


@pytest.mark.parametrize("problem", list(Problem))
def test_every_problem_has_an_exception_of_hadoops(problem: Problem) -> None:
    refusal = refusal_of(StorageError(problem, SENTENCE))
    assert 400 <= refusal.status < 600
    body = refusal_answer(refusal, "words")["RemoteException"]
    assert body["exception"] == refusal.code
    assert body["javaClassName"].startswith(("java.", "org.apache.hadoop."))


def test_only_what_is_missing_is_said_not_to_exist() -> None:
    said = {
        problem: refusal_answer(refusal_of(StorageError(problem, SENTENCE)), "没有")["RemoteException"][
            "message"
        ]
        for problem in Problem
    }
    assert {problem for problem, message in said.items() if "does not exist" in message} == {
        Problem.NOT_FOUND
    }
    assert said[Problem.NOT_FOUND].startswith("没有")


@pytest.mark.parametrize(
    ("status", "code", "exception"),
    [
        (401, "UnauthorizedUserError", "SecurityException"),
        (403, "ForbiddenUserError", "AccessControlException"),
        (404, "NoStorageError", "FileNotFoundException"),
        (503, "HubUnreachableError", "RetriableException"),
        (400, "InvalidParametersError", "IllegalArgumentException"),
        (500, "UnknownError", "RuntimeException"),
        (403, "InvalidToken", "InvalidToken"),
    ],
)
def test_what_the_rest_of_the_api_refuses_has_one_too(status: int, code: str, exception: str) -> None:
    answer = refusal_answer(RequestError(status, code, SENTENCE), "words")
    assert answer == remote_exception(exception, "words")
