"""All that the API's document allows, and what it forbids, tried on a real scheduler by schemathesis."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

FOLDER = Path(__file__).with_name("fuzz")
PROGRAM = Path(sys.executable).parent / "schemathesis"


@pytest.fixture
def world(own_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler with the jobs that the dictionaries of schemathesis.toml name."""
    running = own_scheduler()
    with httpx.Client(
        base_url=f"{running.url}/api/v1",
        headers={"Authorization": "Bearer token-of-alice"},
        trust_env=False,
        timeout=30,
    ) as alice:
        alice.post("/jobs", json=hello_job("ended")).raise_for_status()
        alice.get("/user/alice/jobs/ended/events?follow=1").raise_for_status()
        too_big = [{"name": "main", "command": "true", "gpuNumber": 99}]
        alice.post("/jobs", json=hello_job("waits", taskRoles=too_big)).raise_for_status()
    return running


def fuzz(world: RunningScheduler, *options: str) -> subprocess.CompletedProcess[str]:
    """Let schemathesis try what it knows, the same each time; `options` of `schemathesis run`."""
    return subprocess.run(
        [
            *(str(PROGRAM), "--config-file", str(FOLDER / "schemathesis.toml"), "run"),
            f"{world.url}/api/v1/openapi.json",
            *("--generation-deterministic", "--no-color"),
            *options,
        ],
        env={**os.environ, "FUZZ_HOOKS": str(FOLDER / "hooks.py"), "NO_PROXY": "*"},
        cwd=world.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.long
def test_no_request_gets_an_answer_that_the_document_does_not_have(
    world: RunningScheduler, thorough: bool
) -> None:
    run = fuzz(world, "--checks", "all", "--max-examples", "20" if thorough else "2")
    assert run.returncode == 0, run.stdout
    assert "Traceback" not in world.log.read_text()
    # it has really been through all addresses
    for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"):
        assert f"✅ {phase}" in run.stdout
    assert httpx.get(f"{world.url}/healthz", trust_env=False).json() == {"status": "ok"}
