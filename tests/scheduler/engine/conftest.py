"""What the engine tests share: a disk that is quickly full; assertions that explain themselves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.scheduler.engine.conformance", "tests.scheduler.engine.lab")


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 1 MB in memory."""
    folder = tmp_path / "tiny-disk"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mount.returncode:
        reason = f"a tmpfs (mounting one needs root): {mount.stderr.strip()}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
