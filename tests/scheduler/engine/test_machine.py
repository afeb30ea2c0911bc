"""What this machine has, and which of its ports are taken."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from pai_scheduler.engine.hardware import disk_space, free_disk_gb, taken_port, this_machine
from pai_scheduler.testing.ports import free_port


def test_the_machine_has_a_name_processors_and_memory() -> None:
    node = this_machine(None, 7)
    assert node.name == socket.gethostname()
    assert 1 <= node.cpus <= (os.cpu_count() or 1)
    assert 100 < node.memory_mb <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024**2
    assert node.storage_gb == 7
    assert this_machine("node-a", 7).name == "node-a"


def test_what_this_process_is_limited_to_is_what_the_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_scheduler.engine.hardware.own_limits", lambda _mounts: (1.5, 200 * 1024**2))
    node = this_machine(None, 0)
    assert (node.cpus, node.memory_mb) == (1, 200)


def test_free_disk_is_counted_in_gb(tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    assert abs(free_disk_gb(tmp_path) - found.f_bavail * found.f_frsize / 1024**3) <= 2


def test_of_several_disks_the_one_with_the_least_room_counts(tmp_path: Path, small_disk: Path) -> None:
    small = disk_space([tmp_path, small_disk])
    assert small is not None
    assert small.free_mb <= small.total_mb <= 40
    large = disk_space([tmp_path])
    assert large is not None
    assert large.total_mb == shutil.disk_usage(tmp_path).total // 2**20
    # a folder that is not there has no disk
    assert disk_space([tmp_path / "none", small_disk]) == small
    assert disk_space([tmp_path / "none"]) is None


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])  # noqa: S104
def test_a_port_on_which_somebody_listens_is_taken(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        server = socket.create_server((address, free_port()), family=family)
    except OSError as error:
        pytest.skip(f"{address} on this machine: {error}")
    with server:
        port = server.getsockname()[1]
        assert taken_port([port]) == port
    assert taken_port([port]) is None


def test_a_port_that_was_used_a_moment_ago_is_free() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
    accepted.close()  # this end closes first: it stays in TIME_WAIT
    client.close()
    assert taken_port([port]) is None
