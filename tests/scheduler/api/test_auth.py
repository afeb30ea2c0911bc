"""Who a token belongs to, when a tokens file says so."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from pai_scheduler.api.auth import (
    MonitoringToken,
    TokensError,
    TokensFile,
    bearer_token,
    read_tokens,
    token_or_password,
)
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError


def _write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    path.chmod(0o600)
    return path


async def test_a_token_of_the_file_is_its_users(tmp_path: Path) -> None:
    file = _write(
        tmp_path / "t.json",
        {"one": {"name": "alice", "groups": ["vision"]}, "two": {"name": "root", "admin": True}},
    )
    tokens = TokensFile(file)
    assert await tokens.identify("one") == Principal("alice", False, ("vision",))
    assert await tokens.identify("two") == Principal("root", True)
    assert await tokens.identify("on") is None
    assert await tokens.identify("") is None


async def test_a_user_is_found_by_name(tmp_path: Path) -> None:
    tokens = TokensFile(_write(tmp_path / "t.json", {"one": {"name": "alice"}}))
    assert await tokens.find("alice") == Principal("alice")
    assert await tokens.find("one") is None
    assert await tokens.find_now("alice") == Principal("alice")


async def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    file = _write(tmp_path / "t.json", {"old": {"name": "alice"}})
    tokens = TokensFile(file)
    _write(file, {"new token": {"name": "alice"}})
    assert await tokens.identify("old") is None
    assert await tokens.identify("new token") == Principal("alice")


async def test_a_change_that_cannot_be_read_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = _write(tmp_path / "t.json", {"old": {"name": "alice"}})
    tokens = TokensFile(file)
    _write(file, '{"half a fi')
    assert await tokens.identify("old") == Principal("alice")
    assert "stay in use" in caplog.text
    file.unlink()
    assert await tokens.identify("old") == Principal("alice")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{\n  "one": {"name": "alice"\n', "Line 3, column 1"),
        ("[]", "the whole file"),
        ({"a": {"name": "alice"}, "b": {"admin": True}}, "entry 2"),
        ({"a": {"name": ""}}, "entry 1"),
        ({"a": {"name": "alice", "admin": "yes"}}, "entry 1"),
        ({"a": {"name": "alice", "groups": "vision"}}, "entry 1"),
        ({"a": {"name": "alice", "amdin": True}}, "entry 1"),
        ({" ": {"name": "alice"}}, "entry 1"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_the_place(
    tmp_path: Path, content: object, place: str
) -> None:
    file = _write(tmp_path / "t.json", content)
    with pytest.raises(TokensError) as refusal:
        read_tokens(file)
    assert str(file) in str(refusal.value)
    assert place in str(refusal.value)


def test_a_refusal_prints_no_token(tmp_path: Path) -> None:
    file = _write(tmp_path / "t.json", {"very-secret": {"name": 5}})
    with pytest.raises(TokensError) as refusal:
        read_tokens(file)
    assert "very-secret" not in str(refusal.value)


def test_a_missing_file_and_one_that_is_no_text_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(TokensError, match="No such file"):
        read_tokens(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{"\xe9": {}}')
    with pytest.raises(TokensError, match="not UTF-8"):
        read_tokens(tmp_path / "latin.json")


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_a_file_that_others_can_read_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = _write(tmp_path / "t.json", {"one": {"name": "alice"}})
    with caplog.at_level(logging.WARNING):
        read_tokens(file)
        assert not caplog.records
        file.chmod(0o644)
        read_tokens(file)
    assert f"chmod 600 {file}" in caplog.text


@pytest.mark.parametrize("header", ["Bearer abc", "bearer  abc ", "token abc", "Token abc"])
def test_the_header_may_say_bearer_or_token(header: str) -> None:
    assert bearer_token(header) == "abc"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "abc"])
def test_any_other_header_is_no_token(header: str) -> None:
    with pytest.raises(RequestError) as refusal:
        bearer_token(header)
    assert refusal.value.status == 401


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("Basic YWxpY2U6YWJj", "abc"),
        # whatever the name is, and whatever is in the password
        ("basic OmFiYw==", "abc"),
        ("Basic  YTpiOmM= ", "b:c"),
        ("Basic YTrkuK0=", "中"),
    ],
)
def test_where_files_are_a_token_may_come_as_a_password(header: str, token: str) -> None:
    assert token_or_password(header) == token


@pytest.mark.parametrize(
    "header", ["", "Basic", "Basic !", "Basic YQ==", "Basic YTo=", "Basic /w==", "Digest x"]
)
def test_a_password_that_is_none_is_no_token_either(header: str) -> None:
    with pytest.raises(RequestError) as refusal:
        token_or_password(header)
    assert refusal.value.status == 401


def test_the_token_for_metrics_is_its_files_content_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    token = MonitoringToken(file)
    assert token.read() == "0123456789abcdef"
    assert token.matches("0123456789abcdef")
    assert not token.matches("0123456789abcde")
    assert not token.matches("0123456789abcdef\ud800")
    file.write_text("another-token-of-16")
    assert token.matches("another-token-of-16")


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file"), (b"short", "16"), (b"\xff" * 20, "utf-8|invalid")]
)
def test_a_token_for_metrics_that_cannot_be_used_is_refused_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TokensError, match=reason) as caught:
        MonitoringToken(file).read()
    assert str(file) in str(caught.value)
    # once it runs, nobody is let in, and the log says why
    assert not MonitoringToken(file).matches("short")
    assert str(file) in caplog.text
