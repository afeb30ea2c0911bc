"""How much of a disk is to stay free."""

from __future__ import annotations

import shutil
from pathlib import Path

from pai_scheduler.data_folder.room import least_free


def test_what_is_asked_for_stays_free_but_not_more_than_a_twentieth(tmp_path: Path) -> None:
    total = shutil.disk_usage(tmp_path).total
    assert least_free(tmp_path, 1) == 2**20
    assert least_free(tmp_path, 0) == 0
    assert least_free(tmp_path, total // 2**20) == int(total * 0.05)
