"""Many nodes in one process: a real scheduler takes them for a Swarm."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.daemon
def test_a_scheduler_runs_jobs_over_stand_ins_for_nodes_and_their_agents() -> None:
    sizes = ("--nodes=3", "--tasks=12", "--gang=2", "--seconds=0.1")
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.agents", *sizes],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith(("1 node", "3 nodes", "3, no"))]
    assert len(rows) == 12
    assert sum("tasks a minute" in row for row in rows) == 6
