"""What is fetched for jobs, in whose name, and what becomes of a storage that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.cluster.shared_folders import SharedFolder
from pai_scheduler.core.model import Job
from pai_scheduler.engine.protocol import Mount
from pai_scheduler.i18n import Message, msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service.input_identity import JobIdentities
from pai_scheduler.service.inputs import Inputs, JobInputs
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import FileStatus
from tests.scheduler.core.world import World
from tests.scheduler.making import make_node

ROOT = Principal("root", admin=True)


class BrokenStorage(FolderStorage):
    """A folder that does not answer the next so many questions; `hangs`: it never answers."""

    broken = 0
    hangs = False

    async def status(self, path: StoragePath, actor: str) -> FileStatus:
        await self._answer()
        return await super().status(path, actor)

    async def mkdirs(self, path: StoragePath, actor: str, permission: int | None = None) -> None:
        await self._answer()
        await super().mkdirs(path, actor, permission)

    async def _answer(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.broken:
            self.broken -= 1
            raise StorageError(Problem.UNAVAILABLE, msg("{path} is away.", path="the name node"))


class Place:
    """A storage, the users that are known, and what is fetched for jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.storage = BrokenStorage(folder / "storage")
        self.users: dict[str, Principal] = {}
        self.hub_is_away = 0
        self.job_files = JobIdentities(self.storage, folder, self._find)
        self.inputs = JobInputs(self.job_files)
        self.told: list[Message] = []

    async def _find(self, name: str) -> Principal | None:
        if self.hub_is_away:
            self.hub_is_away -= 1
            raise RequestError(503, "HubUnreachableError", msg("JupyterHub does not answer."))
        return self.users.get(name)

    async def put(self, path: str) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"x"

        await self.job_files.files.create(ROOT, StoragePath.parse(path), pieces())

    def job(self, user: str = "alice", **fields: Any) -> Job:
        world = World(make_node())
        world.submit(id="j", user=user, **fields)
        return world.core.jobs["j"]

    async def fetch(self, user: str = "alice", **fields: Any) -> Inputs:
        return await self.inputs.fetch(self.job(user, **fields), self.told.append)

    async def refusal(self, **fields: Any) -> StorageError:
        with pytest.raises(StorageError) as caught:
            await self.fetch(**fields)
        return caught.value

    def is_folder(self, path: str) -> bool:
        return (self.folder / "storage" / path).is_dir()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    await made.job_files.start("http://fs")
    await made.inputs.start(set())
    yield made
    await made.job_files.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_scheduler.service.inputs._PAUSES", (0.01, 0.01, 0.01))
    monkeypatch.setattr("pai_scheduler.service.inputs._OUTPUT_SECONDS", 0.2)


async def test_a_job_that_names_nothing_gets_its_token_and_a_folder_for_results(place: Place) -> None:
    inputs = await place.fetch()
    assert (inputs.login, inputs.code) == (None, None)
    assert inputs.token.startswith("paijob-j-")
    assert place.is_folder("Output/alice/j")


async def test_a_users_odd_name_leads_to_the_users_own_folder_for_results(place: Place) -> None:
    await place.fetch("王 小/明")
    assert place.is_folder("Output/王 小%2F明/j")


async def test_the_code_is_there_until_the_job_is_forgotten(place: Place) -> None:
    await place.put("/alice/train/a.py")
    inputs = await place.fetch(codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/train")
    assert inputs.code == place.folder / "code" / "j" / "train"
    assert (inputs.code / "a.py").exists()
    await place.inputs.forget("j")
    assert not inputs.code.exists()


async def test_the_folder_for_results_that_a_job_names_is_made(place: Place) -> None:
    await place.fetch(outputDir="http://fs/alice/results/$PAI_JOB_NAME")
    assert place.is_folder("alice/results/j")
    assert not place.is_folder("Output/alice/j")


async def test_a_folder_for_results_elsewhere_is_no_business_of_ours(place: Place) -> None:
    await place.fetch(outputDir="s3://bucket/results")


async def test_groups_count_as_they_are_now_and_an_administrators_jobs_are_no_administrators(
    place: Place,
) -> None:
    await place.put("/Shared/vision/code/a.py")
    await place.put("/bob/code/a.py")
    assert (await place.refusal(codeDir="/Shared/vision/code")).problem is Problem.DENIED
    place.users["alice"] = Principal("alice", admin=True, groups=("vision",))
    assert (await place.fetch(codeDir="/Shared/vision/code")).code is not None
    assert (await place.refusal(codeDir="/bob/code")).problem is Problem.DENIED


async def test_what_is_too_large_is_said_to_be_with_what_to_do(place: Place) -> None:
    # (a hole: nothing is written)
    await place.put("/alice/train/data")
    with (place.folder / "storage/alice/train/data").open("r+b") as file:
        file.truncate(201 * 10**6)
    refusal = await place.refusal(codeDir="/alice/train")
    assert str(refusal) == (
        "codeDir /alice/train cannot be used. It holds 201 MB in 1 file; code may have 200 MB and 20000 "
        "files. Keep data elsewhere, and name it in dataDir or extras.mounts."
    )


async def test_a_storage_that_is_away_for_a_moment_is_waited_for_and_that_is_told(place: Place) -> None:
    await place.put("/alice/train/a.py")
    place.storage.broken = 2
    assert (await place.fetch(codeDir="/alice/train", outputDir="/alice/out")).code is not None
    assert [str(message) for message in place.told] == [
        "Waiting for the storage. the name node is away.",
    ] * 2


async def test_a_storage_that_stays_away_is_given_up_with_its_own_reason(place: Place) -> None:
    place.storage.broken = 1000
    refusal = await place.refusal(codeDir="/alice/train", outputDir="/alice/out")
    assert (refusal.problem, str(refusal)) == (Problem.UNAVAILABLE, "the name node is away.")
    assert len(place.told) == 3


async def test_a_hub_that_does_not_tell_who_the_user_is_is_waited_for_too(place: Place) -> None:
    await place.put("/alice/train/a.py")
    place.hub_is_away = 1
    assert (await place.fetch(codeDir="/alice/train")).code is not None
    assert [str(message) for message in place.told] == [
        "Waiting for the storage. JupyterHub does not answer."
    ]


async def test_data_in_a_folder_of_this_machine_is_mounted_from_where_it_is(place: Place) -> None:
    await place.put("/Public/data/words")
    mounts = [{"source": "$PAI_DEFAULT_FS_URI/Public/data", "target": "data"}]
    inputs = await place.fetch(extras={"mounts": mounts})
    assert inputs.mounts == (Mount(place.folder / "storage/Public/data", "data"),)


async def test_data_elsewhere_is_fetched_for_the_job_and_gone_with_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderStorage, "host_folder", lambda *_: None)
    await place.put("/Public/data/words")
    await place.put("/alice/more/words")
    mounts = [{"source": f"/{path}", "target": path} for path in ("Public/data", "alice/more")]
    inputs = await place.fetch(extras={"mounts": mounts})
    assert [(mount.source / "words").read_bytes() for mount in inputs.mounts] == [b"x", b"x"]
    await place.inputs.forget("j")
    assert not [mount for mount in inputs.mounts if mount.source.exists()]


