"""The walks are counted as their page says, and none opens more files, or reads less in each, than it may."""

from __future__ import annotations

import pytest

from docs.generate.stops import Reference, count, facts, sections

#: Walk: how many stops and files at most, and how many lines are read in a file at least.
LIMITS = {
    "Submit": (61, 42, 42),
    "Place": (40, 18, 40),
    "A task's end": (41, 28, 36),
    "A terminal": (50, 25, 40),
    "A notebook": (28, 17, 40),
    "A line of a log": (14, 12, 0),
    "A key stroke": (6, 5, 0),
    "An uploaded byte": (30, 23, 0),
}

_PAGE = """
## One

[`clock.py::Clock.wall`] asks [`clock.py::Clock._unknown`], then [`i18n.py::msg`].

### Part

Again [`i18n.py::msg`], and [`i18n.py::counted`].

## Two

Nothing.
"""


@pytest.mark.parametrize("walk", LIMITS)
def test_a_walk_keeps_its_limits(walk: str) -> None:
    stops, files, lines_per_file = LIMITS[walk]
    found = facts("en")["figures"][walk]
    assert found.stops <= stops
    assert found.files <= files
    assert found.lines_per_file >= lines_per_file


def test_each_section_lists_what_it_and_its_parts_name_once() -> None:
    found = {name: [one.name for one in references] for name, references in sections(_PAGE).items()}
    assert found == {"One": ["Clock.wall", "Clock._unknown", "msg", "counted"], "Part": ["msg", "counted"]}


def test_a_private_helper_is_read_at_the_stop_of_its_file() -> None:
    alone = count([Reference("service/writer.py", "Writer._write")])
    assert (alone.stops, alone.functions, alone.files) == (1, 1, 1)
    both = count(
        [Reference("service/writer.py", "Writer.begin"), Reference("service/writer.py", "Writer._write")]
    )
    assert (both.stops, both.functions, both.files) == (1, 2, 1)
    assert both.lines > alone.lines
    assert both.lines_per_file == both.lines


def test_a_class_counts_without_the_methods_that_are_named_beside_it() -> None:
    whole = count([Reference("service/writer.py", "Writer")]).lines
    method = count([Reference("service/writer.py", "Writer.begin")]).lines
    both = count(
        [Reference("service/writer.py", "Writer"), Reference("service/writer.py", "Writer.begin")]
    ).lines
    assert method < both < whole


def test_a_function_that_is_gone_is_noticed() -> None:
    with pytest.raises(KeyError):
        count([Reference("service/writer.py", "gone")])
