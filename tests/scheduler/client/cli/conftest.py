"""`pai` as somebody at a terminal has it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.testbed.scheduler import RunningScheduler, clean_environ
from tests.testbed.warm import run_pai_text

PAI = Path(sys.executable).parent / "pai"


def environ_for(scheduler: RunningScheduler, **more: str) -> dict[str, str]:
    """Return alice's environment, with `more` in it."""
    return clean_environ({"PAI_API_URL": scheduler.url, "PAI_TOKEN": "token-of-alice", **more})


def gateways_of(scheduler: RunningScheduler) -> list[int]:
    """Return the process ids of a scheduler's SSH gateway."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(scheduler.process.pid)], capture_output=True, text=True
    )
    return [
        int(line.split()[0]) for line in listed.stdout.splitlines() if "pai_scheduler.ssh.gateway" in line
    ]


@pytest.fixture
def pai(scheduler: RunningScheduler) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `pai` as alice."""

    def run(*words: str | Path, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        return run_pai_text(words, environ_for(scheduler, **environ), stdin)

    return run
