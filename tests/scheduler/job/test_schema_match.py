"""The fast look at a job JSON accepts nothing that is wrong, and all that people usually write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from pai_scheduler.job import schema_errors
from pai_scheduler.job.json_text import loads_jsonc
from pai_scheduler.job.validation import matches_schema
from tests.scheduler.job.strategies import any_json, jobs, nearly_jobs
from tests.scheduler.job.test_validate import FIXTURES
from tests.scheduler.making import make_config
from tests.testbed.properties import examples


@given(any_json | nearly_jobs | jobs)
@settings(max_examples=examples(300), deadline=None)
def test_what_it_accepts_has_no_error(config: Any) -> None:
    if matches_schema(config):
        assert not list(schema_errors.schema_errors(config))


@given(jobs)
@settings(max_examples=examples(200), deadline=None)
def test_it_accepts_what_has_no_error_and_no_number_that_is_written_with_a_point(
    config: dict[str, Any],
) -> None:
    if not list(schema_errors.schema_errors(config)) and "." not in repr(_numbers(config)):
        assert matches_schema(config)


def _numbers(config: dict[str, Any]) -> list[object]:
    roles = config.get("taskRoles", [])
    return [value for role in roles for value in role.values() if isinstance(value, float)]


@pytest.mark.parametrize("file", sorted(FIXTURES.iterdir()), ids=lambda file: file.name)
def test_it_accepts_the_documents_job_files(file: Any) -> None:
    assert matches_schema(loads_jsonc(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "wrong",
    [
        {"jobName": "ends-with-a-break\n"},
        {"jobName": "."},
        {"jobName": True},
        {"unknown": 1},
        {"retryCount": True},
        {"retryCount": "twice"},
        {"jobEnvs": {"list": []}},
        {"extras": {"placement": "far"}},
        {"taskRoles": []},
        {"taskRoles": [{"name": "main"}]},
    ],
)
def test_it_does_not_accept_what_is_wrong(wrong: dict[str, Any]) -> None:
    assert matches_schema(make_config())
    assert not matches_schema(make_config() | wrong)
