"""Which shared folders a scheduler refuses at its start."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_scheduler.cluster.shared_folders import SharedFolder
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.server.shared_folders import check_shared_folders

SETS = SharedFolder("sets", "/data/sets", "", "/data/sets")


def test_the_process_engine_has_none_as_its_tasks_see_the_same_files_for_everybody() -> None:
    check_shared_folders([], "process", [])
    with pytest.raises(StartError, match="process engine has no shared folders"):
        check_shared_folders([SETS], "process", [])


@pytest.mark.parametrize("engine", ["docker", "swarm"])
def test_what_is_the_schedulers_own_is_not_shared(engine: str) -> None:
    check_shared_folders([SETS], engine, [Path("/srv/pai"), None, Path("/data/homes")])
    for own in ("/data/sets", "/data", "/data/sets/pai"):
        with pytest.raises(StartError, match="would open"):
            check_shared_folders([SETS], engine, [None, Path(own)])


def test_in_a_swarm_no_folder_is_made() -> None:
    folder = SharedFolder("scratch", "/scratch/{username}", "", "/scratch", create=True)
    check_shared_folders([folder], "docker", [])
    with pytest.raises(StartError, match="leave create out"):
        check_shared_folders([folder], "swarm", [])
