"""Ports and secrets of an installation."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hub_config.run import parse_settings
from hub_config.settings import (
    LEAST_PASSWORD,
    CannotStart,
    Settings,
    inner_ports,
    kept_secret,
    new_password,
    port_is_free,
)


def test_a_secret_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    secret = kept_secret(tmp_path / "secrets" / "token")
    assert len(secret) == 64
    assert kept_secret(tmp_path / "secrets" / "token") == secret
    assert (tmp_path / "secrets" / "token").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("spoilt", ["", "ab", "a" * 65])
def test_a_secret_of_another_length_is_refused_with_a_sentence(tmp_path: Path, spoilt: str) -> None:
    (tmp_path / "token").write_text(spoilt)
    with pytest.raises(CannotStart, match=f"it has {len(spoilt)} characters instead of 64") as caught:
        kept_secret(tmp_path / "token")
    assert str(tmp_path / "token") in str(caught.value)


def test_inner_ports_stay_the_same_while_they_are_free(tmp_path: Path) -> None:
    first = inner_ports(tmp_path / "ports.json", 8000)
    assert len(set(first.values())) == 6
    assert inner_ports(tmp_path / "ports.json", 8000) == first


def test_an_inner_port_that_was_taken_meanwhile_is_replaced(tmp_path: Path) -> None:
    first = inner_ports(tmp_path / "ports.json", 8000)
    with socket.socket() as other:
        other.bind(("127.0.0.1", first["PAI_HUB_PORT"]))
        other.listen()
        assert not port_is_free(first["PAI_HUB_PORT"])
        second = inner_ports(tmp_path / "ports.json", 8000)
    assert second["PAI_HUB_PORT"] != first["PAI_HUB_PORT"]
    assert second["PAI_PROXY_API_PORT"] == first["PAI_PROXY_API_PORT"]


def test_the_public_port_is_nobody_elses(tmp_path: Path) -> None:
    assert 8081 not in inner_ports(tmp_path / "ports.json", 8081).values()


def test_the_spawners_token_stays_and_the_password_is_as_given(tmp_path: Path) -> None:
    settings = Settings(tmp_path, "process", None, 8000, "a password")
    first, second = settings.environment(), settings.environment()
    assert first["PAI_SPAWNER_TOKEN"] == second["PAI_SPAWNER_TOKEN"]
    assert first["PAI_PASSWORD"] == "a password"


def test_every_run_has_a_password_of_its_own_unless_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PASSWORD", raising=False)
    assert new_password() != new_password()
    assert len(new_password()) >= LEAST_PASSWORD
    monkeypatch.setenv("PASSWORD", "my own words")
    assert new_password() == "my own words"


@pytest.mark.parametrize(
    ("given", "where"),
    [
        (["--storage", "here"], str(Path.cwd() / "here")),
        (["--storage", "http://n:1"], "http://n:1"),
        ([], ""),
    ],
)
def test_a_storage_folder_is_where_it_was_said_to_be(given: list[str], where: str, tmp_path: Path) -> None:
    environment = parse_settings([*given, "--folder", str(tmp_path)]).environment()
    assert environment["PAI_STORAGE"] == where
