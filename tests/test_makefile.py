"""`make` says in a plain line what it does, and nothing where there is nothing to do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Stands for Python, pip and npm, which take minutes: it does nothing but make a folder like a venv's.
TOOL = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
if [ "$1 $2" = "-m hub_config.node" ]; then echo "$PWD/tools"; fi
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files that the Makefile looks at, and tools that do nothing."""
    for name in (
        "Makefile",
        "pyproject.toml",
        "constraints.txt",
        "pai_labextension/install.json",
        "hub_config/node.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for folder in ("jupyter-config", "hub_config/proxy"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for name in ("package.json", "package-lock.json", "tsconfig.json"):
        (tmp_path / "pai_labextension" / "ui").mkdir(exist_ok=True)
        (tmp_path / "pai_labextension" / "ui" / name).touch()
    (tmp_path / "tools").mkdir()
    for name in ("python", "npm"):
        (tmp_path / "tools" / name).write_text(TOOL)
        (tmp_path / "tools" / name).chmod(0o755)
    return tmp_path


def make(folder: Path, *targets: str) -> list[str]:
    # what calls these tests may be a make itself
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", f"PYTHON={folder}/tools/python", *targets],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_each_step_says_what_it_does_and_how_long_that_takes(project: Path) -> None:
    said = make(project, "build/installed", "build/tools", "build/proxy/installed")
    assert len(said) == 7
    assert all(line.endswith(").") and ("second" in line or "minute" in line) for line in said)
    assert not [line for line in said if "pip" in line or "npm" in line]


def test_where_nothing_is_to_be_done_nothing_is_said(project: Path) -> None:
    assert make(project, "run", "docs") != []
    assert make(project, "run", "docs") == []


def test_the_front_end_is_linted_again_when_one_of_its_files_has_changed(project: Path) -> None:
    config = project / "pai_labextension" / "ui" / "eslint.config.mjs"
    config.touch()
    assert make(project, "build/ui-lint") != []
    for path in project.rglob("*"):
        os.utime(path, (1e9, 1e9))
    assert make(project, "build/ui-lint") == ["make: 'build/ui-lint' is up to date."]
    config.touch()
    (said,) = make(project, "build/ui-lint")
    assert said.startswith("Linting the front end")


def test_what_is_installed_has_the_versions_of_the_lock_unless_one_asks_for_the_newest(project: Path) -> None:
    locked = [line for line in make(project, "-n", "build/tools") if "--editable" in line]
    newest = [line for line in make(project, "-n", "build/tools", "LOCK=") if "--editable" in line]
    assert len(locked) == len(newest) == 2
    assert ["--constraint constraints.txt" in line for line in (*locked, *newest)] == [True] * 2 + [False] * 2


def test_the_tests_run_on_all_cores_the_quick_ones_without_daemons_the_thorough_ones_in_full(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORKERS", raising=False)
    workers = 3 * (os.cpu_count() or 1) // 2
    quick, usual, thorough = (
        " ".join(line for line in make(project, "-n", *words) if "-m pytest" in line)
        for words in (("check",), ("test",), ("test-all", "WORKERS=0"))
    )
    assert f"--numprocesses={workers} -m 'not daemon and not long'" in quick
    assert f"--numprocesses={workers} -m 'not long'" in usual
    assert "--numprocesses=0 --thorough" in thorough
