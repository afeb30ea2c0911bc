"""The keys of running jobs in the storage: there for their owner, gone with the job, in nobody's way."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from pai_scheduler.core.model import Job, State
from pai_scheduler.i18n import msg
from pai_scheduler.service import ssh_key_storage
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.hdfs.storage import HdfsStorage
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import Storage
from tests.scheduler.making import make_spec
from tests.scheduler.service.house import ROOT, House, open_house
from tests.testbed.hdfs import ACCOUNT

FOLDER = "Container/alice/alice~one/ssh/keyFiles"


class Wayward(FolderStorage):
    """A folder that answers late, or not."""

    down = False
    gate: asyncio.Event | None = None
    created = 0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        #: set with the first file that is to be written
        self.asked = asyncio.Event()

    async def create(
        self,
        path: StoragePath,
        actor: str,
        pieces: AsyncIterator[bytes],
        *,
        overwrite: bool = False,
        permission: int | None = None,
    ) -> None:
        self.created += 1
        self.asked.set()
        if self.down:
            raise StorageError(Problem.UNAVAILABLE, msg("The storage does not answer."))
        if self.gate is not None:
            await self.gate.wait()
        await super().create(path, actor, pieces, overwrite=overwrite, permission=permission)


async def read(house: House, path: str, token: str = "token-a") -> httpx.Response:  # noqa: S107
    """Read a file as `wget …/webhdfs/v1/PATH?op=OPEN` does."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, follow_redirects=True) as client:
        return await client.get(f"{house.url}/webhdfs/v1/{path}?op=OPEN")


async def until_status(house: House, path: str, status: int) -> httpx.Response:
    for _ in range(600):
        answer = await read(house, path)
        if answer.status_code == status:
            return answer
        await asyncio.sleep(0.05)
    pytest.fail(f"{path} is still {answer.status_code}")


