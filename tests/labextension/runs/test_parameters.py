from __future__ import annotations

from typing import Any

import pytest

from pai_labextension.runs.manager import RunError, defaults, values


def code(source: str | list[str], *tags: str) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)}}


def test_the_parameters_are_what_the_tagged_cell_assigns_in_its_order():
    source = [
        "rate = 0.1  # of learning\n",
        "name: str = 'resnet'\n",
        "sizes = [1, 2]\n",
        "now = time()\n",
        "a.b = 1\n",
    ]
    notebook = {"cells": [code("other = 1"), code(source, "parameters"), code("late = 1", "parameters")]}
    assert list(defaults(notebook).items()) == [("rate", "0.1"), ("name", "'resnet'"), ("sizes", "[1, 2]")]


@pytest.mark.parametrize(
    "notebook",
    [
        {},
        {"cells": None},
        {"cells": [1, {"cell_type": "code", "metadata": None}]},
        {"cells": [{"cell_type": "markdown", "source": "a = 1", "metadata": {"tags": ["parameters"]}}]},
        {"cells": [code("%matplotlib inline\na = 1", "parameters")]},
    ],
)
def test_a_notebook_without_such_a_cell_has_none(notebook: dict[str, Any]):
    assert defaults(notebook) == {}


def test_values_are_what_they_look_like_and_else_the_text_itself():
    typed = {
        "a": "3",
        "b": " 1e-3 ",
        "c": "true",
        "d": "True",
        "e": "None",
        "f": "[1, 'x']",
        "g": "'quoted'",
        "h": "resnet 50",
        "i": "__import__('os')",
        "j": "{1, 2}",
    }
    assert values(typed) == {
        "a": 3,
        "b": 0.001,
        "c": True,
        "d": True,
        "e": None,
        "f": [1, "x"],
        "g": "quoted",
        "h": "resnet 50",
        "i": "__import__('os')",
        "j": "{1, 2}",
    }


@pytest.mark.parametrize("name", ["", "2nd", "a b", "x = 1; y", "import"])
def test_a_name_that_python_does_not_take_is_refused(name: str):
    with pytest.raises(RunError, match="cannot be called"):
        values({name: "1"})
