"""A real scheduler as a process of its own: started, killed and started again on the same folder and port."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import httpx

PROGRAM = Path(sys.executable).parent / "pai-scheduler"
TOKENS: dict[str, dict[str, Any]] = {
    "token-of-alice": {"name": "alice", "admin": False, "groups": ["vision"]},
    "token-of-bob": {"name": "bob"},
    "token-of-root": {"name": "root", "admin": True},
    "token-of-pai-sessions": {"name": "pai-sessions", "admin": True},
    "token-of-demo": {"name": "demo"},
    "token-of-wang": {"name": "王 小/明"},
}
#: Room for the documents' jobs; the GPUs are simulated.
CLUSTER = """
nodes:
  - {name: node-a, cpus: 64, memoryMB: 400000, storageGB: 1000, gpus: {TITANX: 4, P100: 4}}
virtualClusters:
  default: {capacity: 50}
  vision: {capacity: 20, groups: [vision]}
  your_virtual_cluster: {capacity: 30}
# the tests' own registries are on this machine
registries: ["*", 127.0.0.1]
"""
_READY = re.compile(r"(?:ready|standby) at (http://127\.0\.0\.1:(\d+)/\S*?)[,\s]")


class Process(Protocol):
    """A scheduler's process: what tests use of `subprocess.Popen`."""

    @property
    def pid(self) -> int:
        """Return the process id."""

    def poll(self) -> int | None:
        """Return the exit code, -n for signal n; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code."""

    def kill(self) -> None:
        """End it as a power cut does."""

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal."""


class RunningScheduler:
    """`pai-scheduler --engine process` on a folder of its own, or as a standby on another one's `data_dir`.

    `url` has no slash at its end.
    `ssh`: with an SSH gateway at 2222, or a free port where that is taken; `about` of the API tells.
    `environ`: the variables that a Hub sets for its service, whose users it then serves instead of `TOKENS`.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        cluster: str = CLUSTER,
        environ: dict[str, str] | None = None,
        data_dir: Path | None = None,
        ssh: bool = False,
    ) -> None:
        self.folder = folder
        self.data_dir = data_dir or folder / "data"
        self.tokens = folder / "tokens.json"
        self.tokens.write_text(json.dumps(TOKENS))
        self.tokens.chmod(0o600)
        self.log = folder / "scheduler.log"
        (folder / "cluster.yaml").write_text(cluster)
        self._options = options
        self._ssh = ssh
        self._environ = environ or {}
        self._port = 0
        self.start()

    def start(self, within: float = 30.0) -> None:
        """Start, on the port of the last time; returns when it answers, `within` so many seconds."""
        begin = self.log.stat().st_size if self.log.exists() else 0
        self.process = self.spawn()
        until = time.monotonic() + within
        while time.monotonic() < until:
            text = self.log.read_bytes()[begin:].decode()
            if ready := _READY.search(text):
                self.url, self._port = ready[1].rstrip("/"), int(ready[2])
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"the scheduler does not start:\n{text}")

    def put(self, path: str, contents: bytes = b"", *, runs: bool = False) -> Path:
        """Put a file into the folder storage that it has unless told otherwise; give where it is."""
        file = self.data_dir / "storage" / path.strip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(contents)
        file.chmod(0o755 if runs else 0o644)
        return file

    def spawn(self) -> Process:
        """Begin a scheduler's process, which writes to our log."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=clean_environ(self._environ),
            )

    def command(self) -> Sequence[str]:
        """Return the command line."""
        return (
            str(PROGRAM),
            *("--engine", "process"),
            *("--data-dir", str(self.data_dir)),
            *("--port", str(self._port)),
            *(() if self._environ else ("--tokens", str(self.tokens))),
            *("--cluster", str(self.folder / "cluster.yaml")),
            *(() if self._ssh else ("--ssh-port", "0")),
            # one process is enough for a test that does not ask for more
            *("--file-processes", "1"),
            *self._options,
        )

    def kill(self) -> None:
        """End it as a power cut does."""
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        """End it as an administrator does; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def close(self) -> None:
        """End every job, then the scheduler: its tasks would outlive it."""
        if self.process.poll() is not None:
            self.start()
        if not self._environ:
            self._stop_jobs()
        self.terminate()

    def clear(self) -> None:
        """Forget jobs, schedules, keys, maintenance and files, which a test has left to the next one."""
        if self.process.poll() is not None:
            self.start()
        with self._root() as root:
            for one in root.get("/maintenance").json():
                root.delete(f"/maintenance/{one['name']}")
            for person in TOKENS.values():
                user = f"/user/{quote(str(person['name']), safe='')}"
                for schedule in root.get(f"{user}/schedules").json():
                    root.delete(f"{user}/schedules/{schedule['name']}")
                for key in root.get(f"{user}/ssh-keys").json():
                    root.delete(f"{user}/ssh-keys/{quote(key['fingerprint'], safe='')}")
            for _ in range(600):
                left = root.get("/jobs").json()
                if not left:
                    break
                for job in left:
                    root.delete(_path(job))
                time.sleep(0.05)
            else:
                raise RuntimeError(f"these jobs stay: {left}")
        # (a hidden folder is the scheduler's own; it makes a person's folder only once)
        for entry in self.data_dir.glob("storage/[!.]*/*"):
            remove(entry)

    def _stop_jobs(self) -> None:
        with self._root() as root:
            for _ in range(300):
                alive = [job for job in root.get("/jobs").json() if job["subState"] != "ENDED"]
                if not alive:
                    return
                for job in alive:
                    root.put(f"{_path(job)}/executionType", json={"value": "STOP"})
                time.sleep(0.1)
        raise RuntimeError(f"these jobs do not end: {alive}")

    def _root(self) -> httpx.Client:
        headers = {"Authorization": "Bearer token-of-root"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, trust_env=False, timeout=30)


def _path(job: dict[str, Any]) -> str:
    return f"/user/{quote(job['username'], safe='')}/jobs/{job['name']}"


#: `own_scheduler` or `module_scheduler`: takes what RunningScheduler takes, the folder excepted
StartScheduler = Callable[..., RunningScheduler]


def remove(path: Path) -> None:
    """Remove a file, or a folder with all in it, also what the scheduler is just removing itself."""
    if path.is_dir() and not path.is_symlink():
        while path.exists():
            with suppress(FileNotFoundError):
                shutil.rmtree(path)
    else:
        path.unlink()


@cache
def _empty_home() -> str:
    """Return a home for all that this process starts; it goes with it.

    What an account's own `.bashrc` does can take long, and hold a lock that stays when a test kills it.
    """
    home = tempfile.mkdtemp(prefix="pai-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


def clean_environ(more: dict[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without what a Hub or a user's settings put there."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTERHUB_", "PAI_", "LC_", "LANG"))
    }
    return {**kept, "HOME": _empty_home(), "LC_ALL": "C.UTF-8", **(more or {})}


def hello_job(name: str, command: str = "echo hello", **fields: Any) -> dict[str, Any]:
    """Make a small job with one task, `main-0`."""
    return {
        "jobName": name,
        "image": "local/any",
        "taskRoles": [{"name": "main", "command": command}],
        **fields,
    }
