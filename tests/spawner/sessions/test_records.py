"""What is remembered of sessions over a restart."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_spawner.sessions.culler import Records, Remembered
from pai_spawner.sessions.policy import SessionRecord

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)
KEY = ("alice", "big")


def test_what_a_user_put_off_and_was_told_outlives_a_restart(tmp_path: Path) -> None:
    records = Records(tmp_path / "sessions.json")
    records.set(KEY, Remembered("job-1", SessionRecord(kept=NOON, extensions=2, warned=NOON)))
    records.add_message(KEY, "job-1", 5, "root", "服务器将于 <18:00> 重启")
    again = Records(tmp_path / "sessions.json").of(KEY, "job-1")
    assert again.record == SessionRecord(kept=NOON, extensions=2, warned=NOON)
    assert again.messages == ({"id": 1, "time": 5, "sender": "root", "text": "服务器将于 <18:00> 重启"},)


def test_another_start_of_a_server_begins_anew(tmp_path: Path) -> None:
    records = Records(tmp_path / "sessions.json")
    records.set(KEY, Remembered("job-1", SessionRecord(extensions=2)))
    assert records.of(KEY, "job-2") == Remembered("job-2")
    assert records.of(("bob", ""), "job-1") == Remembered("job-1")


def test_sessions_that_are_over_are_forgotten(tmp_path: Path) -> None:
    records = Records(tmp_path / "sessions.json")
    for user in ("alice", "bob"):
        records.add_message((user, ""), "job", 1, "root", "hello")
    records.forget_others({("bob", "")})
    again = Records(tmp_path / "sessions.json")
    assert (len(again.of(("alice", ""), "job").messages), len(again.of(("bob", ""), "job").messages)) == (
        0,
        1,
    )


def test_the_newest_messages_are_kept_and_their_numbers_go_on(tmp_path: Path) -> None:
    records = Records(tmp_path / "sessions.json")
    for number in range(30):
        records.add_message(KEY, "job", number, "root", str(number))
    messages = records.of(KEY, "job").messages
    assert (len(messages), messages[0]["text"], messages[-1]["id"]) == (20, "10", 30)


def test_a_session_of_which_there_is_nothing_to_remember_writes_no_file(tmp_path: Path) -> None:
    records = Records(tmp_path / "sessions.json")
    records.set(KEY, Remembered("job"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["{", "[]x", '[{"user": "alice"}]', "7"])
def test_a_damaged_file_is_begun_anew_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    (tmp_path / "sessions.json").write_text(content)
    with caplog.at_level(logging.ERROR):
        records = Records(tmp_path / "sessions.json")
    assert "is begun anew" in caplog.text
    records.set(KEY, Remembered("job", SessionRecord(extensions=1)))
    assert Records(tmp_path / "sessions.json").of(KEY, "job").record.extensions == 1
