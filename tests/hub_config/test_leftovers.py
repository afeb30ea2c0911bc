"""What a killed Hub leaves behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hub_config.leftovers import end_leftovers

SLEEP = [sys.executable, "-c", "import time; time.sleep(300)"]


def test_only_this_installations_scheduler_and_proxy_are_ended(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    arguments = ["--admin-service", "pai-spawner", "--data-dir"]
    with (
        subprocess.Popen([*SLEEP, *arguments, str(tmp_path / "scheduler")]) as scheduler,
        subprocess.Popen([*SLEEP, *arguments, str(tmp_path / "other" / "scheduler")]) as others_scheduler,
        subprocess.Popen([*SLEEP, "pai_spawner.sessions", str(tmp_path / "sessions")]) as sessions,
        subprocess.Popen([*SLEEP, "pai_spawner.sessions", str(tmp_path / "other")]) as others_sessions,
        subprocess.Popen([*SLEEP, "build/proxy/configurable-http-proxy"], cwd=tmp_path / "hub") as proxy,
        subprocess.Popen([*SLEEP, "build/proxy/configurable-http-proxy"], cwd=tmp_path) as others_proxy,
        subprocess.Popen(SLEEP, cwd=tmp_path / "hub") as another_program,
    ):
        others = (others_scheduler, others_sessions, others_proxy, another_program)
        try:
            assert end_leftovers(tmp_path) == [
                f"the scheduler (process {scheduler.pid})",
                f"the sessions service (process {sessions.pid})",
                f"the proxy (process {proxy.pid})",
            ]
            assert [process.poll() for process in others] == [None, None, None, None]
        finally:
            for process in (scheduler, sessions, proxy, *others):
                process.kill()


def test_an_installation_without_leftovers_has_none(tmp_path: Path) -> None:
    assert end_leftovers(tmp_path) == []
