"""What `make run` refuses, it refuses before anything is fetched or built."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from hub_config.settings import LEAST_PASSWORD

MAKEFILE = Path(__file__).parents[2] / "Makefile"


def _make(folder: Path, password: str, target: str = "run") -> subprocess.CompletedProcess[str]:
    shutil.copy(MAKEFILE, folder)
    (folder / "jupyter-config").mkdir(exist_ok=True)
    # a Python that makes nothing
    command = ["make", target, f"PASSWORD={password}", "PYTHON=false"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]}
    )


def test_a_short_password_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    ran = _make(tmp_path, "x" * (LEAST_PASSWORD - 1))
    assert ran.returncode != 0
    assert ran.stderr.startswith(f"PASSWORD must have at least {LEAST_PASSWORD} characters.\n")
    assert ran.stdout == ""
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["Makefile", "jupyter-config"]


def test_a_password_that_is_long_enough_or_none_is_no_obstacle(tmp_path: Path) -> None:
    for password in ("x" * LEAST_PASSWORD, ""):
        assert _make(tmp_path, password, "password").returncode == 0