async def test_data_beyond_the_administrators_limit_is_not_fetched(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderStorage, "host_folder", lambda *_: None)
    await place.put("/Public/data/words")
    place.inputs = JobInputs(place.job_files, max_mount_gb=0)
    refusal = await place.refusal(extras={"mounts": [{"source": "/Public/data", "target": "data"}]})
    assert refusal.problem is Problem.TOO_LARGE
    assert str(refusal).startswith("extras.mounts /Public/data cannot be used. It holds 1 MB in 1 file")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("/bob/data", "User alice may not read /bob/data."),
        ("/alice/none", "There is no file or folder /alice/none."),
        ("/alice/train/a.py", "/alice/train/a.py is a file."),
    ],
)
async def test_data_that_a_user_cannot_have_is_not_mounted(place: Place, source: str, words: str) -> None:
    await place.put("/bob/data/words")
    await place.put("/alice/train/a.py")
    refusal = await place.refusal(extras={"mounts": [{"source": source, "target": "data"}]})
    assert words in str(refusal)


async def test_data_is_not_mounted_into_the_code(place: Place) -> None:
    await place.put("/alice/train/a.py")
    mounts = [{"source": "/alice/train", "target": "train/data"}]
    refusal = await place.refusal(codeDir="/alice/train", extras={"mounts": mounts})
    assert "train/data is where the code is" in str(refusal)


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_job_that_needs_no_file_starts_while_the_storage_is_away(
    place: Place, hangs: bool, caplog: pytest.LogCaptureFixture
) -> None:
    place.storage.broken, place.storage.hangs = 1000, hangs
    assert (await place.fetch()).token
    assert not place.told
    assert "folder for results cannot be made" in caplog.text


SHARED = (
    SharedFolder("sets", "/srv/sets", "", "/data/sets"),
    SharedFolder("groups", "/srv/groups/{group}", "", "/data/{group}", writers=None),
)


async def test_shared_folders_are_those_of_the_users_groups_of_now(place: Place) -> None:
    place.inputs = JobInputs(place.job_files, shared_folders=SHARED)
    place.users["alice"] = Principal("alice", admin=True, groups=("vision",))
    place.hub_is_away = 1
    inputs = await place.fetch(extras={"sharedFolders": ["*"]})
    assert [mount.source for mount in inputs.shared] == ["/srv/sets", "/srv/groups/vision"]
    place.users["alice"] = Principal("alice", groups=("speech",))
    inputs = await place.fetch(extras={"sharedFolders": ["groups"]})
    assert [mount.source for mount in inputs.shared] == ["/srv/groups/speech"]


async def test_a_shared_folder_that_is_not_the_users_keeps_the_job_from_starting(place: Place) -> None:
    place.inputs = JobInputs(place.job_files, shared_folders=SHARED)
    place.users["alice"] = Principal("alice", groups=())
    error = await place.refusal(extras={"sharedFolders": ["groups"]})
    assert str(error.message) == "No shared folder named groups is open to you. Open to you are: sets."


async def test_where_nothing_is_shared_nobody_is_asked_who_the_user_is(place: Place) -> None:
    place.hub_is_away = 100
    assert (await place.fetch(extras={"sharedFolders": ["*"]})).shared == ()
    place.hub_is_away = 0
    error = await place.refusal(extras={"sharedFolders": ["sets"]})
    assert "Open to you are: –" in str(error.message)
