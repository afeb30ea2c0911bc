"""The walks are counted as their page says, and none opens more files, or reads less in each, than it may."""

from __future__ import annotations

import pytest

from docs.generate.stops import Figures, Reference, Section, count, facts, sections

#: Walk: how many steps, stops and files at most, and how many lines are read in a file at least.
LIMITS = {
    "Submit": (16, 55, 36, 40),
    "Place": (10, 40, 18, 40),
    "A task's end": (9, 32, 17, 40),
    "A terminal": (11, 50, 19, 40),
    "A notebook": (6, 28, 13, 40),
    "A line of a log": (6, 14, 12, 0),
    "A key stroke": (4, 6, 5, 0),
    "An uploaded byte": (7, 30, 19, 0),
}

_PAGE = """
## One

1. [`clock.py::Clock.wall`] asks [`clock.py::Clock._unknown`], then [`i18n.py::msg`].

### Part

1. Again [`i18n.py::msg`], and [`i18n.py::counted`].

## Two

Nothing.
"""


@pytest.mark.parametrize("walk", LIMITS)
def test_a_walk_keeps_its_limits(walk: str) -> None:
    steps, stops, files, lines_per_file = LIMITS[walk]
    found = facts("en")["figures"][walk]
    assert found.steps <= steps
    assert found.stops <= stops
    assert found.files <= files
    assert found.lines_per_file >= lines_per_file


def test_each_section_lists_what_it_and_its_parts_name_once() -> None:
    found = {
        name: (section.steps, [one.name for one in section.references])
        for name, section in sections(_PAGE).items()
    }
    assert found == {
        "One": (2, ["Clock.wall", "Clock._unknown", "msg", "counted"]),
        "Part": (1, ["msg", "counted"]),
    }


def figures(*names: str) -> Figures:
    return count(Section(1, [Reference("service/writer.py", name) for name in names]))


def test_a_private_helper_is_read_at_the_stop_of_its_file() -> None:
    alone = figures("Writer._write")
    assert (alone.stops, alone.functions, alone.files) == (1, 1, 1)
    both = figures("Writer.begin", "Writer._write")
    assert (both.stops, both.functions, both.files) == (1, 2, 1)
    assert both.lines > alone.lines
    assert both.lines_per_file == both.lines


def test_a_class_counts_without_the_methods_that_are_named_beside_it() -> None:
    both = figures("Writer", "Writer.begin")
    assert figures("Writer.begin").lines < both.lines < figures("Writer").lines


def test_a_function_that_is_gone_is_noticed() -> None:
    with pytest.raises(KeyError):
        figures("gone")
