"""`pai fs` on a real scheduler, as somebody at a terminal has it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.scheduler.client.cli.pai import PAI, environ_for
from tests.testbed.scheduler import RunningScheduler

Pai = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("alpha\n")
    (folder / "sub" / "b.bin").write_bytes(bytes(1500))
    return folder


@pytest.fixture
def there() -> str:
    """Return a folder in alice's own that no other test has, as she writes it."""
    return f"fs-{uuid4().hex[:8]}"


def test_a_folder_goes_up_is_looked_at_and_comes_down(
    pai: Pai, here: Path, there: str, tmp_path: Path
) -> None:
    up = pai("fs", "put", here, f"/alice/{there}")
    assert (up.returncode, up.stderr) == (0, "")
    assert up.stdout == f"/alice/{there}. Files transferred: 2 (1.5 kB); there already: 0.\n"
    assert pai("fs", "ls", there).stdout == "a.txt\nsub/\n"
    assert pai("fs", "ls", "-R", there).stdout == "a.txt\nsub/\nsub/b.bin\n"
    assert pai("fs", "cat", f"{there}/a.txt", f"/alice/{there}/a.txt").stdout == "alpha\nalpha\n"
    down = pai("fs", "get", f"$PAI_DEFAULT_FS_URI/alice/{there}", tmp_path / "down")
    assert down.returncode == 0
    assert (tmp_path / "down" / "sub" / "b.bin").read_bytes() == bytes(1500)


def test_the_same_again_sends_nothing(pai: Pai, here: Path, there: str) -> None:
    # the target is there now and has the source's name: it is meant itself
    for expected in (["2", "0"], ["0", "2"]):
        said = pai("fs", "put", here, f"{there}/data").stdout
        assert re.findall(r"transferred: (\d+) .* already: (\d+)", said)[0] == tuple(expected)
    assert pai("fs", "ls", there).stdout == "data/\n"


def test_a_folder_that_is_there_gets_it_under_its_name(
    pai: Pai, here: Path, there: str, tmp_path: Path
) -> None:
    assert pai("fs", "mkdir", f"{there}/x/y").returncode == 0
    assert pai("fs", "put", here, there).returncode == 0
    assert pai("fs", "put", here / "a.txt", here / "sub", f"{there}/x").returncode == 0
    assert pai("fs", "put", here / "a.txt", f"{there}/new/").returncode == 0
    listed = pai("fs", "ls", "-R", there).stdout.split()
    assert {"data/sub/b.bin", "x/a.txt", "x/sub/b.bin", "x/y/", "new/a.txt"} <= set(listed)
    (tmp_path / "into").mkdir()
    assert pai("fs", "get", f"{there}/data", f"{there}/x/a.txt", tmp_path / "into").returncode == 0
    assert sorted(path.name for path in (tmp_path / "into").iterdir()) == ["a.txt", "data"]


def test_a_long_listing_tells_more(pai: Pai, here: Path, there: str) -> None:
    pai("fs", "put", here, there)
    lines = pai("fs", "ls", "-l", there).stdout.splitlines()
    assert lines[0].split() == ["RIGHTS", "OWNER", "GROUP", "LENGTH", "CHANGED", "NAME"]
    assert re.fullmatch(r"-rw-\S+ +alice +\S+ +6 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +a\.txt", lines[1])
    assert re.fullmatch(r"drwx\S+ +alice +\S+ +- +.* sub/", lines[2])
    assert "1.5 kB" in pai("fs", "ls", "-l", "-h", f"{there}/sub").stdout
    one = pai("fs", "ls", f"{there}/sub/b.bin")
    assert one.stdout == "b.bin\n"
    assert pai("fs", "ls", f"{there}/never").returncode == 1


def test_programs_get_json(pai: Pai, here: Path, there: str) -> None:
    up = json.loads(pai("fs", "put", "--json", here, there).stdout)
    assert (up["files"], up["length"], up["same"], up["leftOut"]) == (2, 1506, 0, [])
    listed = json.loads(pai("fs", "ls", "--json", "-R", there).stdout)
    assert [(item["path"], item["type"], item["length"]) for item in listed] == [
        (f"/alice/{there}/a.txt", "file", 6),
        (f"/alice/{there}/sub", "folder", 0),
        (f"/alice/{there}/sub/b.bin", "file", 1500),
    ]
    used = json.loads(pai("fs", "du", "--json", there).stdout)
    assert used == [{"path": f"/alice/{there}", "length": 1506, "files": 2, "folders": 2}]


def test_usage_is_told_for_each_path(pai: Pai, here: Path, there: str) -> None:
    pai("fs", "put", here, there)
    said = pai("fs", "du", "-h", there, f"{there}/a.txt").stdout.splitlines()
    assert said[0].split() == ["LENGTH", "FILES", "FOLDERS", "PATH"]
    assert said[1].split() == ["1.5", "kB", "2", "2", f"/alice/{there}"]
    assert said[2].split() == ["6", "B", "1", "0", f"/alice/{there}/a.txt"]


