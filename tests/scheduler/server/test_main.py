"""Starting and ending the scheduler: kept promises over kill -9, and one sentence where it cannot start."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client.rest import Client, UnreachableError
from pai_scheduler.server.components import hub_place
from pai_scheduler.server.main import main
from tests.testbed.scheduler import RunningScheduler, clean_environ, hello_job


async def _until_there(file: Path) -> None:
    for _ in range(1000):
        if file.exists():
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"{file} never came")


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[RunningScheduler]:
    """Run a scheduler for one test; whatever its jobs are doing is stopped in the end."""
    running = await asyncio.to_thread(RunningScheduler, tmp_path)
    yield running
    await asyncio.to_thread(running.close)


async def test_what_was_acknowledged_outlives_kill_9(own: RunningScheduler, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    command = f"echo begun; while [ ! -e {gate} ]; do sleep 0.05; done; echo done; exit 5"
    async with Client(own.url, "token-of-alice") as alice:
        await alice.submit(hello_job("runs-on", command))
        async for event in alice.events("alice", "runs-on"):
            if event["type"] == "running":
                break
        names = [f"acknowledged-{number}" for number in range(20)]
        await asyncio.gather(*(alice.submit(hello_job(name)) for name in names))
        own.kill()
        with pytest.raises(UnreachableError):
            await alice.jobs()
        await asyncio.to_thread(own.start)
        assert {job["name"] for job in await alice.jobs()} == {*names, "runs-on"}
        gate.touch()
        for name in [*names, "runs-on"]:
            async for _ in alice.events("alice", name):
                pass
        status = (await alice.job("alice", "runs-on"))["jobStatus"]
        assert (status["state"], status["appExitCode"]) == ("FAILED", 5)
        # (another program of this machine may have had a port: then there was an attempt that never ran)
        ran = [attempt for attempt in await alice.attempts("alice", "runs-on") if attempt["launchedTime"]]
        assert len(ran) == 1
        # run once, and not a line is missing
        assert await alice.log("alice", "runs-on", "main", 0) == b"begun\ndone\n"
        for name in names:
            assert await alice.log("alice", name, "main", 0) == b"hello\n"


async def test_a_task_that_ended_while_the_service_was_down_has_its_real_exit_code(
    own: RunningScheduler, tmp_path: Path
) -> None:
    async with Client(own.url, "token-of-alice") as alice:
        await alice.submit(hello_job("ends-alone", f"sleep 1; touch {tmp_path}/over; exit 9"))
        async for event in alice.events("alice", "ends-alone"):
            if event["type"] == "running":
                break
        assert own.terminate() == 0
        await _until_there(tmp_path / "over")
        await asyncio.to_thread(own.start)
        async for _ in alice.events("alice", "ends-alone"):
            pass
        assert (await alice.job("alice", "ends-alone"))["jobStatus"]["appExitCode"] == 9


async def test_sigterm_cuts_streams_so_that_their_readers_come_back(own: RunningScheduler) -> None:
    async with Client(own.url, "token-of-alice") as alice:
        await alice.submit(hello_job("streamed", "echo x; sleep 600"))
        seen: list[int] = []

        async def read_on() -> None:
            async for event in alice.events("alice", "streamed"):
                seen.append(event["id"])
                if event["type"] == "running":
                    assert await asyncio.to_thread(own.terminate) == 0

        with pytest.raises(UnreachableError):
            await read_on()
        await asyncio.to_thread(own.start)
        async for event in alice.events("alice", "streamed", after=seen[-2]):
            assert event["id"] == seen[-1]
            break


Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Refused:
    """Start the scheduler where that cannot work; return the sentence it says."""

    def start(*options: str, **environ: str) -> str:
        for name in ("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_NAME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        assert main(options) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("pai-scheduler: ")
        return line

    return start


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """Return options with which it would start."""
    tokens = tmp_path / "tokens.json"
    tokens.write_text("{}")
    tokens.chmod(0o600)
    return ["--data-dir", str(tmp_path / "data"), "--tokens", str(tokens), "--port", "0"]


def test_a_folder_has_one_scheduler(scheduler: RunningScheduler) -> None:
    done = subprocess.run(
        scheduler.command(), env=clean_environ(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert str(scheduler.process.pid) in sentence
    assert str(scheduler.data_dir) in sentence


def test_a_taken_port_is_named(refused: Refused, options: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        sentence = refused(*options, "--port", port)
    assert f"Port {port}" in sentence
    assert "--port" in sentence


def test_a_storage_that_cannot_be_is_said_to_be_none(refused: Refused, options: list[str]) -> None:
    sentence = refused(*options, "--storage", "hdfs://name:9000")
    assert "The storage cannot be used: hdfs://name:9000 names no storage." in sentence


def test_without_docker_it_says_so(refused: Refused, options: list[str], tmp_path: Path) -> None:
    sentence = refused(*options, "--engine", "docker", DOCKER_HOST=f"unix://{tmp_path}/no.sock")
    assert "ocker" in sentence


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("nodes: [{name: a, cpus: 0}]", "nodes[0].cpus"),
        ("nodes:\n  - {name: a\n", "line 3"),
        ("virtualClusters: {default: {capacity: 60}, b: {capacity: 50}}", "110"),
    ],
)
def test_a_wrong_cluster_file_is_named_with_the_place(
    refused: Refused, options: list[str], tmp_path: Path, content: str, place: str
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(content)
    sentence = refused(*options, "--cluster", str(file))
    assert str(file) in sentence
    assert place in sentence


def test_a_missing_cluster_or_tokens_file_is_named(
    refused: Refused, options: list[str], tmp_path: Path
) -> None:
    for option in ("--cluster", "--tokens"):
        sentence = refused(*options, option, str(tmp_path / "none"))
        assert str(tmp_path / "none") in sentence
        assert "No such file" in sentence


def test_without_anybody_to_ask_it_says_how_to_make_a_tokens_file(refused: Refused, tmp_path: Path) -> None:
    sentence = refused("--data-dir", str(tmp_path / "data"))
    assert "--tokens" in sentence
    command = sentence.partition("is made by: ")[2]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    ((token, user),) = json.loads((tmp_path / "tokens.json").read_text()).items()
    assert len(token) == 32
    assert user["admin"] is True


def test_the_process_engine_listens_on_this_machine_only(refused: Refused, options: list[str]) -> None:
    assert "--engine docker" in refused(*options, "--host", "0.0.0.0")  # noqa: S104


def test_a_folder_that_cannot_be_used_is_named(refused: Refused, options: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in refused(*options, "--data-dir", str(tmp_path / "file"))


def test_a_spoilt_database_is_one_sentence(refused: Refused, options: list[str], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "scheduler.sqlite").write_bytes(
        b"this is no database, but long enough to be read" * 99
    )
    assert str(tmp_path / "data") in refused(*options)


def test_a_notebook_server_is_no_place_for_a_service() -> None:
    place = hub_place({"JUPYTERHUB_SERVICE_PREFIX": "/user/alice/", "JUPYTERHUB_SERVICE_URL": "http://x:1/"})
    assert (place.prefix, place.host, place.port) == ("/", None, None)


def test_the_hub_says_where_its_service_is() -> None:
    place = hub_place(
        {
            "JUPYTERHUB_SERVICE_NAME": "pai",
            "JUPYTERHUB_SERVICE_PREFIX": "/hub base/services/pai/",
            "JUPYTERHUB_SERVICE_URL": "http://127.0.0.1:9187",
        }
    )
    assert (place.prefix, place.host, place.port) == ("/hub base/services/pai/", "127.0.0.1", 9187)


async def test_a_changed_tokens_file_counts_without_a_restart(own: RunningScheduler) -> None:
    own.tokens.write_text(
        json.dumps({"fresh": {"name": "alice"}, "token-of-root": {"name": "root", "admin": True}})
    )
    async with httpx.AsyncClient(base_url=own.url, trust_env=False) as client:
        for token, status in (("fresh", 200), ("token-of-alice", 401)):
            answer = await client.get("/api/v1/jobs", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == status


def test_a_token_for_metrics_that_cannot_be_used_is_named_before_anything_starts(
    refused: Refused, options: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "metrics-token"
    assert str(file) in refused(*options, "--metrics-token-file", str(file))
    file.write_text("short")
    assert "16" in refused(*options, "--metrics-token-file", str(file))
    assert not (tmp_path / "data").exists()


async def test_a_lost_database_ends_no_task_unless_that_is_said(
    own: RunningScheduler, tmp_path: Path
) -> None:
    async with Client(own.url, "token-of-alice") as alice:
        await alice.submit(hello_job("precious", f"echo $$ > {tmp_path}/pid; exec sleep 1000"))
        await _until_there(tmp_path / "pid")
        async for event in alice.events("alice", "precious"):
            if event["type"] == "running":
                break
        own.kill()
        for file in own.data_dir.glob("scheduler.sqlite*"):
            file.rename(tmp_path / file.name)
        done = await asyncio.to_thread(
            subprocess.run, own.command(), env=clean_environ(), capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 2
        (sentence,) = done.stderr.splitlines()
        assert "--start-empty" in sentence
        assert str(own.data_dir) in sentence
        # as it was: put back, it goes on
        for file in tmp_path.glob("scheduler.sqlite*"):
            file.rename(own.data_dir / file.name)
        await asyncio.to_thread(own.start)
        assert (await alice.job("alice", "precious"))["jobStatus"]["subState"] == "RUNNING"
        assert len(await alice.attempts("alice", "precious")) == 1
        own.kill()
        (own.data_dir / "scheduler.sqlite").write_bytes(b"")
        own._options = ("--start-empty",)
        await asyncio.to_thread(own.start)
        assert await alice.jobs() == []
        task = Path("/proc") / (tmp_path / "pid").read_text().strip()
        for _ in range(600):
            if not task.exists():
                break
            await asyncio.sleep(0.05)
        assert not task.exists()


async def test_a_lost_key_is_not_replaced_in_silence(own: RunningScheduler) -> None:
    own.kill()
    for spoil in (
        lambda file: file.write_bytes(b""),
        lambda file: file.unlink(),
    ):
        spoil(own.data_dir / "job-keys.key")
        done = await asyncio.to_thread(
            subprocess.run, own.command(), env=clean_environ(), capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 2
        (sentence,) = done.stderr.splitlines()
        assert "job-keys.key" in sentence
        assert "--new-keys" in sentence
    own._options = ("--new-keys",)
    await asyncio.to_thread(own.start)


def test_a_folder_has_one_scheduler_though_its_lock_file_is_removed(scheduler: RunningScheduler) -> None:
    (scheduler.data_dir / "lock").unlink()
    done = subprocess.run(
        scheduler.command(), env=clean_environ(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "Another scheduler" in done.stderr
    (scheduler.data_dir / "lock").write_text(str(scheduler.process.pid))