@pytest.fixture(params=["folder", "apache"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "apache":
        yield HdfsStorage(request.getfixturevalue("hdfs").urls, ACCOUNT)
    else:
        yield FolderStorage(tmp_path / "files")


async def test_its_owner_and_nobody_else_reads_the_key_while_the_job_runs(
    tmp_path: Path, storage: Storage
) -> None:
    async with open_house(tmp_path, storage) as house:
        job = await house.begin("one")
        found = await until_status(house, f"{FOLDER}/alice~one", 200)
        assert b"OPENSSH PRIVATE KEY" in found.content
        public = await until_status(house, f"{FOLDER}/alice~one.pub", 200)
        assert public.text == f"{house.key(job)}\n"
        assert (await read(house, f"{FOLDER}/alice~one", "token-b")).status_code == 403
        async with house.client() as client:
            said = await client.get(f"{house.url}/webhdfs/v1/{FOLDER}/alice~one?op=GETFILESTATUS")
            assert said.json()["FileStatus"]["permission"] == "600"
            said = await client.get(f"{house.url}/webhdfs/v1/{FOLDER}?op=GETFILESTATUS")
            assert said.json()["FileStatus"]["permission"] == "700"
            assert (await client.delete(f"{house.url}/webhdfs/v1/{FOLDER}?op=DELETE")).status_code == 403
        # what runs in a job has its token for the storage, and with this it would come into all others
        files = house.service._job_files
        assert files is not None
        assert (await read(house, f"{FOLDER}/alice~one", files.token(job))).status_code == 403
        await house.end("one")
        await until_status(house, f"{FOLDER}/alice~one", 404)
        await until_status(house, "Container/alice/alice~one", 404)


async def test_the_files_on_the_disk_are_their_owners(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        await house.begin("one")
        await until_status(house, f"{FOLDER}/alice~one.pub", 200)
        folder = tmp_path / "files" / FOLDER
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_what_was_left_behind_is_removed_at_the_next_start(tmp_path: Path) -> None:
    left = tmp_path / "files" / "Container" / "bob" / "bob~old" / "ssh" / "keyFiles"
    left.mkdir(parents=True)
    (left / "bob~old").write_text("an old key")
    async with open_house(tmp_path) as house:
        await house.begin("one")
        await until_status(house, f"{FOLDER}/alice~one", 200)
        assert not (left.parents[1]).exists()
        assert left.parents[2].exists()


async def test_what_an_earlier_job_left_is_removed_though_the_next_of_its_name_waits(tmp_path: Path) -> None:
    left = tmp_path / "files" / "Container" / "alice" / "alice~next" / "ssh"
    async with open_house(tmp_path) as house:
        await house.begin("one")
        await until_status(house, f"{FOLDER}/alice~one", 200)
        keys = house.service._key_files
        assert keys is not None
        await keys.close()
        left.mkdir(parents=True)
        jobs = [*house.service._writer.core.jobs.values(), Job("next", "alice", make_spec(name="next"), 0)]
        keys.start(jobs)
        for _ in range(600):
            if not left.parent.exists():
                break
            await asyncio.sleep(0.05)
        else:
            pytest.fail("what was left behind is still there")
        assert (tmp_path / "files" / FOLDER).exists()


async def test_a_storage_that_does_not_answer_delays_no_job_and_has_the_key_later(tmp_path: Path) -> None:
    storage = Wayward(tmp_path / "files")
    storage.down = True
    async with open_house(tmp_path, storage) as house:
        await house.begin("one")
        await asyncio.wait_for(storage.asked.wait(), 60)
        storage.down = False
        await until_status(house, f"{FOLDER}/alice~one", 200)


async def test_keys_of_jobs_that_end_before_their_turn_are_not_written(tmp_path: Path) -> None:
    storage = Wayward(tmp_path / "files")
    storage.gate = asyncio.Event()
    async with open_house(tmp_path, storage) as house:
        await house.begin("one")
        await asyncio.wait_for(storage.asked.wait(), 60)
        for number in range(5):
            name = f"short-{number}"
            await house.begin(name)
            await house.end(name)
        await house.end("one")
        assert storage.created == 1
        storage.gate.set()
        await house.begin("two")
        await until_status(house, "Container/alice/alice~two/ssh/keyFiles/alice~two.pub", 200)
        assert not (tmp_path / "files" / "Container/alice/alice~one").exists()
        assert storage.created == 4


async def test_a_job_that_is_over_at_once_costs_the_storage_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Wayward(tmp_path / "files")
    # whatever takes its time here: it is over before its turn
    monkeypatch.setattr(ssh_key_storage, "_FIRST_PUT", 3600)
    async with open_house(tmp_path, storage) as house:
        await house.begin("short")
        await house.end("short")
        monkeypatch.setattr(ssh_key_storage, "_FIRST_PUT", 0)
        await house.begin("two")
        await until_status(house, "Container/alice/alice~two/ssh/keyFiles/alice~two.pub", 200)
        assert storage.created == 2
        assert not (tmp_path / "files" / "Container/alice/alice~short").exists()


async def test_the_key_of_a_job_that_a_stop_of_the_scheduler_overtook_comes_after_its_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_key_storage, "_FIRST_PUT", 3600)
    async with open_house(tmp_path) as house:
        await house.begin("one")
        keys = house.service._key_files
        assert keys is not None
        await keys.close()
        keys.start(house.service._writer.core.jobs.values())
        await until_status(house, f"{FOLDER}/alice~one", 200)


async def test_the_next_job_of_a_name_has_its_own_key(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        first = await house.begin("one")
        await until_status(house, f"{FOLDER}/alice~one.pub", 200)
        await house.service.jobs.delete(ROOT, "alice", "one")
        second = await house.begin("one")
        assert house.key(first) != house.key(second)
        for _ in range(600):
            if (await read(house, f"{FOLDER}/alice~one.pub")).text == f"{house.key(second)}\n":
                break
            await asyncio.sleep(0.05)
        else:
            pytest.fail("the new key never came")


@pytest.mark.parametrize("user", ["$(id);`id`"])
async def test_whatever_a_user_is_called_the_key_is_in_the_users_folder(tmp_path: Path, user: str) -> None:
    async with open_house(tmp_path) as house:
        job = await house.begin("one", user)
        assert job.state is State.RUNNING
        folder = tmp_path / "files" / "Container" / user / f"{user}~one" / "ssh" / "keyFiles"
        for _ in range(600):
            if (folder / f"{user}~one.pub").exists():
                return
            await asyncio.sleep(0.05)
        pytest.fail("the key never came")