def test_files_are_moved_copied_and_deleted(pai: Pai, here: Path, there: str) -> None:
    pai("fs", "put", here, there)
    assert pai("fs", "mv", f"{there}/a.txt", f"{there}/sub").returncode == 0
    assert pai("fs", "cp", f"{there}/sub/a.txt", f"{there}/c.txt").returncode == 0
    refused = pai("fs", "cp", f"{there}/sub", f"{there}/copy")
    assert (refused.returncode, refused.stderr) == (1, f"/alice/{there}/sub is a folder: add -r.\n")
    assert pai("fs", "cp", "-r", f"{there}/sub", f"{there}/copy").returncode == 0
    assert pai("fs", "cp", "-r", f"{there}/sub", f"{there}/sub/inner").returncode == 1
    assert pai("fs", "ls", "-R", there).stdout.split() == [
        *("c.txt", "copy/", "sub/", "copy/a.txt", "copy/b.bin", "sub/a.txt", "sub/b.bin"),
    ]
    assert pai("fs", "cp", f"{there}/sub/b.bin", f"{there}/c.txt").returncode == 1
    assert pai("fs", "cp", "-f", f"{there}/sub/b.bin", f"{there}/c.txt").returncode == 0
    assert pai("fs", "rm", f"{there}/copy").returncode == 1
    assert pai("fs", "rm", "-r", f"{there}/copy", f"{there}/sub").returncode == 0
    assert pai("fs", "ls", there).stdout == "c.txt\n"
    gone = pai("fs", "rm", f"{there}/copy")
    assert (gone.returncode, gone.stderr) == (1, f"There is no /alice/{there}/copy.\n")


def test_what_is_not_allowed_or_not_here_is_said_in_a_sentence(pai: Pai, here: Path, there: str) -> None:
    refused = pai("fs", "put", here, "/bob/x")
    assert refused.returncode == 1
    assert "User alice may not" in refused.stderr
    assert pai("fs", "ls", "../bob").returncode == 1
    missing = pai("fs", "put", here / "never", there)
    assert missing.returncode == 2
    assert "cannot be read" in missing.stderr
    assert pai("fs", "ls", "hdfs://elsewhere/x").returncode == 1
    silent = pai("fs", "ls", PAI_API_URL="http://127.0.0.1:1")
    assert silent.returncode == 3
    assert "http://127.0.0.1:1" in silent.stderr
    unknown = pai("fs", "ls", PAI_TOKEN="wrong")
    assert unknown.returncode == 1
    assert "Set PAI_TOKEN" in unknown.stderr
    chinese = pai("fs", "rm", f"{there}/never", LC_ALL="zh_CN.UTF-8")
    assert chinese.stderr == f"/alice/{there}/never 不存在。\n"


def test_what_is_left_out_is_named(pai: Pai, here: Path, there: str) -> None:
    (here / "link").symlink_to("/etc")
    up = pai("fs", "put", here, there)
    assert up.returncode == 0
    assert "link to a folder" in up.stderr
    pai("fs", "mkdir", f"{there}/other/a.txt/in-the-way")
    failed = pai("fs", "put", here / "a.txt", here / "sub", f"{there}/other")
    assert failed.returncode == 1
    assert str(here / "a.txt") in failed.stderr
    assert pai("fs", "ls", f"{there}/other/sub").stdout == "b.bin\n"


def test_progress_is_seen_on_a_terminal_and_nowhere_else(
    scheduler: RunningScheduler, here: Path, there: str
) -> None:
    (here / "large").write_bytes(bytes(20_000_000))
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 100))
    environ = environ_for(scheduler)
    with subprocess.Popen(
        [PAI, "fs", "put", here, there], env=environ, stdout=subprocess.PIPE, stderr=follower
    ) as running:
        assert running.stdout is not None
        said = running.stdout.read().decode()
    os.close(follower)
    shown = os.read(leader, 100_000).decode()
    os.close(leader)
    assert "files 3/3" in shown
    assert "20.0M/20.0M" in shown
    # the line is cleared in the end
    assert shown.rsplit("\r", 2)[1].strip() == ""
    assert said.endswith("Files transferred: 3 (20 MB); there already: 0.\n")


def test_a_transfer_that_is_ended_is_gone_on_with(
    scheduler: RunningScheduler, pai: Pai, here: Path, there: str
) -> None:
    os.truncate(here / "a.txt", 10**9)
    pai("fs", "mkdir", there)
    with subprocess.Popen(
        [PAI, "fs", "put", here / "a.txt", there], env=environ_for(scheduler), stderr=subprocess.PIPE
    ) as running:
        for _ in range(6000):
            if list((scheduler.data_dir / "storage" / "alice" / there).glob(".a.txt.*.part")):
                break
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        assert running.stderr.read() == b"Broken off. The same command goes on from here.\n"
    assert running.returncode == 130
    assert re.fullmatch(r"\.a\.txt\.[0-9a-f]{8}\.part\n", pai("fs", "ls", there).stdout)
    pai("fs", "rm", "-r", there)


def test_a_binary_file_is_printed_as_it_is(scheduler: RunningScheduler, here: Path, there: str) -> None:
    every = bytes(range(256)) * 10
    (here / "every").write_bytes(every)
    environ = environ_for(scheduler)
    subprocess.run([PAI, "fs", "put", here, there], env=environ, check=True, capture_output=True)
    printed = subprocess.run(
        [PAI, "fs", "cat", f"{there}/every"], env=environ, check=True, capture_output=True
    )
    assert printed.stdout == every
