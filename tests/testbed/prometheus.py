"""A real Prometheus (Debian's) on loopback, with a configuration and a data folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import yaml

from pai_scheduler.testing.ports import free_port
from tests.testbed.machine import CannotError, apt_install


class Prometheus:
    """One server, which scrapes as `config` (the content of prometheus.yml) says."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        apt_install({"prometheus": "prometheus", "promtool": "prometheus"})
        program, tool = shutil.which("prometheus"), shutil.which("promtool")
        if program is None or tool is None:
            raise CannotError("prometheus: not on PATH although its package is installed")
        file = folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        checked = subprocess.run([tool, "check", "config", str(file)], capture_output=True, text=True)
        if checked.returncode != 0:
            raise AssertionError(checked.stdout + checked.stderr)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "prometheus.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program,
                    f"--config.file={file}",
                    f"--storage.tsdb.path={folder / 'tsdb'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self._http = httpx.Client(base_url=f"{self.url}/api/v1", trust_env=False, timeout=30)
        self._wait()

    def ask(self, path: str, **parameters: str) -> Any:
        """Ask its API; return what the answer says, which may be an error of the expression."""
        return self._http.get(path, params=parameters).json()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Evaluate an expression now; AssertionError with Prometheus's own words where it is wrong."""
        answer = self.ask("/query", query=expression)
        assert answer["status"] == "success", f"{expression}: {answer['error']}"
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def close(self) -> None:
        """End it."""
        self._http.close()
        self._process.terminate()
        self._process.wait(30)

    def _wait(self) -> None:
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/-/ready", trust_env=False).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"Prometheus does not start:\n{self._log.read_text()}")
