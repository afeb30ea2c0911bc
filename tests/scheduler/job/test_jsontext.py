"""JSON text is read with or without comments and trailing commas; an error says where it is in the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.job.json_text import JsonTextError, loads_json, loads_jsonc
from tests.scheduler.job.strategies import any_json


def refused(text: str, load: Any = loads_jsonc) -> tuple[int, int, str]:
    with pytest.raises(JsonTextError) as error:
        load(text)
    return error.value.line, error.value.column, str(error.value.message)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("// first\n{} // last", {}),
        ("/* a\n b */ [1, /* inner */ 2] /**/", [1, 2]),
        ('{"url": "http://host/*no*/path"} // "text"', {"url": "http://host/*no*/path"}),
        (r'["a \" // b", "\\"] // c', ['a " // b', "\\"]),
        ('// "\n[1]', [1]),
        ("/* // */ 1", 1),
        ("// /*\n1", 1),
        ("1\r\n// x\r\n", 1),
        ("\ufeff// é\n1", 1),
        ("/*/ still a comment */ 2", 2),
    ],
)
def test_comments_are_passed_over_but_not_within_texts(text: str, value: object) -> None:
    assert loads_jsonc(text) == value


def test_comments_are_refused_where_json_is_strict() -> None:
    assert refused("// x\n1", loads_json)[:2] == (1, 1)


@pytest.mark.parametrize(
    ("text", "line", "column", "sentence"),
    [
        ("", 1, 1, "A value is expected here."),
        ("/* one\n two */ {,}", 2, 10, "A field name in double quotes"),
        ('{"a": "http://x" "b": 1}', 1, 18, "A comma is missing here"),
        ('// é\n{"a" 1}', 2, 6, "A colon is missing here"),
        ('\n\n["abc', 3, 2, "no closing quotation mark"),
        ('["a\nb"]', 1, 4, r"write it as \n"),
        (r'["\x"]', 1, 3, "written twice"),
        (r'["\u12"]', 1, 4, "four hexadecimal digits"),
        ("1 // one\n2", 2, 1, "there is something after it"),
        ("{}\n  /* open", 2, 3, "never ended"),
        ('["NaN",\n NaN]', 2, 2, "NaN is no number in JSON."),
        ("[1, -Infinity]", 1, 5, "-Infinity is no number"),
        ("[1,\n" + "9" * 5000 + "]", 2, 1, "too many digits"),
        ("[" * 100_000, 1, 1, "nested too deeply"),
        ("[1 / 2]", 1, 4, "A comma is missing here"),
    ],
)
def test_an_error_has_a_sentence_a_line_and_a_column(
    text: str, line: int, column: int, sentence: str
) -> None:
    found = refused(text)
    assert found[:2] == (line, column)
    assert sentence in found[2]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2, /* last */ ], "b": ",]", "c": "\\",}",\n}', {"a": [1, 2], "b": ",]", "c": '",}'}),
        ("[[1,],[{},],]", [[1], [{}]]),
        ('{"a": "x", // why\n}', {"a": "x"}),
    ],
)
def test_a_comma_may_stand_before_a_closing_bracket(text: str, value: object) -> None:
    assert loads_jsonc(text) == value


@pytest.mark.parametrize(
    ("text", "column"),
    [("[,]", 2), ("[ , ]", 3), ("{,}", 2), ("[1,,]", 4), ("[1,/**/,]", 8), ('{"a":,}', 6), ("1,", 2)],
)
def test_a_comma_without_a_value_before_it_is_refused_where_it_stands(text: str, column: int) -> None:
    assert refused(text)[:2] == (1, column)


def test_a_comma_too_many_is_called_so_where_json_is_strict() -> None:
    line, column, sentence = refused('{"a": 1,}', loads_json)
    assert line == 1
    # newer versions of Python point at the comma, older ones behind it
    assert column in (8, 9)
    assert "comma" in sentence
    assert "too many" in sentence


def test_a_byte_order_mark_does_not_count_as_a_column() -> None:
    assert refused("\ufeffx")[:2] == (1, 1)


def test_every_complaint_can_be_read_in_chinese() -> None:
    with pytest.raises(JsonTextError) as error:
        loads_jsonc("[1 2]")
    assert error.value.message.in_locale("zh_CN") != str(error.value.message)


comments = st.sampled_from(["", " ", "/* a */", "// b\n", '/* " */', '// " //\n', "/**/\n"])


@given(any_json.filter(lambda value: value == value), st.lists(comments, min_size=1))
def test_comments_and_trailing_commas_change_nothing(value: Any, between: list[str]) -> None:
    try:
        text = json.dumps(value, indent=1, allow_nan=False)
    except ValueError:
        return
    lines = text.split("\n")
    for number, after in enumerate(lines[1:]):
        if after.strip()[0] in "]}" and not lines[number].endswith(("[", "{")):
            lines[number] += ","
    commented = "".join(f"{line}{between[number % len(between)]}\n" for number, line in enumerate(lines))
    assert loads_jsonc(commented) == value


@given(st.text(alphabet='{}[]"\\/*,:1en \n\t\u2028é', max_size=30))
def test_any_text_is_either_json_or_refused_in_a_sentence(text: str) -> None:
    refusal: JsonTextError | None = None
    try:
        loads_jsonc(text)
    except JsonTextError as error:
        refusal = error
    if refusal is not None:
        assert 1 <= refusal.line <= text.count("\n") + 1
        assert refusal.column >= 1
        assert str(refusal.message)
