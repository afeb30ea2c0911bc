"""`pai` as somebody at a terminal has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.testbed.scheduler import RunningScheduler, clean_environ

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
