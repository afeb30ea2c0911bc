"""The rows of environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_labextension.widgets.envs import EnvList
from pai_labextension.widgets.language import Language
from pai_scheduler.i18n import Message


class Rows:
    def __init__(self, envs: dict[str, Any]) -> None:
        self.given: list[Mapping[str, Any]] = []
        self.problem: Message | None = None
        self.list = EnvList(Language("en"), self.given.append, self._note)
        self.list.load(envs)

    def _note(self, problem: Message | None) -> None:
        self.problem = problem


async def test_values_keep_their_type_as_long_as_the_text_says_the_same() -> None:
    rows = Rows({"n": 32, "flag": True, "nothing": None, "rate": 1.50})
    rows.list.rows[0].text.value = "64"
    assert rows.given[-1] == {"n": 64, "flag": True, "nothing": None, "rate": 1.5}
    assert type(rows.given[-1]["n"]) is int
    rows.list.rows[0].text.value = "007"
    assert rows.given[-1]["n"] == "007"


async def test_the_debug_switch_is_not_shown_twice_and_not_lost() -> None:
    rows = Rows({"isDebug": True, "a": "1"})
    assert [row.name.value for row in rows.list.rows] == ["a"]
    rows.list.rows[0].text.value = "2"
    assert rows.given[-1] == {"isDebug": True, "a": "2"}


async def test_a_name_twice_is_said_and_loses_nothing() -> None:
    rows = Rows({"a": "1"})
    rows.list.add.click()
    rows.list.rows[1].text.value = "2"
    assert "a name" in str(rows.problem)
    rows.list.rows[1].name.value = "a"
    assert "twice" in str(rows.problem)
    assert rows.given[-1] == {"a": "1"}
    rows.list.rows[1].name.value = "b"
    assert rows.problem is None
    assert rows.given[-1] == {"a": "1", "b": "2"}


async def test_an_unfinished_row_survives_a_change_from_elsewhere() -> None:
    rows = Rows({"a": "1"})
    rows.list.add.click()
    rows.list.rows[1].text.value = "unfinished"
    rows.list.load({"a": "1", "c": "3"})
    assert [row.text.value for row in rows.list.rows] == ["1", "3", "unfinished"]
    assert rows.problem is not None


async def test_a_removed_row_takes_its_problem_with_it() -> None:
    rows = Rows({"a": "1"})
    rows.list.add.click()
    rows.list.rows[1].name.value = "a"
    rows.list.rows[1].remove.click()
    assert rows.problem is None
    rows.list.rows[0].remove.click()
    assert rows.given[-1] == {}
