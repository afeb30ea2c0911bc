"""Paths and values are written so that a person finds and recognises them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.job.json_path import Path, field_name, kind_of, path_text, quoted


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ((), "$", "$"),
        (("jobName",), "$.jobName", "jobName"),
        (("taskRoles", 0, "name"), "$.taskRoles[0].name", "name"),
        (("taskRoles", 12), "$.taskRoles[12]", "taskRoles[12]"),
        (("jobEnvs", "a b"), '$.jobEnvs["a b"]', '"a b"'),
        (("jobEnvs", 'q"'), '$.jobEnvs["q\\""]', '"q\\""'),
        (("extras", "名", 1, 2), '$.extras["名"][1][2]', '"名"[1][2]'),
        (("extras", "\ud800"), '$.extras["\\ud800"]', '"\\ud800"'),
        (("extras", "x" * 100), "$.extras." + "x" * 100, '"' + "x" * 60 + '…"'),
    ],
)
def test_a_path_and_the_name_of_its_field(path: Path, text: str, name: str) -> None:
    assert path_text(path) == text
    assert field_name(path) == name


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        ("2\n", r'the text "2\n"'),
        (1.5, "the number 1.5"),
        pytest.param(10**5000, "the number 1e309…", id="enormous"),
        pytest.param(-(10**5000), "the number -1e309…", id="enormous below zero"),
        ([], "a list"),
        ({}, "an object"),
        (b"", "no JSON value"),
    ],
)
def test_a_value_is_called_by_what_it_is(value: object, text: str) -> None:
    assert str(kind_of(value)) == text


@given(st.text())
def test_whatever_is_quoted_is_short_and_can_be_printed(text: str) -> None:
    assert len(quoted(text)) <= 6 * 61 + 2
    assert quoted(text).encode("utf-8")
