"""An administrator backs the database up, checks it and restores it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client.rest import Client
from pai_scheduler.server.components import open_store
from pai_scheduler.server.main import main
from tests.scheduler.store.damage import cut, overwrite
from tests.scheduler.store.first_version import JOBS, make_first_version
from tests.scheduler.store.stored_jobs import add
from tests.testbed.scheduler import PROGRAM, RunningScheduler, clean_environ, hello_job
from tests.testbed.warm import WarmScheduler

Do = Callable[..., tuple[int, str]]


@pytest.fixture
def do(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Do:
    """Return a command to a data folder; return the exit code and what was said."""
    monkeypatch.delenv("PAI_DATABASE_URL", raising=False)

    def run(*words: object, folder: str = "data") -> tuple[int, str]:
        code = main(["--data-dir", str(tmp_path / folder), *map(str, words)])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Make a data folder with a job."""
    (tmp_path / "data").mkdir()
    store = open_store(tmp_path / "data")
    add(store, "kept")
    store.close()
    return tmp_path / "data"


def names(folder: Path) -> list[str]:
    store = open_store(folder)
    try:
        return [job.name for job in store.jobs()]
    finally:
        store.close()


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[RunningScheduler]:
    running = await asyncio.to_thread(WarmScheduler, tmp_path)
    yield running
    await asyncio.to_thread(running.close)


def program(scheduler: RunningScheduler, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *words, "--data-dir", scheduler.data_dir],
        env=clean_environ(),
        capture_output=True,
        text=True,
        timeout=60,
    )


async def test_a_backup_made_while_it_runs_brings_a_lost_disk_back(
    own: RunningScheduler, tmp_path: Path
) -> None:
    async with Client(own.url, "token-of-alice") as alice:
        await alice.submit(hello_job("before", "exec sleep 1000"))
        async for event in alice.events("alice", "before"):
            if event["type"] == "running":
                break
        made = await asyncio.to_thread(program, own, "backup", str(tmp_path / "backup"))
        assert made.returncode == 0, made.stderr
        whole = await asyncio.to_thread(program, own, "check")
        assert whole.returncode == 0, whole.stdout
        refused = await asyncio.to_thread(program, own, "restore", str(tmp_path / "backup"))
        assert refused.returncode == 2
        assert f"process {own.process.pid}" in refused.stderr
        own.kill()
        for file in own.data_dir.glob("scheduler.sqlite*"):
            file.unlink()
        restored = await asyncio.to_thread(program, own, "restore", str(tmp_path / "backup"))
        assert restored.returncode == 0, restored.stderr
        await asyncio.to_thread(own.start)
        assert (await alice.job("alice", "before"))["jobStatus"]["subState"] == "RUNNING"
        assert len(await alice.attempts("alice", "before")) == 1


async def test_damage_is_said_by_readyz_and_the_log(own: RunningScheduler) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:

        async def ready() -> httpx.Response:
            return await http.get(f"{own.url}/readyz", headers={"Authorization": "Bearer token-of-root"})

        assert (await ready()).json() == {"status": "ready", "reasons": []}
        own.terminate()
        overwrite(own.data_dir / "scheduler.sqlite")
        await asyncio.to_thread(own.start)
        answer = await ready()
        assert answer.status_code == 503
        assert any("pai-scheduler restore" in reason for reason in answer.json()["reasons"])
        assert "StorageDamagedError" in own.log.read_text()
        asked = await http.get(
            f"{own.url}/api/v1/user/alice/jobs/x", headers={"Authorization": "Bearer token-of-alice"}
        )
        assert (asked.status_code, asked.json()["code"]) == (503, "StorageDamagedError")
    own.terminate()
    # (nothing of it is needed)
    for file in own.data_dir.glob("scheduler.sqlite*"):
        file.unlink()
    own._options = ("--start-empty",)
    await asyncio.to_thread(own.start)


def test_a_backup_is_restored_and_what_was_there_is_kept(do: Do, data: Path, tmp_path: Path) -> None:
    assert do("backup", tmp_path / "b")[0] == 0
    store = open_store(data)
    add(store, "later")
    store.close()
    code, said = do("restore", tmp_path / "b")
    assert code == 0
    assert names(data) == ["kept"]
    (aside,) = [
        path for path in data.glob("scheduler.sqlite.before-*") if path.suffix not in ("-wal", "-shm")
    ]
    assert str(aside) in said


@pytest.mark.parametrize("spoil", [overwrite, cut])
def test_a_damaged_database_is_named_and_not_backed_up_over_a_good_one(
    do: Do, data: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    assert do("check")[0] == 0
    assert do("backup", tmp_path / "b")[0] == 0
    good = (tmp_path / "b").read_bytes()
    spoil(data / "scheduler.sqlite")
    code, said = do("check")
    assert code == 1
    assert "pai-scheduler restore FILE" in said
    assert do("backup", tmp_path / "b")[0] == 2
    assert (tmp_path / "b").read_bytes() == good
    spoil(tmp_path / "b")
    assert do("restore", tmp_path / "b")[0] == 2
    (tmp_path / "b").write_bytes(good)
    assert do("restore", tmp_path / "b")[0] == 0
    assert names(data) == ["kept"]
    assert not list(data.glob("*.part"))


def test_what_cannot_be_a_backup_is_refused(do: Do, data: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database")
    (tmp_path / "other").mkdir()
    open_store(tmp_path / "other").close()
    for words in (
        ("restore", tmp_path / "none"),
        ("restore", tmp_path / "text"),
        ("restore", data / "scheduler.sqlite"),
        ("restore", tmp_path / "other" / "scheduler.sqlite"),
        ("backup", tmp_path),
        ("backup", data / "scheduler.sqlite"),
        ("backup", tmp_path / "none" / "b"),
    ):
        code, said = do(*words)
        assert (code, len(said.splitlines())) == (2, 1), words
    assert names(data) == ["kept"]
    assert do("check", folder="nothing")[0] == 2
    assert do("backup", tmp_path / "b", folder="nothing")[0] == 2


def test_a_backup_of_the_first_version_is_restored(do: Do, tmp_path: Path) -> None:
    make_first_version(f"sqlite:///{tmp_path}/old")
    (tmp_path / "new").mkdir()
    assert do("restore", tmp_path / "old", folder="new")[0] == 0
    assert len(names(tmp_path / "new")) == len(JOBS)


def test_a_backup_from_before_the_first_release_replaces_nothing(do: Do, data: Path, tmp_path: Path) -> None:
    make_first_version(f"sqlite:///{tmp_path}/old", "0006")
    code, said = do("restore", tmp_path / "old")
    assert (code, len(said.splitlines())) == (2, 1)
    assert f"{tmp_path}/old is of a scheduler from before the first release" in said
    assert "0006" in said
    assert names(data) == ["kept"]


@pytest.mark.parametrize(
    ("words", "tool"),
    [(("backup", "f"), "pg_dump"), (("check",), "pg_amcheck"), (("restore", "f"), "pg_restore")],
)
def test_for_a_postgresql_its_own_tools_are_named_without_a_password(
    do: Do, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], tool: str
) -> None:
    monkeypatch.setenv("PAI_DATABASE_URL", "postgresql://pai:secret@db/pai")
    code, said = do(*words)
    assert code == 2
    assert tool in said
    assert "secret" not in said
