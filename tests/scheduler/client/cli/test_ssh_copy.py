"""`pai cp` into real tasks and out of them."""

from __future__ import annotations

import filecmp
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from pai_scheduler.client.cli.ssh import CopyEndpoint, place_of
from tests.scheduler.client.cli.pai import PAI, environ_for, gateways_of
from tests.scheduler.conftest import run_job
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.warm import run_pai_text

T = TypeVar("T")

BYTES = os.urandom(5_000_000)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "ä b").write_bytes(BYTES)
    (folder / "run.sh").write_text("echo ran")
    (folder / "run.sh").chmod(0o750)
    os.utime(folder / "run.sh", (1e9, 1e9))
    return folder


@pytest.fixture
def pai(entered: RunningScheduler, tmp_path: Path) -> Pai:
    """Run `pai` as alice, in her folder."""
    return Pai(entered, tmp_path)


class Pai:
    """`pai`, in a folder."""

    def __init__(self, scheduler: RunningScheduler, folder: Path) -> None:
        self._scheduler, self._folder = scheduler, folder

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_pai_text(words, environ_for(self._scheduler), folder=self._folder)

    def there(self, script: str, job: str = "one", task: str = "main-0") -> str:
        return self("exec", job, task, "--", "sh", "-c", script).stdout


def test_a_folder_goes_there_and_comes_back_the_same(pai: Pai, project: Path, tmp_path: Path) -> None:
    sent = pai("cp", "-r", project.name, "one:")
    assert (sent.returncode, sent.stderr) == (0, "")
    assert sent.stdout == "one/main-0:project. Files transferred: 2 (5.0 MB); there already: 0.\n"
    assert pai.there("stat -c '%a %Y' project/run.sh") == "750 1000000000\n"
    # the same command goes on, or finds everything there
    again = pai("cp", "-r", "project", "one:project")
    assert again.stdout == "one/main-0:project. Files transferred: 0 (0 B); there already: 2.\n"
    assert pai("cp", "-r", "one/main-0:project", "back").returncode == 0
    assert (tmp_path / "back" / "sub" / "ä b").read_bytes() == BYTES
    assert (tmp_path / "back" / "run.sh").stat().st_mode & 0o777 == 0o750
    assert pai("cp", "-r", "one:project", ".").stdout.endswith(
        "Files transferred: 0 (0 B); there already: 2.\n"
    )


def test_files_go_into_a_folder_that_is_there_or_under_a_new_name(pai: Pai, project: Path) -> None:
    assert project.exists()
    assert pai("cp", "project/run.sh", "two/main-1:renamed").returncode == 0
    pai.there("mkdir folder", "two", "main-1")
    assert pai("cp", "project/run.sh", "project/sub/ä b", "two/main-1:folder").returncode == 0
    assert pai.there("ls folder; sh renamed", "two", "main-1").split("\n") == ["run.sh", "ä b", "ran", ""]
    assert pai.there("ls", "two", "main-0") == ""
    told = json.loads(pai("--json", "cp", "two/main-1:renamed", "here").stdout)
    assert (told["files"], Path(told["to"]).name, told["leftOut"]) == (1, "here", [])


def test_a_copy_that_was_cut_goes_on_where_it_was_and_is_no_half_file_meanwhile(
    own_scheduler: Callable[..., RunningScheduler], tmp_path: Path
) -> None:
    scheduler = own_scheduler(ssh=True)
    run_job(scheduler, "cut")
    large = tmp_path / "large"
    with large.open("wb") as file:
        for _ in range(16):
            file.write(BYTES * 2)
    pai = Pai(scheduler, tmp_path)
    folder = Path(pai.there("pwd", "cut").strip())
    copying = subprocess.Popen(
        [PAI, "cp", "large", "cut:"],
        cwd=tmp_path,
        env=environ_for(scheduler),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    part = until(lambda: next((file for file in folder.glob(".large.*") if file.stat().st_size), None))
    for number in gateways_of(scheduler):
        os.kill(number, signal.SIGKILL)
    said = copying.communicate(timeout=60)
    assert copying.returncode == 1
    assert "The same command goes on from here." in said[1]
    assert [file.name for file in folder.iterdir()] == [part.name]
    assert 0 < part.stat().st_size < large.stat().st_size
    inode = part.stat().st_ino
    again = until(lambda: ran if (ran := pai("cp", "large", "cut:")).returncode == 0 else None)
    assert again.stdout.startswith("cut/main-0:large. Files transferred: 1 ")
    assert [file.name for file in folder.iterdir()] == ["large"]
    # it is the same file that grew
    assert (folder / "large").stat().st_ino == inode
    assert filecmp.cmp(large, folder / "large", shallow=False)


def until(find: Callable[[], T | None]) -> T:
    for _ in range(600):
        if (found := find()) is not None:
            return found
        time.sleep(0.05)
    raise AssertionError("it does not come")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["project", "one:"], "project is a folder: add -r."),
        (["one:", "x"], ". is a folder: add -r."),
        (["one:nothing", "x"], "There is no nothing in the task."),
        (["nothing", "one:"], "nothing cannot be read: No such file or directory."),
        (["project/run.sh", "one:no/where"], "There is no folder no in the task."),
        (["project/run.sh", "two:x"], "Job two has several tasks: name one of main-0, main-1."),
        (["one:x"], "Say where to copy it: pai cp NAME:file . or pai cp file NAME:"),
        (
            ["one:a", "two/main-0:b"],
            "Either what is copied or where it goes is in a task, and in one task only: NAME:path.",
        ),
        (
            ["a", "b"],
            "Either what is copied or where it goes is in a task, and in one task only: NAME:path.",
        ),
        (
            ["one:a", "two/main-0:b", "c"],
            "Either what is copied or where it goes is in a task, and in one task only: NAME:path.",
        ),
    ],
)
def test_what_cannot_be_is_said(pai: Pai, project: Path, words: list[str], sentence: str) -> None:
    assert project.exists()
    refused = pai("cp", *words)
    assert refused.returncode in (1, 2)
    assert refused.stderr.strip() == sentence


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("job:x/y", CopyEndpoint("job", None, "x/y")),
        ("job:", CopyEndpoint("job", None, "")),
        ("a-b.c~1/worker-12:/etc:x", CopyEndpoint("a-b.c~1", "worker-12", "/etc:x")),
        ("./a:b", None),
        ("a/b:c", None),
        ("/a:b", None),
        ("plain", None),
    ],
)
def test_a_place_in_a_task_is_told_from_a_file_here(written: str, place: CopyEndpoint | None) -> None:
    assert place_of(written) == place
