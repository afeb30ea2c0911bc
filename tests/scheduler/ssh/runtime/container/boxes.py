"""Containers like those of a job's tasks, of images that make it hard, and the clients that enter them."""

from __future__ import annotations

import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import asyncssh
from docker.errors import APIError
from docker.types import IPAMConfig, IPAMPool, Mount

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.engine.docker.containers import WORK_DIR, container_config, network_name
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.engine.protocol import Launch
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.ssh.task_files import HOST_KEY_ALIAS, Peer, own_port, ssh_files
from tests.testbed.docker import client

PORT = 10022
#: Generous: this machine may be busy.
PATIENCE = 60.0
#: How the process of a session is called, by older and newer servers.
SESSION = ("sshd: root", "sshd-session: root")
KEYS = JobKeys(b"a secret of the tests")
#: What no shell line is to understand: lines, quotes, and more than fits into a line of a setting.
ENVIRONMENT = {
    "LINES_OF_IT": "first\nAllowUsers everybody\n'\"$(id)`id`\\ last",
    "LONG": "0123456789abcdef" * 3750,
    "EMPTY": "",
    "NAME": "名字",
    "TERM": "of the task",
}


@dataclass(frozen=True)
class Setting:
    """How a container differs from the usual: its image, command, and what Docker is told about its host."""

    image: str
    command: str = "exec sleep 1000000"
    host: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Box:
    """A running container, and the folder with the keys by which one enters it."""

    docker_host: str
    name: str
    id: str
    address: str
    keys: Path

    @property
    def work(self) -> Path:
        """Return its working folder, as this machine sees it."""
        return self.keys / self.name

    @property
    def options(self) -> list[str]:
        """Return options of OpenSSH's clients: with the job's key to this container, known by its own."""
        pairs = {
            "IdentityFile": self.keys / "identity",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.keys / "known_hosts",
            "HostKeyAlias": HOST_KEY_ALIAS,
            "StrictHostKeyChecking": "yes",
            "Port": PORT,
            "LogLevel": "ERROR",
        }
        return ["-F", "none", *(f"-o{key}={value}" for key, value in pairs.items())]

    def ssh(
        self, *words: str, options: tuple[str, ...] = (), input: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run OpenSSH's client; `words`: the command."""
        return run("ssh", *self.options, *options, f"root@{self.address}", *words, input=input)

    def start_ssh(self, *words: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """Start OpenSSH's client, which runs on."""
        return subprocess.Popen(
            ["ssh", *self.options, *options, f"root@{self.address}", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def processes(self) -> list[tuple[int, int, str]]:
        """List its processes as this machine sees them: number, parent's number, command line."""
        titles, rows = self._top()
        places = [titles.index(title) for title in ("PID", "PPID")]
        return [(int(row[places[0]]), int(row[places[1]]), row[-1]) for row in rows]

    def running(self, part: str) -> list[int]:
        """List the processes with this in their command line."""
        return [pid for pid, _, line in self.processes() if part in line]

    def status(self) -> str:
        """Ask in the container why there is no SSH server; empty: there is."""
        return docker_exec(self, "/opt/pai/status").strip()

    def _top(self) -> tuple[list[str], list[list[str]]]:
        with client(self.docker_host) as docker:
            found = docker.api.top(self.id, ps_args="-eo pid,ppid,args")
        return found["Titles"], found["Processes"]


async def connect(box: Box) -> asyncssh.SSHClientConnection:
    """Log in with asyncssh, which takes every answer literally."""
    return await asyncssh.connect(
        box.address, PORT, username="root", client_keys=[str(box.keys / "identity")], config=None,
        known_hosts=str(box.keys / "known_hosts"), host_key_alias=HOST_KEY_ALIAS, agent_path=None,
    )  # fmt: skip


def run(*command: str, input: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(command, input=input, capture_output=True, text=True, timeout=PATIENCE, check=False)


def docker_exec(box: Box, *command: str) -> str:
    """Run a command in a container past SSH; return what it wrote."""
    with client(box.docker_host) as docker:
        output = docker.containers.get(box.id).exec_run(list(command), tty=True).output
    assert isinstance(output, bytes)
    return output.decode()


def output(box: Box) -> tuple[bytes, bytes]:
    """Return what a container's command has written to stdout and stderr."""
    with client(box.docker_host) as docker:
        container = docker.containers.get(box.id)
        return container.logs(stderr=False), container.logs(stdout=False)


def wait(box: Box) -> int:
    """Wait for a container's end; return its exit code."""
    with client(box.docker_host) as docker:
        return int(docker.containers.get(box.id).wait()["StatusCode"])


def eventually(is_so: Any) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


def listens(address: str, port: int = PORT) -> bool:
    """Return whether an SSH server answers."""
    try:
        with socket.create_connection((address, port), timeout=PATIENCE) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


class Boxes:
    """Makes containers of one job, which reach each other by name. `volume`: the runtime's."""

    def __init__(self, docker_host: str, volume: str | None, folder: Path) -> None:
        self.docker_host, self._volume, self.folder = docker_host, volume, folder
        self._job = f"test-{uuid.uuid4().hex[:12]}"
        self._made: list[Box] = []
        self.folder.mkdir(parents=True, exist_ok=True)
        identity = self.folder / "identity"
        identity.touch(0o600)
        identity.write_bytes(KEYS.identity(self._job).private)
        (self.folder / "known_hosts").write_text(f"{HOST_KEY_ALIAS} {KEYS.host(self._job).public}\n")
        self._network = network_name(self._job, 0)
        self._subnet = self._make_network()

    def make(
        self, settings: Mapping[str, Setting], *, files: Mapping[str, bytes] | None = None
    ) -> dict[str, Box]:
        """Start containers; `files` instead of those that the scheduler would give them."""
        addresses = dict(zip(settings, map(str, list(self._subnet.hosts())[9:]), strict=False))
        hosts = {f"{name}-0": address for name, address in addresses.items()}
        peers = {name: Peer(address, PORT) for name, address in hosts.items()}
        usual = ssh_files(KEYS.identity(self._job), KEYS.host(self._job), peers) | own_port(PORT)
        private = self.folder / f"private-{len(self._made)}"
        private.mkdir()
        for name, content in (usual if files is None else files).items():
            (private / name).write_bytes(content)
        made = {}
        for name, setting in settings.items():
            task = TaskRef(self._job, 0, name, 0)
            launch = Launch(
                task, "here", "alice", "a-job", setting.image, setting.command,
                {**ENVIRONMENT, "PAI_TASK_INDEX": "0"}, 1, 256, 64,
                address=addresses[name], hosts=hosts, ssh_port=PORT, files={"ssh_port": b""},
            )  # fmt: skip
            made[name] = self._start(launch, setting, private)
        return made

    def _start(self, launch: Launch, setting: Setting, private: Path) -> Box:
        config = container_config(
            launch, DockerSettings(instance=self._job, logs=LogKeeping(max_mb_per_task=1)),
            network=self._network, node_cpus=1, limits_storage=False, private=private, runtime=self._volume,
        )  # fmt: skip
        host = config["HostConfig"]
        # as the engine makes it: the image's user may write there
        work = self.folder / launch.task.name
        work.mkdir()
        work.chmod(0o777)
        host["Mounts"].append({"Type": "bind", "Source": str(work), "Target": WORK_DIR})
        host |= setting.host
        name = launch.task.name
        with client(self.docker_host) as docker:
            made = docker.api.create_container_from_config(config, name)
            box = Box(self.docker_host, name, made["Id"], launch.address, self.folder)
            self._made.append(box)
            docker.api.start(box.id)
        return box

    def _make_network(self) -> IPv4Network:
        """Make a network in which addresses may be chosen: one of its own that Docker has free."""
        with client(self.docker_host) as docker:
            for attempt in range(20):
                made = docker.networks.create(self._network, check_duplicate=True)
                made.reload()
                subnet = made.attrs["IPAM"]["Config"][0]["Subnet"]
                made.remove()
                try:
                    docker.networks.create(
                        self._network, check_duplicate=True, ipam=IPAMConfig(pool_configs=[IPAMPool(subnet)])
                    )
                except APIError:  # somebody else was faster
                    if attempt == 19:
                        raise
                    continue
                return IPv4Network(subnet)
        raise AssertionError("unreachable")

    def remove(self) -> None:
        """Remove all that was made."""
        with client(self.docker_host) as docker:
            for box in self._made:
                docker.api.remove_container(box.id, force=True, v=True)
            docker.api.remove_network(self._network)


@contextmanager
def runtime_volume(docker_host: str, image: str) -> Iterator[str]:
    """Fill a volume with the runtime, by mounting it where the image has that."""
    name = f"pai-test-{uuid.uuid4().hex[:12]}"
    with client(docker_host) as docker:
        docker.containers.create(image, mounts=[Mount("/opt/pai", name)]).remove()
        yield name
        docker.volumes.get(name).remove()
