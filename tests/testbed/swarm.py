"""A Swarm of real Docker Engines on this machine, each in a network namespace of its own, with real agents.

The nodes hang on a bridge in one more namespace, so that the machine's packet filter has no say between them;
this process reaches them at their addresses. Nothing is left of a run that was killed: namespaces that belong
to no process are removed by the next one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import docker

from pai_scheduler.engine.swarm.certificates import Authority
from tests.testbed.docker import client, info
from tests.testbed.machine import CannotError, apt_install

_PREFIX = "paitest"
_POOL = IPv4Network("10.199.0.0/16")
_START_SECONDS, _STOP_SECONDS = 60.0, 15.0
#: (Swarm asks a registry for each service's image again, unless dockerd is told that what it has will do)
_ENVIRON = {"http_proxy": "", "https_proxy": "", "DOCKER_SERVICE_PREFER_OFFLINE_IMAGE": "1"}
_NAMES = ("node-a", "node-b", "node-c")


class Node:
    """One machine of the Swarm: a dockerd and an agent in a namespace of its own."""

    def __init__(self, swarm: Swarm, name: str, number: int, address: IPv4Address) -> None:
        self.name, self.address = name, str(address)
        self._swarm, self.namespace = swarm, f"{swarm.mark}-{number}"
        self.folder = swarm.folder / name
        self.folder.mkdir()
        self.host = f"unix://{self.folder}/docker.sock"
        self._link = f"{_PREFIX[:2]}{os.getpid()}.{number}"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.images: set[str] = set()

    def plug_in(self) -> None:
        """Make its network."""
        switch = self._swarm.switch
        _run("ip", "netns", "add", self.namespace)
        peer = ("peer", "name", "eth0", "netns", self.namespace)
        _run("ip", "-netns", switch, "link", "add", self._link, "type", "veth", *peer)
        _run("ip", "-netns", switch, "link", "set", self._link, "master", "switch", "up")
        inside = ("ip", "-netns", self.namespace)
        _run(*inside, "link", "set", "lo", "up")
        _run(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        _run(*inside, "link", "set", "eth0", "up")
        # (Docker wants a way out to know its own address)
        _run(*inside, "route", "add", "default", "via", str(self._swarm.network[1]))

    def start_docker(self) -> None:
        """Start its dockerd; returns when it answers."""
        self._start(
            "docker",
            "unshare",
            "--uts",
            "sh",
            "-c",
            f'hostname {self.name}; exec dockerd "$@"',
            "sh",
            *("--data-root", str(self.folder / "data")),
            *("--exec-root", str(self.folder / "exec")),
            *("--pidfile", str(self.folder / "docker.pid")),
            *("--cgroup-parent", f"/{self.namespace}"),
            *("--insecure-registry", str(_POOL)),
            *("-H", self.host),
        )
        _await(lambda: info(self.folder / "docker.sock") is not None, f"dockerd on {self.name} answers")

    def start_agent(self, port: int) -> None:
        """Start its agent; returns when it listens."""
        self._start(
            "agent",
            *(sys.executable, "-m", "pai_scheduler.engine.agent"),
            *("--listen", self.address, "--port", str(port)),
            *("--folder", str(self.folder / "agent")),
            *("--credentials", str(self._swarm.agent_credentials)),
            *("--docker", self.host),
        )
        _await(lambda: _listens(self.address, port), f"the agent of {self.name} listens")

    def kill(self, program: str) -> None:
        """End its `docker` (whose containers end with it) or its `agent` with SIGKILL."""
        process = self._processes.pop(program)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def restart_docker(self) -> None:
        """Restart its Docker Engine as an upgrade of it does: its containers end."""
        process = self._processes.pop("docker")
        process.terminate()
        process.wait(_STOP_SECONDS)
        self.start_docker()

    def power_off(self) -> None:
        """End it as a power cut does: its Docker Engine, its agent, and every container."""
        for program in list(self._processes):
            self.kill(program)
        folder = str(self.folder).encode()
        cgroups = Path("/sys/fs/cgroup").glob(f"**/{self.namespace}/**/cgroup.procs")
        pids = {int(pid) for file in cgroups for pid in file.read_text().split()}
        for entry in Path("/proc").iterdir():
            # (the programs beside a container, too)
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and folder in (entry / "cmdline").read_bytes():
                    pids.add(int(entry.name))
        for pid in pids - {os.getpid()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def power_on(self) -> None:
        """Start what was there before."""
        (self.folder / "docker.pid").unlink(missing_ok=True)
        self.start_docker()
        self.start_agent(self._swarm.agent_port)

    def cut_off(self) -> None:
        """Take it from the network: nothing comes in and nothing goes out."""
        _run("ip", "-netns", self._swarm.switch, "link", "set", self._link, "down")

    def heal(self) -> None:
        """Bring it back to the network."""
        _run("ip", "-netns", self._swarm.switch, "link", "set", self._link, "up")

    def stop(self) -> None:
        """End all of it and its containers."""
        with contextlib.suppress(docker.errors.DockerException, OSError), client(self.host, 20) as engine:
            for container in engine.containers.list(all=True, ignore_removed=True):
                container.remove(force=True, v=True)
        for process in reversed(self._processes.values()):
            process.terminate()
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self._processes.clear()
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            place = line.split()[1]
            if place.startswith(f"{self.folder}/"):
                _run("umount", "--lazy", place, check=False)

    def _start(self, program: str, *command: str) -> None:
        enter = ("nsenter", f"--net=/var/run/netns/{self.namespace}")
        with (self.folder / f"{program}.log").open("ab") as log:
            self._processes[program] = subprocess.Popen(
                (*enter, *command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **_ENVIRON},
                start_new_session=True,
            )


class Swarm:
    """Three nodes, the first of which is the manager. `agent_port` is the same on each."""

    agent_port = 7947

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, f"{_PREFIX}-{os.getpid()}"
        self.switch = f"{self.mark}-switch"
        self.network = _free_network()
        self.secret = secrets.token_bytes(32)
        self.agent_credentials = Authority(self.secret).agent().write(folder / "agent-credentials")
        self._link = f"{_PREFIX[:2]}{os.getpid()}.h"
        self.nodes = [
            Node(self, name, number, self.network[11 + number]) for number, name in enumerate(_NAMES)
        ]

    @property
    def manager(self) -> Node:
        """Return the node that manages the Swarm."""
        return self.nodes[0]

    def give_key(self, data_dir: Path) -> Path:
        """Make the data folder of a scheduler that the agents will hear; return it."""
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = data_dir / "agents.key"
        key.write_bytes(self.secret)
        key.chmod(0o600)
        return data_dir

    @contextmanager
    def without(self, *names: str) -> Iterator[None]:
        """Have nothing new placed on some nodes; in the end all are active."""
        try:
            for name in names:
                self.set(name, Availability="pause")
            yield
        finally:
            for node in self.nodes:
                self.set(node.name, Availability="active")

    def set(self, name: str, **spec: str) -> None:
        """Change what Swarm's specification says of a node: Availability or Role."""

        def change() -> bool:
            with client(self.manager.host) as manager:
                try:
                    nodes = {node.attrs["Description"]["Hostname"]: node for node in manager.nodes.list()}
                    nodes[name].update({**nodes[name].attrs["Spec"], **spec})
                except docker.errors.APIError as error:
                    # (while the managers choose another leader, where Swarm itself has changed the node, and
                    # while one that was away has not caught up)
                    if any(reason in str(error) for reason in ("leader", "out of sequence", "quorum")):
                        return False
                    raise
                return True

        _await(change, f"the Swarm changes {name}")

    def node(self, name: str) -> Node:
        """Return a node by its name."""
        return next(node for node in self.nodes if node.name == name)

    def start(self) -> None:
        """Make the network, the engines, the Swarm."""
        _run("ip", "netns", "add", self.switch)
        _run("ip", "-netns", self.switch, "link", "add", "switch", "type", "bridge")
        _run("ip", "-netns", self.switch, "link", "set", "switch", "up")
        peer = ("peer", "name", "host", "netns", self.switch)
        _run("ip", "link", "add", self._link, "type", "veth", *peer)
        _run("ip", "-netns", self.switch, "link", "set", "host", "master", "switch", "up")
        _run("ip", "addr", "add", f"{self.network[1]}/24", "dev", self._link)
        _run("ip", "link", "set", self._link, "up")
        for node in self.nodes:
            node.plug_in()
        for node in self.nodes:
            node.start_docker()
        with client(self.manager.host) as manager:
            manager.swarm.init(advertise_addr=self.manager.address)
            manager.swarm.reload()
            token = manager.swarm.attrs["JoinTokens"]["Worker"]
        for node in self.nodes[1:]:
            with client(node.host) as engine:
                engine.swarm.join([f"{self.manager.address}:2377"], token)

    def load(self, docker_host: str, image: str, *names: str) -> None:
        """Give each of these nodes, or all, an image of another Docker Engine, unless it has it."""
        nodes = [node for node in self.nodes if not names or node.name in names]
        lacking = [node for node in nodes if image not in node.images]
        if not lacking:
            return
        archive = self.folder / "image.tar"
        with client(docker_host) as engine, archive.open("wb") as file:
            for part in engine.api.get_image(image):
                file.write(part)
        for node in lacking:
            node.images.add(image)
            with client(node.host) as engine, archive.open("rb") as file:
                engine.images.load(file)
        archive.unlink()

    def stop(self) -> None:
        """End it."""
        for node in self.nodes:
            node.stop()
        for namespace in (*(node.namespace for node in self.nodes), self.switch):
            _run("ip", "netns", "delete", namespace, check=False)
        _run("ip", "link", "delete", self._link, check=False)


