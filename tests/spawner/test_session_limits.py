"""Limits on servers, with what the Hub knows of other servers played."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pai_spawner.options import Options
from pai_spawner.spawner import PAISpawner, limit_refusal

POLICY = "rules: [{gpus: 2, sessions: 3}]\ngroups: {vision: {gpus: 3}}\n"


def asked(gpus: int) -> Options:
    """Return options with so many GPUs."""
    return Options("", "image", "", gpus, 1, 1024, 64, "default", 0)


class Servers:
    """Users with servers, as a spawner finds them."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "sessions.yaml"
        self._file.write_text(POLICY)
        self._users: dict[str, Any] = {}

    def server(self, user: str, name: str = "", gpus: int = 0, **more: Any) -> PAISpawner:
        groups = [SimpleNamespace(name="vision")]
        settings = {"users": self._users}
        owner = self._users.setdefault(
            user, SimpleNamespace(name=user, groups=groups, spawners={}, settings=settings)
        )
        owner.spawners[name] = SimpleNamespace(
            user=owner,
            name=name,
            gpus=gpus,
            user_options={},
            sessions_file=str(self._file),
            **{"active": True, "job_name": "job", **more},
        )
        return cast(PAISpawner, owner.spawners[name])


@pytest.fixture
def hub(tmp_path: Path) -> Servers:
    return Servers(tmp_path)


def test_ones_own_servers_count_and_the_one_that_asks_does_not(hub: Servers) -> None:
    hub.server("alice", gpus=1)
    asking = hub.server("alice", "big", gpus=9)
    assert limit_refusal(asking, asked(1)) is None
    assert "together. They have 1, and this one asks for 2" in str(limit_refusal(asking, asked(2)))


def test_servers_of_ones_group_count_for_the_group(hub: Servers) -> None:
    hub.server("bob", gpus=2)
    asking = hub.server("alice")
    assert limit_refusal(asking, asked(1)) is None
    assert "The sessions of the group vision" in str(limit_refusal(asking, asked(2)))


@pytest.mark.parametrize("more", [{"active": False}, {"job_name": ""}])
def test_servers_that_do_not_run_or_were_not_let_pass_yet_do_not_count(
    hub: Servers, more: dict[str, Any]
) -> None:
    hub.server("alice", gpus=2, **more)
    assert limit_refusal(hub.server("alice", "big"), asked(2)) is None


def test_a_file_that_is_wrong_lets_nobody_pass_unnoticed(hub: Servers, tmp_path: Path) -> None:
    asking = hub.server("alice")
    asking.sessions_file = str(tmp_path / "none.yaml")
    assert "cannot be read" in str(limit_refusal(asking, asked(0)))
    asking.sessions_file = ""
    assert limit_refusal(asking, asked(99)) is None
