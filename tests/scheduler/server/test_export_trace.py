"""`pai-scheduler export-trace` writes what the database knows of jobs, and `simulate` replays it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from pai_scheduler.client.rest import Client
from pai_scheduler.job.validation import parse_job
from pai_scheduler.server.export_trace import Export
from pai_scheduler.server.main import main
from pai_scheduler.server.options import moment
from pai_scheduler.simulator.traces import TraceJob, TraceRole, read_trace
from pai_scheduler.store.records import RecordedJob
from tests.scheduler.making import make_config, make_role
from tests.scheduler.store.first_version import make_first_version
from tests.testbed.scheduler import PROGRAM, StartScheduler, clean_environ, hello_job

CLUSTER = "nodes: [{name: a, cpus: 64, memoryMB: 100000, storageGB: 1000}]"


def record(name: str, user: str, placed: int | None, ended: int | None, **fields: object) -> RecordedJob:
    spec = parse_job(make_config(*fields.pop("roles", ()), name=name, **fields))  # type: ignore[misc]
    return RecordedJob(name, user, spec, 1000, 60, placed, ended)


def test_a_recorded_job_becomes_one_of_a_trace() -> None:
    roles = (make_role("ps", 2, cpus=4, memory_mb=500, storage_gb=7), make_role("worker", 3, gpus=2))
    del roles[1]["storageGB"]
    extras = {"maxRunSeconds": 90, "preemptible": False}
    one = record("train", "bob", 3000, 8000, roles=roles, gpuType="P100", extras=extras)
    assert list(Export([one], 9000, 3, anonymous=False)) == [
        TraceJob(
            "bob/train",
            "bob",
            "default",
            1000,
            5000,
            (TraceRole(2, 0, 4, 500, 7), TraceRole(3, 2, 1, 100, 3)),
            "P100",
            60,
            90,
            preemptible=False,
            program="program-1",
        )
    ]


def test_what_runs_has_run_until_now_and_what_never_ran_is_left_out() -> None:
    export = Export(
        [record("a", "x", 3000, None), record("b", "y", None, None), record("c", "x", 9500, None)],
        9000,
        20,
        anonymous=True,
    )
    assert [(job.name, job.user, job.run_ms) for job in export] == [
        ("job-1", "user-1", 6000),
        ("job-3", "user-1", 0),
    ]
    assert (export.running, export.never_ran) == (2, 1)


def program(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *map(str, words)], env=clean_environ(), capture_output=True, text=True, timeout=120
    )


async def test_jobs_of_a_scheduler_that_runs_are_exported_and_replayed(
    tmp_path: Path, own_scheduler: StartScheduler
) -> None:
    scheduler = await asyncio.to_thread(own_scheduler)
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(hello_job("short", "true"))
        await alice.submit(hello_job("long", "exec sleep 1000"))
        async for event in alice.events("alice", "short"):
            if event["type"] == "ended":
                break
        async for event in alice.events("alice", "long"):
            if event["type"] == "running":
                break
    trace = tmp_path / "jobs.csv"
    words = ("export-trace", trace, "--from", "2020-01-01", "--data-dir", scheduler.data_dir)
    done = await asyncio.to_thread(program, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == [
        f"2 jobs are written to {trace}.",
        "1 of them had not ended: they run for as long as they had until now.",
    ]
    jobs = read_trace(trace.read_text(encoding="utf-8").splitlines(keepends=True))
    assert {job.name for job in jobs} == {"alice/short", "alice/long"}
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    replayed = await asyncio.to_thread(
        program, "simulate", "--trace", trace, "--cluster", tmp_path / "cluster.yaml", "--json"
    )
    found = json.loads(replayed.stdout)
    assert (found["jobs"], found["ended"]) == (2, 2)
    assert found["completionSeconds"]["p99"] == max(job.run_ms for job in jobs) / 1000


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("9999", "The database is of another version of the scheduler."),
        ("0001", "it was written before the first release"),
    ],
)
def test_a_database_of_another_version_is_left_as_it_is(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    said: str,
) -> None:
    monkeypatch.delenv("PAI_DATABASE_URL", raising=False)
    make_first_version(f"sqlite:///{tmp_path}/scheduler.sqlite", version)
    before = (tmp_path / "scheduler.sqlite").read_bytes()
    assert main(["--data-dir", str(tmp_path), "export-trace", str(tmp_path / "jobs.csv")]) == 2
    assert said in capsys.readouterr().err
    assert (tmp_path / "scheduler.sqlite").read_bytes() == before
    assert not (tmp_path / "jobs.csv").exists()


def test_where_there_is_no_database_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data-dir", str(tmp_path), "export-trace", str(tmp_path / "jobs.csv")]) == 2
    assert "There is no database in" in capsys.readouterr().err


def test_a_date_may_have_a_time_and_a_zone(capsys: pytest.CaptureFixture[str]) -> None:
    assert moment("2026-11-01T08:00+08:00") == moment("2026-11-01T00:00Z") == 1_793_491_200_000
    with pytest.raises(SystemExit):
        main(["export-trace", "x.csv", "--from", "yesterday"])
    assert "yesterday is no date: give for example 2026-11-01" in capsys.readouterr().err