@contextmanager
def swarm(folder: Path, docker_host: str, images: tuple[str, ...]) -> Iterator[Swarm]:
    """Run a Swarm whose nodes have images of the Docker Engine `docker_host`; CannotError."""
    if os.geteuid() != 0:
        raise CannotError("a Swarm in network namespaces needs root")
    apt_install({"dockerd": "docker.io", "ip": "iproute2", "nsenter": "util-linux"})
    _remove_leftovers()
    running = Swarm(folder)
    try:
        running.start()
        for image in images:
            running.load(docker_host, image)
        for node in running.nodes:
            node.start_agent(running.agent_port)
        yield running
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _remove_leftovers() -> None:
    """Remove the namespaces of processes that are no more."""
    listed = subprocess.run(("ip", "netns", "list"), check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        name = line.split()[0]
        mark, _, rest = name.partition("-")
        pid = rest.partition("-")[0]
        if mark == _PREFIX and pid.isdigit() and not Path("/proc", pid).exists():
            _run("ip", "netns", "delete", name, check=False)


def _free_network() -> IPv4Network:
    taken = subprocess.run(("ip", "-4", "-o", "addr"), check=True, capture_output=True, text=True).stdout
    for network in _POOL.subnets(new_prefix=24):
        if f" {network[1]}/" not in taken:
            return network
    raise CannotError(f"no network is free in {_POOL}")


def _await(condition: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + _START_SECONDS
    while not condition():
        if time.monotonic() > give_up:
            raise CannotError(f"this did not happen: {what}")
        time.sleep(0.05)


def _listens(address: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, port), 1):
        return True
    return False


def _run(*command: str, check: bool = True) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if check and done.returncode:
        raise CannotError(f"{' '.join(command)}: {done.stderr.strip()}")
