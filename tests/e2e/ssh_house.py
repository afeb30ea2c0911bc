"""A scheduler with Docker, its SSH gateway and two users whose jobs run: what the tests of SSH enter."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from docker import DockerClient

from pai_scheduler.testing.ports import free_port
from tests.testbed.docker import client
from tests.testbed.machine import apt_install
from tests.testbed.scheduler import RunningScheduler

#: Seconds; generous: this machine may be busy.
PATIENCE = 90.0
#: what no shell line and no setting is to understand
LINES = "first\nAllowUsers everybody\n'\"$(id)`id`\\ last 你好"

#: A web server that says who it is, for those who reach it; the rest of the command follows it.
SERVE = (
    'mkdir -p /tmp/web; echo "$PAI_USER_NAME\'s $(hostname)" > /tmp/web/who; '
    "exec python3 -m http.server --directory /tmp/web {port}"
)
PORT = 8123


def eventually(true: Callable[[], object], what: str) -> None:
    """Wait for what another program does."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)


def web_job(name: str, image: str, tasks: int = 1, **fields: Any) -> dict[str, Any]:
    """Make a job of workers, each with a web server at `PORT`."""
    worker = {
        "name": "worker",
        "taskNumber": tasks,
        "command": SERVE.format(port=PORT),
        "memoryMB": 1024,
        "cpuNumber": 1,
    }
    return {"jobName": name, "image": image, "taskRoles": [worker], **fields}


@dataclass(frozen=True)
class Ran:
    """What a program gave."""

    code: int
    out: str
    error: str


def run(*command: str, input: str = "", env: dict[str, str] | None = None, cwd: Path | None = None) -> Ran:
    """Run a program to its end."""
    done = subprocess.run(
        command, input=input.encode(), capture_output=True, timeout=PATIENCE, check=False, env=env, cwd=cwd
    )
    return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


