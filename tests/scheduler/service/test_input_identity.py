"""In whose name a job's token speaks: its user, as the authenticator knew that user not long ago."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pai_scheduler.core.model import SubState
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service import input_identity
from pai_scheduler.service.input_identity import JobIdentities, storage_uris
from pai_scheduler.storage.folder.storage import FolderStorage

UNREACHABLE = RequestError(503, "HubUnreachableError", msg("This scheduler has no storage for files."))


class FakeHub:
    """Knows users, unless it is down; counts how often it was asked."""

    def __init__(self) -> None:
        self.users: dict[str, Principal] = {"alice": Principal("alice", admin=True, groups=("vision",))}
        self.down = False
        self.asked = 0

    async def find(self, name: str) -> Principal | None:
        self.asked += 1
        if self.down:
            raise UNREACHABLE
        return self.users.get(name)


@pytest.fixture
def hub() -> FakeHub:
    return FakeHub()


@pytest.fixture
def files(hub: FakeHub, tmp_path: Path) -> JobIdentities:
    return JobIdentities(FolderStorage(tmp_path / "files"), tmp_path, hub.find)


def job(user: str = "alice", **fields: Any) -> Any:
    return SimpleNamespace(id=f"job-of-{user}", user=user, sub_state=SubState.RUNNING, **fields)


async def holder(files: JobIdentities, one: Any) -> Principal | None:
    return await files.holder(files.token(one), {one.id: one}.get)


async def test_a_token_speaks_for_the_user_with_groups_and_never_as_an_administrator(
    files: JobIdentities,
) -> None:
    assert await holder(files, job()) == Principal("alice", groups=("vision",), is_job=True)
    assert await holder(files, job("gone")) == Principal("gone", is_job=True)
    assert await files.holder("paijob-x-y", lambda _: None) is None


async def test_it_is_dead_with_the_job_at_once(files: JobIdentities) -> None:
    one = job()
    assert await holder(files, one) is not None
    one.sub_state = SubState.ENDED
    assert await holder(files, one) is None
    assert await files.holder(files.token(one), lambda _: None) is None


async def test_the_hub_is_not_asked_at_every_request_and_again_after_a_while(
    files: JobIdentities, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        await holder(files, job())
    assert hub.asked == 1
    monkeypatch.setattr(input_identity, "_REMEMBERED_SECONDS", 0.0)
    files._users.clear()
    await holder(files, job())
    hub.users["alice"] = Principal("alice")
    assert await holder(files, job()) == Principal("alice", is_job=True)


async def test_tasks_go_on_while_the_hub_is_down(
    files: JobIdentities, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_identity, "_REMEMBERED_SECONDS", 0.0)
    await holder(files, job())
    hub.down = True
    assert await holder(files, job()) == Principal("alice", groups=("vision",), is_job=True)
    with pytest.raises(RequestError):
        await holder(files, job("bob"))


@pytest.mark.parametrize(
    ("proxy", "name", "expected"),
    [
        (None, None, ["http://127.0.0.1:9186/pai/"]),
        (None, "127.80.65.73", ["http://127.80.65.73:9186/pai/", "http://127.0.0.1:9186/pai/"]),
        (
            "http://172.17.0.1:8000/",
            "pai-storage",
            ["http://pai-storage:8000/pai/", "http://172.17.0.1:8000/pai/", "http://127.0.0.1:9186/pai/"],
        ),
    ],
)
def test_tasks_know_the_storage_by_a_host_name_of_its_own_and_older_uris_go_on_meaning_it(
    proxy: str | None, name: str | None, expected: list[str]
) -> None:
    engine: Any = SimpleNamespace(front_door_url=proxy, storage_host=name)
    assert storage_uris("", "http://127.0.0.1:9186/pai/", engine) == expected
    assert storage_uris("hdfs://fs", "http://127.0.0.1:9186/pai/", engine) == ["hdfs://fs", *expected]
