"""What is only asked for, because nobody has touched it yet."""

from __future__ import annotations

from typing import Any

from pai_labextension.widgets.json_edit import ABSENT
from pai_labextension.widgets.untouched import after_edit, blank_fields

IMAGE = ("image",)


def command(role: int) -> tuple[str | int, ...]:
    return ("taskRoles", role, "command")


def label(role: int, port: int) -> tuple[str | int, ...]:
    return ("taskRoles", role, "portList", port, "label")


def test_required_texts_that_are_absent_or_blank_are_found_wherever_they_are() -> None:
    roles: list[dict[str, Any]] = [
        {"name": "a", "command": "", "portList": [{"label": "x"}, {"label": ""}]},
        {"command": "true"},
    ]
    config = {"jobName": "a", "taskRoles": roles, "codeDir": ""}
    assert list(blank_fields(config)) == [IMAGE, command(0), label(0, 1), ("taskRoles", 1, "name")]


def test_a_value_that_is_wrong_is_not_blank() -> None:
    assert list(blank_fields({"jobName": None, "image": 3, "taskRoles": []})) == []


def test_what_is_edited_is_touched() -> None:
    assert after_edit({IMAGE, command(0)}, IMAGE, "b") == {command(0)}
    assert after_edit({IMAGE, command(0)}, IMAGE, ABSENT) == {command(0)}


def test_behind_a_removed_item_everything_moves_up() -> None:
    untouched = {IMAGE, command(0), command(1), label(2, 0), label(2, 1)}
    assert after_edit(untouched, ("taskRoles", 1), ABSENT) == {IMAGE, command(0), label(1, 0), label(1, 1)}
    assert after_edit(untouched, ("taskRoles", 2, "portList", 0), ABSENT) == {
        IMAGE,
        command(0),
        command(1),
        label(2, 0),
    }
