"""The power goes: what was acknowledged is on the disk, and a task that may have run is not run again.

The data folder is on a file system in an image file. What a service has written and not synced is in the
kernel's memory, not in the image; so a copy of the image is what a disk holds when the power goes. The
scheduler is then started on that copy, with nothing running, as after the boot.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pai_scheduler.client.rest import Client
from tests.testbed.fixtures import provide
from tests.testbed.machine import CannotError, apt_install, as_root
from tests.testbed.warm import WarmScheduler

IMAGE_BYTES = 48 * 2**20
#: the exit table's row of a task whose end nobody saw
EXIT_CODE_LOST = 154


class Disk:
    """A file system in an image file, mounted at `place`."""

    def __init__(self, folder: Path) -> None:
        self.image, self.place = folder / "disk.img", folder / "disk"
        apt_install({"mkfs.ext4": "e2fsprogs", "losetup": "mount"})
        with self.image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self.image)], check=True, capture_output=True)
        self.place.mkdir()
        self._mount()
        subprocess.run(as_root("chmod", "777", str(self.place)), check=True)
        subprocess.run(["sync", "-f", str(self.place)], check=True)

    def copy(self) -> Path:
        """Copy what the disk holds at this moment; what is only in memory is not in it."""
        return Path(shutil.copyfile(self.image, self.image.with_suffix(".copy")))

    def boot(self, copy: Path) -> None:
        """Go on with such a copy, as if the power had gone when it was made."""
        self.unmount()
        self.image = copy
        self._mount()

    def unmount(self) -> None:
        """Let go of it."""
        subprocess.run(as_root("umount", "--lazy", str(self.place)), check=True)

    def _mount(self) -> None:
        # what nobody syncs stays in memory for longer than any test takes
        command = as_root("mount", "-o", "loop,commit=300", str(self.image), str(self.place))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise CannotError(f"a file system in a file cannot be mounted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = provide(lambda: Disk(tmp_path))
    yield disk
    disk.unmount()


def job(name: str, command: str, **fields: object) -> dict[str, object]:
    return {
        "jobName": name,
        "image": "local/any",
        "taskRoles": [{"name": "main", "command": command, **fields}],
    }


async def state_of(alice: Client, name: str) -> tuple[str, int | None]:
    status = (await alice.job("alice", name))["jobStatus"]
    return status["state"], status["appExitCode"]


@pytest.fixture
def start(disk: Disk) -> Callable[[], WarmScheduler]:
    """Start a scheduler on the disk."""

    def start() -> WarmScheduler:
        folder = disk.place / "scheduler"
        folder.mkdir(exist_ok=True)
        return WarmScheduler(folder)

    return start


async def until(alice: Client, name: str, state: str) -> None:
    for _ in range(3000):
        if (await state_of(alice, name))[0] == state:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"{name} is never {state}")


async def until_attempts(alice: Client, name: str, count: int) -> None:
    for _ in range(3000):
        if len(await alice.attempts("alice", name)) == count:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"{name} never has {count} attempts")


async def test_what_nobody_synced_is_gone_after_a_power_loss(disk: Disk) -> None:
    # (else the test below would prove nothing)
    await asyncio.to_thread((disk.place / "unsynced").write_text, "here")
    disk.boot(disk.copy())
    assert not (disk.place / "unsynced").exists()


async def test_what_was_acknowledged_or_ended_is_on_the_disk_and_what_ran_is_not_run_again(
    disk: Disk, start: Callable[[], WarmScheduler], tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    scheduler = start()
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(job("over", "exit 7"))
        await until(alice, "over", "FAILED")
        await alice.submit(job("runs", f"echo $PAI_CONTAINER_ID >> {ran}; exec sleep 100"))
        await until(alice, "runs", "RUNNING")
        # more processors than there are: it only waits, and nothing is written but its submission
        await alice.submit(job("waits", "true", cpuNumber=1000))
        copy = disk.copy()
    await asyncio.to_thread(scheduler.close)
    disk.boot(copy)
    scheduler = start()
    async with Client(scheduler.url, "token-of-alice") as alice:
        assert {found["name"] for found in await alice.jobs()} == {"over", "runs", "waits"}
        assert await state_of(alice, "over") == ("FAILED", 7)
        assert await state_of(alice, "waits") == ("WAITING", None)
        # how its first attempt ended cannot be known, so another one follows
        await until_attempts(alice, "runs", 2)
        await until(alice, "runs", "RUNNING")
        first, second = ran.read_text().split()
        assert first != second
        first_attempt, _ = await alice.attempts("alice", "runs")
        assert first_attempt["exitCode"] == EXIT_CODE_LOST
    await asyncio.to_thread(scheduler.close)
