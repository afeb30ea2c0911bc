"""The script with which containers' way out is closed, on a daemon with a network of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import hub_config
from tests.testbed.docker import Daemon, client, socket_folder
from tests.testbed.fixtures import provide
from tests.testbed.images import tiny_image

SCRIPT = Path(hub_config.__file__).with_name("egress.sh")
METADATA, ANOTHER = "169.254.169.254", "10.99.0.2"
#: A machine of its own at the other end of a cable, which answers at both addresses once it has that end.
_FAR = f"""ip link set lo up; echo up; read _
ip addr add {METADATA}/16 dev far; ip addr add {ANOTHER}/24 dev far; ip link set far up
cd {{folder}}; exec python3 -u -m http.server 80"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    own = Daemon(tmp_path / "root", socket_folder(), own_network=True)
    provide(own.start)
    try:
        yield own
    finally:
        own.remove()


def inside(daemon: Daemon, *command: str) -> None:
    """Run a command in the daemon's network."""
    pid = (daemon.exec_root / "docker.pid").read_text()
    environ = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", *command], check=True, env=environ)


@pytest.fixture
def far(daemon: Daemon, tmp_path: Path) -> Iterator[None]:
    (tmp_path / "index.html").write_text("the machine's own rights")
    far = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", _FAR.format(folder=tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert far.stdin is not None
    assert far.stdout is not None
    try:
        assert far.stdout.readline() == "up\n"
        cable = ("ip", "link", "add", "outside", "type", "veth", "peer", "name", "far", "netns", str(far.pid))
        inside(daemon, *cable)
        for address in ("169.254.0.1/16", "10.99.0.1/24"):
            inside(daemon, "ip", "addr", "add", address, "dev", "outside")
        inside(daemon, "ip", "link", "set", "outside", "up")
        far.stdin.write("\n")
        far.stdin.flush()
        assert far.stdout.readline().startswith("Serving HTTP")
        yield
    finally:
        far.kill()
        far.communicate()


@pytest.mark.usefixtures("far")
def test_containers_reach_no_metadata_service_and_no_network_that_is_named(daemon: Daemon) -> None:
    image = tiny_image(daemon.host)
    with client(daemon.host) as docker:
        docker.networks.create("job")

        def reaches(address: str) -> bool:
            ask = f"import urllib.request as r; print(r.urlopen('http://{address}/', timeout=5).read())"
            command = ["sh", "-c", f'/usr/bin/python3 -c "{ask}" 2>&1 || true']
            usr = {"/usr": {"bind": "/usr", "mode": "ro"}}
            return b"rights" in docker.containers.run(image, command, network="job", volumes=usr, remove=True)

        assert [reaches(address) for address in (METADATA, ANOTHER)] == [True, True]
        inside(daemon, "sh", str(SCRIPT))
        assert [reaches(address) for address in (METADATA, ANOTHER)] == [False, True]
        inside(daemon, "sh", str(SCRIPT), "10.99.0.0/24")
        inside(daemon, "sh", str(SCRIPT), "10.99.0.0/24")
        assert [reaches(address) for address in (METADATA, ANOTHER)] == [False, False]
