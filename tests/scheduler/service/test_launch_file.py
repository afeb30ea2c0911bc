"""The launcher goes along with the tasks whose command names it."""

from __future__ import annotations

from pathlib import Path

from pai_scheduler.distributed import launch
from pai_scheduler.service.credentials import launcher_files


def test_a_command_that_names_the_launcher_gets_it_as_it_is() -> None:
    source = Path(launch.__file__).read_bytes()
    assert launcher_files("python3 $PAI_LAUNCH torch -- train.py") == {"launch.py": source}
    assert launcher_files("python3 train.py") == {}
