"""Which folder was uploaded for a schedule alone, and who needs it."""

from __future__ import annotations

from typing import Any

import pytest

from pai_scheduler.job.validation import build_spec, config_of
from pai_scheduler.service.schedules import is_needed, uploaded_folder
from pai_scheduler.storage.paths import StoragePath
from tests.scheduler.making import make_config

CODE = "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/schedules/s_0123abcd"
RUN = {"run": {"file": "a.ipynb", "kind": "notebook"}}
FOLDER = StoragePath(("alice", "schedules", "s_0123abcd"))


def test_what_jupyterlab_uploaded_for_a_schedule_is_known_by_its_place_and_mark() -> None:
    assert uploaded_folder("alice", {"codeDir": CODE, "extras": RUN}) == FOLDER


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"codeDir": CODE},
        {"codeDir": CODE, "extras": "run"},
        {"codeDir": f"{CODE}/inner", "extras": RUN},
        {"codeDir": "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/schedules/mine", "extras": RUN},
        {"codeDir": "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/schedules/../data_0123abcd", "extras": RUN},
        {"codeDir": "$PAI_DEFAULT_FS_URI/bob/schedules/s_0123abcd", "extras": RUN},
    ],
)
def test_what_else_a_schedule_uses_is_not_its_own(config: dict[str, Any]) -> None:
    assert uploaded_folder("alice", config) is None


def test_it_is_needed_by_jobs_that_have_not_ended_and_by_other_schedules() -> None:
    using = build_spec(config_of(make_config(name="one", codeDir=CODE)))
    other = build_spec(config_of(make_config(name="one")))
    assert is_needed(FOLDER, [other, using], [])
    assert is_needed(FOLDER, [], [{"codeDir": CODE}])
    assert not is_needed(FOLDER, [other], [{"codeDir": CODE.replace("0123", "4567")}])
