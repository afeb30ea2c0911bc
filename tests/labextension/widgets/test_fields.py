"""The inputs of the form."""

from __future__ import annotations

from typing import Any

import pytest

from pai_labextension.widgets.fields import (
    CheckField,
    ChoiceField,
    IntegerField,
    LimitField,
    SuggestField,
    TextField,
    integer,
)
from pai_labextension.widgets.json_edit import ABSENT


@pytest.fixture
def given() -> list[Any]:
    return []


async def test_loading_a_value_is_no_edit(given: list[Any]) -> None:
    text = TextField("Name", given.append)
    text.load("abc")
    number = IntegerField("CPUs", given.append)
    number.load(3)
    check = CheckField("Debug", given.append)
    check.load(True)
    choice = ChoiceField("Type", given.append, unknown=str)
    choice.load("P100")
    limit = LimitField("Limit", given.append, absent="a", null="n", number="x")
    limit.load(4)
    assert given == []
    assert (text.entry.value, number.entry.value, check.entry.value) == ("abc", "3", True)
    assert (choice.entry.value, limit.entry.value, limit.number.value) == ("P100", "number", "4")


@pytest.mark.parametrize(
    ("typed", "value"),
    [("12", 12), (" 08 ", 8), ("-1", -1), ("", ABSENT), ("  ", ABSENT), ("1.5", "1.5"), ("many", "many")],
)
async def test_a_number_is_read_and_what_is_none_stays_as_typed(
    given: list[Any], typed: str, value: Any
) -> None:
    field = IntegerField("CPUs", given.append)
    field.entry.value = "x"
    field.entry.value = typed
    assert given[-1] == value
    assert integer(typed) == value


async def test_what_a_person_typed_is_not_rewritten_while_it_means_the_same(given: list[Any]) -> None:
    field = IntegerField("CPUs", given.append)
    field.entry.value = "08"
    field.load(8)
    assert field.entry.value == "08"
    field.load(True)
    assert field.entry.value == "true"
    field.load("8")
    assert field.entry.value == "8"


async def test_wrong_values_are_shown_as_json(given: list[Any]) -> None:
    field = TextField("Name", given.append)
    field.load([1, None])
    assert field.entry.value == "[1, null]"


async def test_a_blank_text_may_mean_an_absent_value(given: list[Any]) -> None:
    field = TextField("Folder", given.append, when_blank=ABSENT)
    field.load("/data")
    field.entry.value = ""
    assert given == [ABSENT]


async def test_a_choice_that_is_not_offered_is_kept_and_said_to_be_missing(given: list[Any]) -> None:
    field = ChoiceField("Type", given.append, unknown="{} (missing)".format)
    field.load("TITANX")
    field.offer([("any", ""), ("P100: 2 free", "P100")])
    assert field.entry.value == "TITANX"
    assert ("TITANX (missing)", "TITANX") in field.entry.options
    field.entry.value = "P100"
    assert given == ["P100"]
    field.offer([("any", ""), ("P100: 1 free", "P100")])
    assert field.entry.value == "P100"
    assert field.entry.label == "P100: 1 free"
    assert given == ["P100"]


async def test_a_limit_tells_absent_null_and_a_number_apart(given: list[Any]) -> None:
    field = LimitField("Limit", given.append, absent="a", null="n", number="x")
    field.load(ABSENT)
    assert field.number.layout.display == "none"
    field.entry.value = "null"
    field.entry.value = "number"
    assert field.number.layout.display is None
    field.number.value = "3"
    field.number.value = ""
    field.number.value = "few"
    field.entry.value = "absent"
    assert given == [None, 1, 3, "", "few", ABSENT]


async def test_errors_stand_beneath_the_input_escaped_and_go_away(given: list[Any]) -> None:
    field = TextField("Name", given.append)
    field.show_errors(["<b> is no name"])
    assert "&lt;b&gt; is no name" in field.problem
    assert 'role="alert"' in field.problem
    field.show_errors([])
    assert field.problem == ""


async def test_a_value_of_ones_own_is_taken_beside_those_suggested(given: list[Any]) -> None:
    field = SuggestField("Image", given.append)
    field.suggest(["python:3.12"])
    field.entry.value = "mine"
    assert given == ["mine"]
    assert field.entry.options == ("python:3.12",)


async def test_a_hint_stands_beneath_and_is_escaped(given: list[Any]) -> None:
    field = TextField("Image", given.append)
    assert field.hint == ""
    field.show_hint("a <b>")
    field.show_hint("c <d>")
    assert field.hint == field.children[-1].value == "c &lt;d&gt;"
    assert len([child for child in field.children if "&lt;" in getattr(child, "value", "")]) == 1
