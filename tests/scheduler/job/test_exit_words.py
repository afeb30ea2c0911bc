"""Every row of the exit table is explained, and what a person can mend is named."""

from __future__ import annotations

import pytest

from pai_scheduler.job.exit_codes import (
    exit_spec,
    exit_table,
    meaning,
    meaning_of_exit,
    shown_name,
    spec_of_user_exit,
    what_follows,
)


def test_every_row_has_a_meaning_and_says_what_follows() -> None:
    for code in exit_table():
        assert str(meaning(code)).endswith((".", "!", "?"))
        assert str(what_follows(code)).endswith(".")


@pytest.mark.parametrize(
    ("row", "field"), [(135, "shmMB"), (196, "memoryMB"), (198, "storageGB"), (-7103, "beginAt")]
)
def test_a_limit_that_was_too_small_is_named(row: int, field: str) -> None:
    assert field in str(meaning(row))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, "Its command failed"),
        (126, "executable"),
        (127, "not found"),
        (129, "SIGHUP"),
        (134, "SIGABRT"),
        (139, "SIGSEGV"),
        (200, "Its command failed"),
        (255, "Its command failed"),
        (-1, "negative"),
    ],
)
def test_what_a_command_s_exit_code_means_is_told(code: int, words: str) -> None:
    assert words in str(meaning_of_exit(spec_of_user_exit(code).code, code))


def test_a_row_of_the_platform_s_means_the_same_whatever_the_code() -> None:
    assert meaning_of_exit(196, 137) == meaning(196)


@pytest.mark.parametrize(
    ("row", "words"), [(255, "retryCount"), (139, "not tried"), (137, "not counted"), (-7252, "pause")]
)
def test_what_follows_is_what_the_table_says(row: int, words: str) -> None:
    assert words in str(what_follows(row))


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (196, "CONTAINER_OOM_KILLED"),
        (198, "CONTAINER_OOD_KILLED"),
        (137, "CONTAINER_KILLED_BY_SIGKILL"),
    ],
)
def test_people_read_the_tables_word_without_openpais_own_parts(row: int, name: str) -> None:
    assert shown_name(exit_spec(row).phrase) == name
