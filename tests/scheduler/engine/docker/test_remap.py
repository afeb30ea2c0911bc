"""A daemon that maps users (`userns-remap`): root in a container is nobody on its machine, and all works."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiodocker
import pytest

from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.engine.protocol import EndCause, Mount
from pai_scheduler.testing.lab import Lab, make_task
from pai_scheduler.testing.ssh_tasks import with_ssh
from tests.scheduler.engine.docker.test_engine import inspect, make_image
from tests.testbed.docker import Daemon, client
from tests.testbed.fixtures import provide
from tests.testbed.images import TINY, tiny_image

#: Reads what it is given, changes what is its own, and logs into itself.
COMMAND = """\
read -r secret </pai-job/netrc && read -r mounted </data/run.sh
read -r kept <'/pai-code/my code/deep/er/data'
echo "$secret $kept $mounted"
echo more >>'my code/deep/er/data' && read -r own <'my code/deep/er/data' && echo "$own, changed"
echo x >/home/me/file && echo "at home"
ssh "$SELF" 'while read -r key id _; do [ "$key" != Uid: ] || echo "as $id by SSH"; done </proc/self/status'
exit 7
"""
HOME = "/home/me"


@pytest.fixture
def daemon(docker_host: str, runtime_image: str) -> Iterator[Daemon]:
    """Run a daemon that maps users, below folders that the users they are mapped to may enter."""
    with tempfile.TemporaryDirectory(prefix="pai-remap-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o711)
        own = Daemon(Path(folder, "root"), Path(folder, "run"), own_network=True, userns_remap=True)

        def start() -> str:
            own.start()
            return tiny_image(own.host)

        provide(start)
        try:
            with client(docker_host) as ours, client(own.host) as theirs:
                theirs.images.load(b"".join(ours.images.get(runtime_image).save(named=runtime_image)))
            yield own
        finally:
            own.remove()


@pytest.fixture
async def lab(daemon: Daemon, runtime_image: str, tmp_path: Path) -> AsyncIterator[Lab]:
    engine = DockerEngine(tmp_path / "data", DockerSettings(host=daemon.host, runtime_image=runtime_image))
    await engine.start()
    lab = await Lab.over(engine, TINY)
    yield lab
    await lab.clean()
    await engine.close()


async def user_on_this_machine(pid: int) -> int:
    status = await asyncio.to_thread(Path(f"/proc/{pid}/status").read_text)
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("Uid:")))


async def test_root_in_a_task_is_nobody_on_the_machine_and_has_all_that_a_task_has(
    lab: Lab, daemon: Daemon, code: Path
) -> None:
    async with aiodocker.Docker(url=daemon.host) as docker:
        # (one daemon for all of it, as starting one takes a while)
        given: dict[str, Any] = {
            "code": code,
            "files": {"netrc": b"secret\n"},
            "mounts": (Mount(code, "/data"),),
        }
        itself = make_task()
        task = lab.make(
            COMMAND, task=itself, env={"SELF": itself.hostname}, home=HOME, hold_on_failure=True, **given
        )
        (launch,) = with_ssh(*await lab.prepare(task))
        await lab.engine.launch(launch)
        held = await lab.held(launch.task)
        await lab.printed(launch.task, "by SSH")
        assert lab.output(launch.task).splitlines() == [
            "secret data #!/bin/sh",
            "data, changed",
            "at home",
            "as 0 by SSH",
        ]
        assert (held.cause, held.exit_code) == (EndCause.EXITED, 7)
        process = (await inspect(docker, launch.task))["State"]["Pid"]
        assert await user_on_this_machine(process) >= 100_000
        await make_image(docker, "local/not-root", f"FROM {TINY}\nUSER 1234\n")
        later, ended = await lab.run(f"echo x >{HOME}/mine && echo wrote", image="local/not-root", home=HOME)
        assert (lab.output(later), ended.exit_code) == ("wrote\n", 0)
