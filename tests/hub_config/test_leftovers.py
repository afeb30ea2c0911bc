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
        subprocess.Popen([*SLEEP, "build/proxy/configurable-http-proxy"]) as proxy,
    ):
        (tmp_path / "hub" / "proxy.pid").write_text(str(proxy.pid))
        try:
            assert end_leftovers(tmp_path) == [
                f"the scheduler (process {scheduler.pid})",
                f"the proxy (process {proxy.pid})",
            ]
            assert others_scheduler.poll() is None
        finally:
            for process in (scheduler, others_scheduler, proxy):
                process.kill()


def test_a_pid_that_is_another_programs_by_now_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    with subprocess.Popen(SLEEP) as other:
        try:
            (tmp_path / "hub" / "proxy.pid").write_text(str(other.pid))
            assert end_leftovers(tmp_path) == []
            assert other.poll() is None
        finally:
            other.kill()


def test_an_installation_without_leftovers_has_none(tmp_path: Path) -> None:
    assert end_leftovers(tmp_path) == []
