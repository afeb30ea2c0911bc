"""A job's code and a task's own files in a container: who may do what with them, and a daemon elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import aiodocker
import pytest

from pai_scheduler.engine.docker import containers
from pai_scheduler.engine.docker.containers import stream
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.protocol import EndCause, Mount
from pai_scheduler.testing.lab import Lab
from tests.scheduler.engine.docker.test_engine import inspect, make_image

OpenDocker = Callable[..., Awaitable[DockerEngine]]

NOT_ROOT = """\
cd "my code" && echo more >> deep/er/data && ./run.sh && rm -r deep && mkdir mine && ls -A &&
cat /pai-job/netrc && ! touch "/pai-code/my code/x" && ! touch /pai-job/x && ! rm /pai-job/netrc
"""


async def test_the_user_of_the_image_may_change_the_code_and_read_its_own_files(
    docker_lab: Lab, docker: aiodocker.Docker, debian_image: str, code: Path
) -> None:
    await make_image(docker, "local/not-root", f'FROM {debian_image}\nUSER 1234\nENTRYPOINT ["false"]\n')
    task, ended = await docker_lab.run(
        NOT_ROOT, image="local/not-root", code=code, files={"netrc": b"secret\n"}
    )
    assert docker_lab.output(task, "stdout") == "run\nempty\nmine\nrun.sh\nsecret\n"
    assert ended.exit_code == 0


async def test_root_in_a_container_does_not_change_what_other_tasks_have(docker_lab: Lab, code: Path) -> None:
    command = 'rm -rf "/pai-code/my code/deep"; touch /pai-job/x'
    _, ended = await docker_lab.run(command, code=code, files={"a": b""})
    assert ended.exit_code == 1
    assert (code / "deep/er/data").read_text() == "data\n"


async def test_a_daemon_on_another_machine_is_sent_what_it_cannot_mount(
    tcp_docker: str, open_docker: OpenDocker, debian_image: str, code: Path
) -> None:
    lab = await Lab.over(await open_docker(host=tcp_docker), debian_image)
    command = 'for code in . /pai-code; do cat "$code/my code/deep/er/data"; done; cat /pai-job/netrc'
    task, ended = await lab.run(command, code=code, files={"netrc": b"secret\n"})
    assert lab.output(task) == "data\ndata\nsecret\n"
    assert ended.exit_code == 0
    await lab.clean()


async def test_data_is_mounted_read_only_wherever_it_was_asked_for(
    docker_lab: Lab, docker: aiodocker.Docker, debian_image: str, code: Path
) -> None:
    await make_image(docker, "local/not-root", f'FROM {debian_image}\nUSER 1234\nENTRYPOINT ["false"]\n')
    mounts = (Mount(code, "/data"), Mount(code / "deep", "own/deep"))
    command = "cat /data/deep/er/data own/deep/er/data; touch /data/x || touch own/deep/x || touch own.txt"
    images = ({"image": image} for image in ("local/not-root", debian_image))
    for task, ended in await docker_lab.run_gang(*images, command=command, mounts=mounts):
        assert docker_lab.output(task, "stdout") == "data\ndata\n"
        assert "Read-only file system" in docker_lab.output(task, "stderr")
        assert ended.exit_code == 0


async def test_a_daemon_on_another_machine_mounts_no_data(
    tcp_docker: str, open_docker: OpenDocker, debian_image: str, code: Path
) -> None:
    lab = await Lab.over(await open_docker(host=tcp_docker), debian_image)
    _, ended = await lab.run("echo ran", mounts=(Mount(code, "data"),))
    assert ended.cause is EndCause.REFUSED
    assert "Docker runs on another machine" in str(ended.reason)
    await lab.clean()


async def test_names_of_any_kind_and_length_arrive(docker_lab: Lab, tmp_path: Path) -> None:
    code = tmp_path / "代码 :,$HOME"
    name = "长" * 80
    (code / name).mkdir(parents=True)
    (code / name / "a\nb").write_text("x")
    (code / "not\udcff-utf8").write_text("y")
    task, ended = await docker_lab.run("cd ./* && cat */* not* && cd /pai-code/* && cat not* */*", code=code)
    assert docker_lab.output(task) == "xyyx"
    assert ended.exit_code == 0


async def test_the_folders_that_are_mounted_are_read_only(
    docker_lab: Lab, docker: aiodocker.Docker, code: Path
) -> None:
    task = await docker_lab.start("exec sleep 1000", code=code, files={"netrc": b"x"})
    await docker_lab.started(task)
    mounts = {mount["Destination"]: mount["RW"] for mount in (await inspect(docker, task))["Mounts"]}
    assert mounts == {"/pai-code/my code": False, "/pai-job": False}


async def test_a_large_folder_is_sent_piece_by_piece(
    docker_lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "file").write_bytes(b"x" * 30_000_000)
    sizes: list[int] = []

    async def watched(entries: Iterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in stream(entries):
            sizes.append(len(piece))
            yield piece

    monkeypatch.setattr(containers, "stream", watched)
    task, _ = await docker_lab.run("wc -c < large/file", code=tmp_path / "large")
    assert docker_lab.output(task) == "30000000\n"
    assert max(sizes) <= 3 * 2**20
