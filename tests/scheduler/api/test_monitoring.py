"""What monitoring gets: readiness, metrics, the usage of each task, a log for programs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tornado.netutil import bind_sockets

from pai_scheduler.api.http_server import serve
from pai_scheduler.api.standby import make_standby_app
from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.monitoring.series import SERIES
from pai_scheduler.rest.models import TaskMetrics
from tests.testbed.scheduler import TOKENS, RunningScheduler, hello_job
from tests.testbed.warm import WarmScheduler

TOKEN = "a-token-for-prometheus-only"
SECRET = "s3cret-of-a-job"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningScheduler]:
    """Run a scheduler that is watched, and logs for programs."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "token").write_text(f"{TOKEN}\n")
    options = ("--metrics-token-file", str(folder / "token"), "--log-format", "json", "--log-level", "debug")
    running = WarmScheduler(folder, *options)
    yield running
    running.close()


@pytest.fixture
async def alice(watched: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(watched.url, "token-of-alice") as client:
        yield client


async def get(scheduler: RunningScheduler, path: str, token: str | None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        return await client.get(f"{scheduler.url}{path}", headers=headers)


async def samples(scheduler: RunningScheduler) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return every value by its name and the values of its labels."""
    text = (await get(scheduler, "/metrics", TOKEN)).text
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def finish(client: Client, name: str) -> None:
    async for _ in client.events("alice", name):
        pass


async def until(condition: Callable[[], object], what: str) -> None:
    for _ in range(600):
        if condition():
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"never: {what}")


async def until_measured(client: Client, name: str, attempt: int | None = None) -> TaskMetrics:
    for _ in range(600):
        metrics = await client.task_metrics("alice", name, "main", 0, attempt=attempt)
        if metrics["series"]["cpuPercent"]:
            return metrics
        await asyncio.sleep(0.05)
    pytest.fail(f"{name} was never measured")


def until_there(file: Path) -> str:
    """Return a command that ends when a file is there: not before something was measured of it."""
    return f"while [ ! -e {file} ]; do sleep 0.1; done"


# -- who may look


@pytest.mark.parametrize(
    ("token", "metrics", "readyz"),
    [
        (TOKEN, 200, 200),
        ("token-of-root", 200, 200),
        ("token-of-alice", 403, 200),
        ("nobodys-token-that-is-long", 401, 401),
        (TOKEN[:-1], 401, 401),
        (None, 401, 401),
    ],
)
async def test_who_may_read_the_metrics_and_whether_it_is_ready(
    watched: RunningScheduler, token: str | None, metrics: int, readyz: int
) -> None:
    assert (await get(watched, "/metrics", token)).status_code == metrics
    assert (await get(watched, "/readyz", token)).status_code == readyz


async def test_the_token_for_metrics_opens_nothing_else(watched: RunningScheduler) -> None:
    for path in ("/api/v1/jobs", "/api/v1/nodes", "/api/v1/user", "/api/v1/events"):
        assert (await get(watched, path, TOKEN)).status_code == 401, path
    async with httpx.AsyncClient(trust_env=False, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        assert (await client.post(f"{watched.url}/metrics")).status_code == 401


async def test_a_new_token_counts_at_once_and_without_its_file_nobody_gets_in(
    watched: RunningScheduler,
) -> None:
    file = watched.folder / "token"
    try:
        file.write_text("quite-another-token-this-time")
        assert (await get(watched, "/metrics", TOKEN)).status_code == 401
        assert (await get(watched, "/metrics", "quite-another-token-this-time")).status_code == 200
        file.unlink()
        assert (await get(watched, "/metrics", TOKEN)).status_code == 401
        assert (await get(watched, "/metrics", "token-of-root")).status_code == 200
    finally:
        file.write_text(TOKEN)


# -- the scheduler's own metrics


async def test_what_happens_is_counted(watched: RunningScheduler, alice: Client, tmp_path: Path) -> None:
    before, fail = await samples(watched), tmp_path / "fail"
    command = f"{until_there(fail)}; exit 3"
    job = hello_job("counted", command, retryCount=1, jobEnvs={"PASSWORD": SECRET})
    job["taskRoles"][0]["gpuNumber"] = 2
    await alice.submit({**job, "gpuType": "P100"})
    await until_measured(alice, "counted")
    during = await samples(watched)
    assert during["pai_gpus_used", ("P100", "default")] == 2
    assert during["pai_cpus_used", ("default",)] >= 1
    assert during["pai_memory_busy_bytes", ("default",)] > 0
    assert during["pai_jobs", ("RUNNING", "RUNNING", "default")] == 1
    fail.touch()
    await finish(alice, "counted")
    # that events are followed is to be seen, and what was sent
    after = await samples(watched)

    def more(name: str, *labels: str) -> float:
        return after[name, labels] - before.get((name, labels), 0)

    assert more("pai_job_submissions_total", "default") == 1
    assert more("pai_jobs_ended_total", "FAILED", "default") == 1
    assert more("pai_job_queue_seconds_count", "default") == 1
    assert more("pai_job_start_seconds_count", "default") == 2
    assert more("pai_job_retries_total", "UNKNOWN") == 1
    assert more("pai_task_starts_total") == 2
    assert more("pai_task_ends_total", "exited") == 2
    assert more("pai_commit_events_sum") >= 5
    assert more("pai_http_requests_total", "JobsHandler", "202") == 1
    assert more("pai_http_requests_total", "EventsHandler", "200") == 1
    assert more("pai_stream_bytes_total", "EventsHandler") > 0
    assert after["pai_open_streams", ("EventsHandler",)] == 0
    assert after["pai_gpus_used", ("P100", "default")] == 0
    assert after["pai_cpus_used", ("default",)] == 0
    assert after["pai_jobs", ("RUNNING", "RUNNING", "default")] == 0
    assert after["pai_nodes", ("ready",)] == 1
    assert after["pai_gpus", ("TITANX",)] == 4


async def test_an_open_stream_is_counted_while_it_is_open(watched: RunningScheduler, alice: Client) -> None:
    await alice.submit(hello_job("streamed-for-metrics", "sleep 30"))
    async for event in alice.events("alice", "streamed-for-metrics"):
        if event["type"] == "running":
            assert (await samples(watched))["pai_open_streams", ("EventsHandler",)] == 1
            break
    await alice.stop("alice", "streamed-for-metrics")
    for _ in range(600):
        if (await samples(watched))["pai_open_streams", ("EventsHandler",)] == 0:
            return
        await asyncio.sleep(0.05)
    pytest.fail("a stream that its reader left is never closed")


async def test_no_job_and_no_user_is_named_by_a_metric(watched: RunningScheduler, alice: Client) -> None:
    await alice.submit(hello_job("not-to-be-named"))
    await finish(alice, "not-to-be-named")
    text = (await get(watched, "/metrics", TOKEN)).text
    for name in ("not-to-be-named", "alice", "root", SECRET, *TOKENS):
        assert name not in text


async def test_what_runs_is_counted_again_after_a_kill(watched: RunningScheduler, alice: Client) -> None:
    job = hello_job("outlives", "sleep 600")
    job["taskRoles"][0]["gpuNumber"] = 3
    await alice.submit({**job, "gpuType": "TITANX"})
    before = (await until_measured(alice, "outlives"))["series"]["cpuPercent"]
    watched.kill()
    await asyncio.to_thread(watched.start)
    now = await samples(watched)
    assert now["pai_gpus_used", ("TITANX", "default")] == 3
    assert now["pai_jobs", ("RUNNING", "RUNNING", "default")] == 1
    # a task that runs on was not started again
    assert now["pai_task_starts_total", ()] == 0
    for _ in range(600):
        after = (await alice.task_metrics("alice", "outlives", "main", 0))["series"]["cpuPercent"]
        if len(after) > len(before):
            break
        await asyncio.sleep(0.05)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    await alice.stop("alice", "outlives")
    await finish(alice, "outlives")


# -- what a task uses


async def test_a_task_that_works_is_seen_to_work(alice: Client) -> None:
    await alice.submit(hello_job("works", "timeout 20 sh -c 'while :; do :; done'"))
    metrics = await until_measured(alice, "works")
    assert set(metrics["series"]) == set(SERIES)
    assert metrics["interval"] == 10
    ((time, percent),) = metrics["series"]["cpuPercent"]
    assert percent > 5
    assert metrics["series"]["memoryMB"][0][1] > 0
    # no GPU, so none is measured
    assert metrics["series"]["gpuPercent"] == []
    assert metrics["gpuMemoryTotalMB"] is None
    later = await alice.task_metrics("alice", "works", "main", 0, after=time)
    assert [moment for moment, _ in later["series"]["cpuPercent"] if moment <= time] == []
    await alice.stop("alice", "works")
    await finish(alice, "works")
    assert (await alice.task_metrics("alice", "works", "main", 0))["series"]["cpuPercent"]


async def test_each_attempt_has_its_own_record(alice: Client, tmp_path: Path) -> None:
    fail = tmp_path / "fail"
    await alice.submit(hello_job("measured-twice", f"{until_there(fail)}; rm {fail}; exit 1", retryCount=1))
    for attempt in range(2):
        while len(await alice.attempts("alice", "measured-twice")) <= attempt:  # noqa: ASYNC110 - soon
            await asyncio.sleep(0.05)
        await until_measured(alice, "measured-twice", attempt)
        fail.touch()
    await finish(alice, "measured-twice")
    ran = [
        item["attempt"] for item in await alice.attempts("alice", "measured-twice") if item["launchedTime"]
    ]
    first, second = [
        (await alice.task_metrics("alice", "measured-twice", "main", 0, attempt=attempt))["series"]
        for attempt in ran
    ]
    assert first["cpuPercent"][-1][0] < second["cpuPercent"][0][0]


async def test_a_record_is_its_owners_and_goes_with_the_job(watched: RunningScheduler, alice: Client) -> None:
    await alice.submit(hello_job("recorded", "sleep 100000"))
    await until_measured(alice, "recorded")
    await alice.stop("alice", "recorded")
    await finish(alice, "recorded")
    path = "/api/v1/user/alice/jobs/recorded/taskRoles/main/tasks/0/metrics"
    for token, status in (
        ("token-of-alice", 200),
        ("token-of-root", 200),
        ("token-of-bob", 404),
        (None, 401),
    ):
        assert (await get(watched, path, token)).status_code == status, token
    assert (await get(watched, path.replace("tasks/0", "tasks/1"), "token-of-alice")).status_code == 404
    assert (await get(watched, f"{path}?attempt=7", "token-of-alice")).status_code == 404
    assert (await get(watched, f"{path}?after=soon", "token-of-alice")).status_code == 400
    job_id = (await alice.job("alice", "recorded"))["jobStatus"]["appId"]
    await until(lambda: list(watched.data_dir.glob(f"*/*{job_id}*/log/usage")), "a record beside the log")
    await alice.delete("alice", "recorded")
    with pytest.raises(ApiError, match="not found"):
        await alice.task_metrics("alice", "recorded", "main", 0)
    await until(lambda: not list(watched.data_dir.glob(f"*/*{job_id}*")), "the record goes with its job")


# -- readiness and the log


async def test_a_scheduler_whose_database_is_gone_is_alive_but_not_ready(
    own_scheduler: Callable[..., RunningScheduler], tmp_path: Path
) -> None:
    running = await asyncio.to_thread(own_scheduler)
    database = running.data_dir / "scheduler.sqlite"
    database.rename(tmp_path / "elsewhere")
    answer = await get(running, "/readyz", "token-of-bob")
    assert answer.status_code == 503
    assert answer.json()["status"] == "failing"
    (reason,) = answer.json()["reasons"]
    assert str(database) in reason
    assert (await get(running, "/healthz", None)).status_code == 200
    (tmp_path / "elsewhere").rename(database)


async def test_a_standby_is_alive_and_not_ready() -> None:
    sockets = bind_sockets(0, "127.0.0.1")
    server = serve(make_standby_app("/services/pai/", lambda: "http://leader:1"), sockets)
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/services/pai"
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{url}/healthz")).status_code == 200
        answer = await client.get(f"{url}/readyz")
    assert answer.status_code == 503
    assert answer.json()["status"] == "standby"
    assert "http://leader:1" in answer.json()["reasons"][0]
    server.stop()
    await server.close_all_connections()


async def test_the_log_is_one_object_per_line_says_what_it_is_about_and_no_secret(
    watched: RunningScheduler, alice: Client
) -> None:
    await alice.submit(hello_job("logged", "echo x", jobEnvs={"PASSWORD": SECRET}))
    await finish(alice, "logged")
    await get(watched, "/api/v1/jobs", "token-of-nobody-at-all")
    job_id = (await alice.job("alice", "logged"))["jobStatus"]["appId"]
    lines = [json.loads(line) for line in watched.log.read_text().splitlines()]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    events = [line for line in lines if line.get("job") == job_id]
    assert [line["event"] for line in events][:2] == ["submitted", "placed"]
    (ended,) = [line for line in events if line["event"] == "task-ended"]
    assert (ended["user"], ended["jobName"], ended["task"]) == ("alice", "logged", "main-0")
    requests = [line for line in lines if line["logger"] == "pai_scheduler.access"]
    refused = [line for line in requests if line["path"] == "/api/v1/jobs" and line["status"] == 401]
    assert (refused[-1]["method"], refused[-1]["level"]) == ("GET", "info")
    (posted,) = [line for line in requests if line["method"] == "POST" and line["status"] == 202][-1:]
    assert posted["user"] == "alice"
    for secret in (SECRET, TOKEN, *TOKENS, "token-of-nobody-at-all"):
        assert secret not in watched.log.read_text(), secret