class House:
    """The scheduler, and what its users have; close it."""

    def __init__(self, folder: Path, docker_host: str, image: str) -> None:
        apt_install({"ssh": "openssh-client", "rsync": "rsync", "wget": "wget"})
        self.folder, self.image, self._docker = folder, image, docker_host
        self.port = free_port()
        options = ("--engine", "docker", "--ssh-port", str(self.port), "--publish-ssh", "127.0.0.1")
        self.scheduler = RunningScheduler(folder, *options, ssh=True)
        self.http = {
            user: httpx.Client(
                base_url=f"{self.scheduler.url}/api/v1",
                headers={"Authorization": f"Bearer token-of-{user}"},
                trust_env=False,
                timeout=PATIENCE,
            )
            for user in ("alice", "bob")
        }
        about = self.http["alice"].get("/").json()
        self.known = folder / "known_hosts"
        self.known.write_text(f"[127.0.0.1]:{self.port} {about['ssh']['hostKey']}\n")

    def close(self) -> None:
        """End every job and the scheduler."""
        for http in self.http.values():
            http.close()
        self.scheduler.close()

    # jobs

    def begin(self, user: str, config: dict[str, Any]) -> None:
        """Submit a job, and wait until all of it runs; its key lies in the folder."""
        name = config["jobName"]
        self.http[user].post("/jobs", json=config).raise_for_status()
        eventually(lambda: self.state(user, name) == "RUNNING", f"{name} runs")
        self.save_key(user, name)

    def save_key(self, user: str, name: str) -> Path:
        """Download the key of a job."""
        answer = self.http[user].get(f"/user/{user}/jobs/{name}/ssh/key")
        answer.raise_for_status()
        path = self.key(user, name)
        path.touch(0o600)
        path.write_text(answer.text)
        return path

    def key(self, user: str, name: str) -> Path:
        """Return where the key of a job lies."""
        return self.folder / f"{user}~{name}"

    def state(self, user: str, name: str) -> str:
        """Return a job's state."""
        return str(self.http[user].get(f"/user/{user}/jobs/{name}").json()["jobStatus"]["state"])

    def end(self, user: str, name: str) -> None:
        """Stop a job, and wait for its end."""
        self.http[user].put(f"/user/{user}/jobs/{name}/executionType", json={"value": "STOP"})
        eventually(lambda: self.state(user, name) == "STOPPED", f"{name} has ended")

    def info(self, user: str, name: str) -> Any:
        """Return what the API says of the way in."""
        answer = self.http[user].get(f"/user/{user}/jobs/{name}/ssh")
        answer.raise_for_status()
        return answer.json()

    def access_events(self, user: str, name: str) -> list[str]:
        """Return the sentences of a job's events about who came in."""
        told = self.http[user].get(f"/user/{user}/jobs/{name}/events").json()
        return [event["message"] for event in told if event["type"] == "access"]

    # clients

    def options(self, key: Path, port: int | None = None) -> list[str]:
        """Return options of OpenSSH's programs with one key, and no settings of this account's."""
        settings = {
            "UserKnownHostsFile": self.known,
            "GlobalKnownHostsFile": "none",
            "StrictHostKeyChecking": "yes",
            "IdentityFile": key,
            "IdentitiesOnly": "yes",
            "BatchMode": "yes",
            "LogLevel": "ERROR",
            "Port": self.port if port is None else port,
        }
        return ["-F", "none", *(f"-o{name}={value}" for name, value in settings.items())]

    def line(
        self, login: str, *words: str, key: Path | None = None, options: tuple[str, ...] = ()
    ) -> list[str]:
        """Return a command line of ssh; the key is the job's that the login name names."""
        user, job = login.split("+")[:2]
        return ["ssh", *self.options(key or self.key(user, job)), *options, "-l", login, "127.0.0.1", *words]

    def ssh(self, login: str, *words: str, input: str = "", **more: Any) -> Ran:
        """Run ssh to its end."""
        return run(*self.line(login, *words, **more), input=input)

    def start(self, login: str, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        """Start ssh, which runs on."""
        pipe = subprocess.PIPE
        line = self.line(login, *words, **more)
        return subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)

    def works(self) -> None:
        """See a colleague at work, whatever others do."""
        ran = self.ssh("alice+train+worker-1", "hostname")
        assert ran.out == "worker-1\n", ran.error

    # containers

    def container(self, user: str, job: str, index: int = 0) -> str:
        """Return Docker's name for a task of the role `worker`."""
        detail = self.http[user].get(f"/user/{user}/jobs/{job}").json()
        statuses = detail["taskRoles"]["worker"]["taskStatuses"]
        return str(next(each["containerId"] for each in statuses if each["taskIndex"] == index))

    def networks(self, container: str) -> dict[str, Any]:
        """Return the networks that a container is in, by name."""
        with self.docker() as docker:
            found: dict[str, Any] = docker.containers.get(container).attrs["NetworkSettings"]["Networks"]
        return found

    def address(self, container: str) -> str:
        """Return a container's address in its network."""
        return str(next(iter(self.networks(container).values()))["IPAddress"])

    def processes(self, container: str) -> list[str]:
        """List the command lines of a container's processes."""
        with self.docker() as docker:
            found = docker.api.top(container, ps_args="-eo pid,args")
        return [row[-1] for row in found["Processes"]]

    def running(self, container: str, part: str) -> int:
        """Count the processes of a container with this in their command line."""
        return len([line for line in self.processes(container) if part in line])

    def do(self, container: str, script: str) -> None:
        """Run a script in a container, as a program of the task's could, to its end."""
        with self.docker() as docker:
            docker.containers.get(container).exec_run(["bash", "-c", script])

    def docker(self) -> AbstractContextManager[DockerClient]:
        """Talk to Docker."""
        return client(self._docker, int(PATIENCE))

    # the gateway

    def gateways(self) -> list[int]:
        """List the processes of the gateway."""
        listed = run("ps", "-o", "pid=,args=", "--ppid", str(self.scheduler.process.pid)).out
        return [int(line.split()[0]) for line in listed.splitlines() if "pai_scheduler.ssh.gateway" in line]
