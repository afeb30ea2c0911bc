"""The small files with which a task is logged into, as OpenSSH itself reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.ssh.task_files import (
    AUTHORIZED_KEYS,
    CLIENT_CONFIG,
    HOST_KEY,
    IDENTITY,
    KNOWN_HOSTS,
    PORT,
    SERVER_CONFIG,
    STATE,
    WORK,
    Peer,
    own_port,
    ssh_files,
)
from tests.scheduler.ssh.runtime.container.boxes import run

KEYS = JobKeys(b"a secret of the tests")
PEERS = {
    "ps-0": Peer("10.0.0.2", 4001),
    "worker-0": Peer("10.0.0.3", 4001),
    "worker-1": Peer("10.0.0.4", 4002),
}


def files(peers: dict[str, Peer]) -> dict[str, bytes]:
    return ssh_files(KEYS.identity("a-job"), KEYS.host("a-job"), peers)


@pytest.fixture
def folder(tmp_path: Path, ssh_clients: None) -> Path:
    """Put the files where `boot` puts them."""
    del ssh_clients
    for name, content in files(PEERS).items():
        text = content.replace(STATE.encode(), str(tmp_path).encode()).replace(WORK.encode(), b"/pai")
        (tmp_path / name).write_bytes(text)
        (tmp_path / name).chmod(0o600)
    return tmp_path


def asked(folder: Path, host: str) -> set[str]:
    """Ask OpenSSH's client what it would do to reach a host."""
    done = run("ssh", "-G", "-F", str(folder / CLIENT_CONFIG), host)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines())


@pytest.mark.parametrize(
    ("host", "port"), [("worker-0", 4001), ("worker-1", 4002), ("10.0.0.2", 4001), ("10.0.0.4", 4002)]
)
def test_a_task_is_reached_by_name_or_address_as_its_job_and_nothing_else(
    folder: Path, host: str, port: int
) -> None:
    assert asked(folder, host) >= {
        f"port {port}",
        "user root",
        f"identityfile {folder}/{IDENTITY}",
        "identitiesonly yes",
        "hostkeyalias pai-job",
        "stricthostkeychecking true",
        f"globalknownhostsfile {folder}/{KNOWN_HOSTS}",
        "userknownhostsfile none",
    }


def test_hosts_outside_the_job_are_left_to_the_users_configuration(folder: Path) -> None:
    said = asked(folder, "worker-2")
    assert "port 22" in said
    assert not [line for line in said if str(folder) in line]


def test_an_address_that_several_tasks_share_says_nothing_about_who_is_meant() -> None:
    peers = {"worker-0": Peer("127.0.0.1", 4001), "worker-1": Peer("127.0.0.1", 4002)}
    text = files(peers)[CLIENT_CONFIG].decode()
    assert "Host worker-0\n" in text
    assert "Host worker-1\n" in text
    assert "127.0.0.1" not in text


def test_the_keys_belong_together(folder: Path) -> None:
    made = files(PEERS)
    for name in (IDENTITY, HOST_KEY):
        assert (
            run("ssh-keygen", "-y", "-f", str(folder / name)).stdout.split()[:2]
            == (made[f"{name}.pub"].decode().split()[:2])
        )
    assert made[AUTHORIZED_KEYS] == made[f"{IDENTITY}.pub"] != made[f"{HOST_KEY}.pub"]
    assert made[KNOWN_HOSTS].decode().split()[1:] == made[f"{HOST_KEY}.pub"].decode().split()


def test_a_server_forwards_to_its_own_loopback_and_to_its_peers_only() -> None:
    lines = dict(line.split(" ", 1) for line in files(PEERS)[SERVER_CONFIG].decode().splitlines())
    peers = {*PEERS, *(peer.address for peer in PEERS.values())}
    assert set(lines["PermitOpen"].split()) == {
        f"{host}:*" for host in {"localhost", "127.0.0.1", "[::1]", *peers}
    }
    assert (lines["GatewayPorts"], lines["AuthenticationMethods"]) == ("no", "publickey")


def test_all_that_tells_tasks_apart_is_the_port() -> None:
    assert own_port(4001) == {PORT: b"4001\n"}
    assert files(PEERS) == files(dict(PEERS))
