"""A private Docker Engine for the tests; `python -m tests.testbed.docker` prints its DOCKER_HOST."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.errors import DockerException

from tests.testbed.machine import CACHE, CannotError, apt_install, as_root, locked, say

_PROGRAMS = {
    "dockerd": "docker.io",
    "containerd": "docker.io",
    "iptables": "iptables",
    "debootstrap": "debootstrap",
}
_SYSTEM_SOCKET = Path("/var/run/docker.sock")
_START_SECONDS = 60


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


def _systems_own() -> bool:
    """Return whether the machine runs a daemon itself; systemd may be just about to start it."""
    for _ in range(25 if Path("/run/systemd/system").is_dir() else 1):
        if info(_SYSTEM_SOCKET) is not None:
            return True
        if _SYSTEM_SOCKET.exists() and not os.access(_SYSTEM_SOCKET, os.W_OK):
            raise CannotError("Docker: this machine's own may be used by the group docker only")
        time.sleep(0.2)
    return False


def docker_host() -> str:
    """Return the DOCKER_HOST of a daemon to test with: the one of PAI_TEST_DOCKER_HOST, the machine's own
    where it runs and may be used, or else a private one, which is started and left running."""
    if named := os.environ.get("PAI_TEST_DOCKER_HOST"):
        return named
    private = Daemon(CACHE / "docker", Path("/run/pai-testbed"))
    with locked("docker"):
        if info(private.socket_path) is not None:
            return private.host
        apt_install(_PROGRAMS)
        if _systems_own():
            return f"unix://{_SYSTEM_SOCKET}"
        say(f"starting a private Docker Engine ({private.host})")
        private.start()
    return private.host


def main() -> None:
    """Print the DOCKER_HOST of a daemon that has the test images; with `stop`, end the private one."""
    from tests.testbed.images import debian_image

    if sys.argv[1:] == ["stop"]:
        Daemon(CACHE / "docker", Path("/run/pai-testbed")).stop()
        return
    try:
        host = docker_host()
        debian_image(host)
    except CannotError as error:
        sys.exit(f"testbed: {error}")
    print(host)


if __name__ == "__main__":
    main()
