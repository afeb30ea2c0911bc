"""The input for a length of time."""

from __future__ import annotations

from typing import Any

import pytest

from pai_labextension.widgets.duration import DurationField
from pai_labextension.widgets.json_edit import ABSENT
from pai_labextension.widgets.language import Language


@pytest.fixture
def given() -> list[Any]:
    return []


@pytest.fixture
async def field(given: list[Any]) -> DurationField:
    return DurationField(Language("en"), "Time limit", given.append)


@pytest.mark.parametrize(
    ("seconds", "typed", "unit"), [(7200, "2", "hours"), (5400, "90", "minutes"), (61, "61", "seconds")]
)
async def test_seconds_are_shown_in_the_largest_unit_that_has_them_whole(
    field: DurationField, given: list[Any], seconds: int, typed: str, unit: str
) -> None:
    field.load(seconds)
    assert (field.entry.value, field.unit.label) == (typed, unit)
    assert given == []


@pytest.mark.parametrize(
    ("typed", "seconds"), [("1.5", 5400), ("1,5", 5400), ("0", 0), ("-1", -3600), ("0.0001", 0.36)]
)
async def test_a_number_is_given_in_seconds_whatever_stands_beside_it(
    field: DurationField, given: list[Any], typed: str, seconds: float
) -> None:
    field.entry.value = typed
    assert given == [seconds]
    field.load(given[-1])
    assert field.entry.value == typed, "what a person typed stays"


async def test_another_unit_is_another_time(field: DurationField, given: list[Any]) -> None:
    field.load(7200)
    field.unit.label = "minutes"
    assert given == [120]


async def test_a_blank_is_no_limit_and_what_is_no_number_is_left_to_the_validation(
    field: DurationField, given: list[Any]
) -> None:
    field.entry.value = "two days"
    field.entry.value = " "
    assert given == ["two days", ABSENT]
    field.load("P1D")
    assert field.entry.value == "P1D"
