"""A private Docker Engine for the tests; `python -m tests.testbed.docker` prints its DOCKER_HOST."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from ipaddress import ip_network
from pathlib import Path
from typing import IO, Any

from docker import DockerClient
from docker.errors import DockerException, NotFound

from pai_scheduler.engine.docker.engine import KEPT_NETWORKS
from tests.testbed.machine import CACHE, CannotError, apt_install, as_root, locked, say

_PROGRAMS = {
    "dockerd": "docker.io",
    "containerd": "docker.io",
    "iptables": "iptables",
    "debootstrap": "debootstrap",
}
_SYSTEM_SOCKET = Path("/var/run/docker.sock")
_START_SECONDS = 60


def bridge_address(engine: DockerClient) -> str:
    """Return this machine's address on Docker's default bridge; Docker names it only where it was chosen."""
    config = engine.networks.get("bridge").attrs["IPAM"]["Config"][0]
    return str(config.get("Gateway") or ip_network(config["Subnet"])[1])


@contextmanager
def client(host: str, timeout: int = 600) -> Iterator[DockerClient]:
    """Connect to a daemon by its DOCKER_HOST (`unix://…`); `timeout`: seconds of a call."""
    if not host.startswith("unix://"):
        raise CannotError(f"the tests need a Docker Engine on this machine (unix://…), not {host}")
    connected = DockerClient(base_url=host, timeout=timeout)
    try:
        yield connected
    finally:
        connected.close()


def info(socket_path: Path) -> dict[str, Any] | None:
    """Ask a daemon about itself; None where none answers."""
    try:
        with client(f"unix://{socket_path}", timeout=10) as daemon:
            told: dict[str, Any] = daemon.info()
            return told
    except (OSError, DockerException):
        return None


@dataclass(frozen=True)
class Daemon:
    """A dockerd of our own. `own_network`: cut off from the machine's network and so from its packet filter,
    where two daemons would spoil each other's rules. `userns_remap`: containers' root is nobody on the
    machine, who must be able to enter the folders above `data_root`."""

    data_root: Path
    exec_root: Path
    own_network: bool = False
    live_restore: bool = False
    userns_remap: bool = False

    @property
    def socket_path(self) -> Path:
        """Return the path of the daemon's socket."""
        return self.exec_root / "docker.sock"

    @property
    def host(self) -> str:
        """Return what DOCKER_HOST is set to."""
        return f"unix://{self.socket_path}"

    @property
    def users(self) -> Path:
        """Return the file that each process locks as long as it uses the daemon; none: it is to stay."""
        return self.data_root.with_suffix(".users")

    def start(self) -> None:
        """Start it unless it runs, and wait until it answers. It outlives this process."""
        if info(self.socket_path) is not None:
            return
        command = [
            "dockerd", "--data-root", str(self.data_root), "--exec-root", str(self.exec_root / "exec"),
            "--pidfile", str(self._pid_file), "--host", self.host, "--group", str(os.getgid()),
            "--userland-proxy=false", "--mtu", str(_mtu()),
        ]  # fmt: skip
        if self.live_restore:
            command.append("--live-restore")
        if self.userns_remap:
            command.append("--userns-remap=default")
        if self.own_network:
            command = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", *command]
        self.data_root.mkdir(parents=True, exist_ok=True)
        subprocess.run(as_root("mkdir", "-p", str(self.exec_root)), check=True)
        log_path = self.data_root.with_suffix(".log")
        with open(log_path, "ab") as log:
            process = subprocess.Popen(
                as_root("env", f"PATH={os.environ['PATH']}:/usr/sbin:/sbin", *command),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + _START_SECONDS
        while info(self.socket_path) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                last = log_path.read_text(errors="replace").strip().splitlines()[-1:]
                raise CannotError(f"dockerd does not start: {' '.join(last)} (all of it: {log_path})")
            time.sleep(0.1)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it and wait; SIGKILL leaves containers and their supervisors behind, as a crash would."""
        pid_files = [self._pid_file, self.exec_root / "exec" / "containerd" / "containerd.pid"]
        pids = [int(file.read_text()) for file in pid_files if file.exists()]
        if not pids:
            return
        subprocess.run(as_root("kill", f"-{number.value}", str(pids[0])), check=False, capture_output=True)
        deadline = time.monotonic() + _START_SECONDS
        while any(_is_alive(pid) for pid in pids):
            if time.monotonic() > deadline:
                raise CannotError(f"dockerd does not end (processes {pids})")
            time.sleep(0.05)
        # a new daemon would take a dead process that nobody has waited for yet for a living one
        subprocess.run(as_root("rm", "-f", *map(str, pid_files)), check=False)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, as SIGSTOP, with which it hangs until SIGCONT."""
        pid = self._pid_file.read_text()
        subprocess.run(as_root("kill", f"-{number.value}", pid), check=True)

    def remove(self) -> None:
        """End it and remove all that it had."""
        self.stop()
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for mount in reversed(mounts):
            if Path(mount).is_relative_to(self.data_root) or Path(mount).is_relative_to(self.exec_root):
                subprocess.run(as_root("umount", "--lazy", mount), check=False, capture_output=True)
        subprocess.run(as_root("rm", "-rf", str(self.data_root), str(self.exec_root)), check=False)

    @property
    def _pid_file(self) -> Path:
        return self.exec_root / "docker.pid"


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _mtu() -> int:
    """Return the MTU of the way out: a bridge with a larger one loses packets where a tunnel is behind."""
    try:
        for line in Path("/proc/net/route").read_text().splitlines()[1:]:
            interface, destination = line.split()[:2]
            if destination == "00000000":
                return int(Path(f"/sys/class/net/{interface}/mtu").read_text())
    except (OSError, ValueError):
        pass
    return 1500


def networks_of_jobs(names: Iterable[str], *, in_advance: bool = True) -> list[str]:
    """Return all networks of a scheduler but those that it may have for jobs to come (`in_advance`)."""
    names = list(names)
    spare = [name for name in names if name.startswith("pai-spare-")]
    allowed = set(spare[:KEPT_NETWORKS]) if in_advance else set()
    return [name for name in names if name not in allowed]


def docker_host() -> str:
    """Return the DOCKER_HOST of the daemon to test with: the one named by PAI_TEST_DOCKER_HOST, or one of the
    tests' own, which all test runs on this machine share; the last one ends it (`end_unused`).

    The machine's own, if it runs, is left alone: its images and networks are somebody's.
    """
    if named := os.environ.get("PAI_TEST_DOCKER_HOST"):
        return named
    private = private_daemon()
    with locked("docker"):
        if info(private.socket_path) is None:
            apt_install(_PROGRAMS)
            if _SYSTEM_SOCKET.exists() and info(_SYSTEM_SOCKET) is not None:
                raise CannotError(
                    "this machine runs a Docker Engine, which the tests leave alone, and theirs cannot run"
                    " beside it: stop it meanwhile (systemctl stop docker.socket docker), or name one that is"
                    " there for tests only with PAI_TEST_DOCKER_HOST"
                )
            say(f"starting a private Docker Engine ({private.host})")
            private.start()
            private.users.touch()
        use(private)
    return private.host


def private_daemon() -> Daemon:
    """Return the daemon of the tests' own, which may not run."""
    return Daemon(CACHE / "docker", Path("/run/pai-testbed"))


def socket_folder() -> Path:
    """Make a folder for a daemon's sockets, whose paths may have 104 bytes; `Daemon.remove` removes it."""
    return Path(tempfile.mkdtemp(prefix="pai-run-"))


@cache
def use(daemon: Daemon) -> IO[str] | None:
    """Say as long as this process lives that it uses a daemon; None: that one stays anyway."""
    if not daemon.users.exists():
        return None
    users = daemon.users.open("a")
    fcntl.flock(users, fcntl.LOCK_SH)
    return users


def end_unused(daemon: Daemon) -> None:
    """End a daemon, with all but the images that it has, unless a process uses it, or it is to stay."""
    if not daemon.users.exists():
        return
    with locked("docker"), daemon.users.open("a") as users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if info(daemon.socket_path) is not None:
            empty(daemon.host)
        daemon.stop()
        daemon.users.unlink(missing_ok=True)


def empty(host: str) -> None:
    """Remove all containers, networks and volumes of a daemon."""
    with client(host) as docker:
        for container in docker.containers.list(all=True, ignore_removed=True):
            _gone(partial(container.remove, force=True, v=True))
        for network in docker.networks.list():
            if network.name not in ("bridge", "host", "none"):
                _gone(network.remove)
        for volume in docker.volumes.list():
            _gone(partial(volume.remove, force=True))


def _gone(remove: Callable[[], object]) -> None:
    with contextlib.suppress(NotFound):
        remove()


def main() -> None:
    """Print the DOCKER_HOST of a daemon that has the test images; with `stop`, end the private one."""
    from tests.testbed.images import debian_image

    if sys.argv[1:] == ["stop"]:
        private_daemon().stop()
        return
    try:
        host = docker_host()
        debian_image(host)
        private_daemon().users.unlink(missing_ok=True)  # so that it stays
    except CannotError as error:
        sys.exit(f"testbed: {error}")
    print(host)


if __name__ == "__main__":
    main()
