"""One value changes; everything else a person wrote stays."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_labextension.widgets.json_edit import ABSENT, edit
from pai_scheduler.job.json_text import loads_jsonc

COMMENTED = """{
  "jobName": "a", // what it is called
  // which image
  "image": "b",
  "taskRoles": [
    {
      "name": "worker", /* two of them */
      "taskNumber": 2
    }
  ] // the end
}
"""


def test_a_changed_value_leaves_comments_and_layout_alone() -> None:
    assert edit(COMMENTED, ("taskRoles", 0, "taskNumber"), 3) == COMMENTED.replace("2\n", "3\n")


def test_a_new_member_comes_after_the_last_one_and_its_comment() -> None:
    text = edit(COMMENTED, ("gpuType",), "P100")
    assert '] // the end\n  "gpuType": "P100"\n}' in text.replace("], // the end", "] // the end")
    assert loads_jsonc(text)["gpuType"] == "P100"


def test_a_removed_member_takes_its_line_but_not_the_comment_of_the_next() -> None:
    text = edit(COMMENTED, ("image",), ABSENT)
    assert "// which image" in text
    assert '"image"' not in text
    assert "\n\n" not in text
    assert "image" not in loads_jsonc(text)


def test_a_removed_last_member_takes_the_comma_before_it() -> None:
    assert loads_jsonc(edit(COMMENTED, ("taskRoles",), ABSENT)) == {"jobName": "a", "image": "b"}


def test_objects_and_lists_on_the_way_are_made() -> None:
    assert loads_jsonc(edit("{}", ("portList", 0), {"label": "x"})) == {"portList": [{"label": "x"}]}
    assert loads_jsonc(edit("{}", ("jobEnvs", "isDebug"), True)) == {"jobEnvs": {"isDebug": True}}


def test_a_line_comment_never_swallows_what_is_added() -> None:
    assert loads_jsonc(edit('{"a": 1 // one\n}', ("b",), 2)) == {"a": 1, "b": 2}
    assert loads_jsonc(edit("[ // none yet\n]", (0,), 2)) == [2]


def test_a_comma_before_a_closing_bracket_stays_or_goes_with_the_last_member() -> None:
    text = '{"a": [1, 2,], "b": {"c": 3,},}'
    assert loads_jsonc(edit(text, ("a", 1), ABSENT)) == {"a": [1], "b": {"c": 3}}
    assert loads_jsonc(edit(text, ("b", "c"), ABSENT)) == {"a": [1, 2], "b": {}}
    assert loads_jsonc(edit(text, ("b", "d"), 4)) == {"a": [1, 2], "b": {"c": 3, "d": 4}}
    assert edit(text, ("a", 0), 5) == text.replace("1", "5")


def test_a_bracket_in_a_string_or_comment_is_not_a_bracket() -> None:
    text = '{"a": "}]//", /* { */ "b\\"": [1]}'
    assert loads_jsonc(edit(text, ('b"', 1), "x")) == {"a": "}]//", 'b"': [1, "x"]}


def test_a_path_through_a_number_is_refused() -> None:
    with pytest.raises(KeyError):
        edit('{"a": 1}', ("a", "b"), 2)


_scalars = st.none() | st.booleans() | st.integers(-9, 999) | st.text(max_size=5)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def _paths(value: Any) -> list[tuple[str | int, ...]]:
    """All the places in a value, and one new one in each object and list."""
    if isinstance(value, dict):
        inner = [(key, *rest) for key, item in value.items() for rest in _paths(item)]
        return [(), *inner, ("brand new",)]
    if isinstance(value, list):
        inner = [(index, *rest) for index, item in enumerate(value) for rest in _paths(item)]
        return [(), *inner, (len(value),)]
    return [()]


def _expected(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    result = copy.deepcopy(value)
    here = result
    for key in path[:-1]:
        here = here[key]
    last = path[-1]
    if new is ABSENT:
        if isinstance(here, dict):
            here.pop(last, None)
        elif last < len(here):  # type: ignore[operator]
            del here[last]
    elif isinstance(here, list) and last == len(here):
        here.append(new)
    else:
        here[last] = new
    return result


@given(data=st.data(), value=_values, new=_values | st.just(ABSENT), indent=st.sampled_from([None, 0, 2]))
def test_the_text_means_what_was_asked_whatever_the_value_and_the_layout(
    data: st.DataObject, value: Any, new: Any, indent: int | None
) -> None:
    paths = [path for path in _paths(value) if path]
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    text = edit(json.dumps(value, indent=indent), path, new)
    assert json.loads(text) == _expected(value, path, new)
