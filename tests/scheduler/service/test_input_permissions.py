"""What a job's user may not read or write in the storage is found by rights, before the job starts."""

from __future__ import annotations

from typing import Any

import pytest

from pai_scheduler.job.validation import parse_job
from pai_scheduler.principal import Principal
from pai_scheduler.service.admission import find_refused
from pai_scheduler.storage.paths import StorageNames
from tests.scheduler.making import make_config

ALICE = Principal("alice", groups=("vision",))
NAMES = StorageNames(["http://fs:1/webhdfs", "http://localhost:1/webhdfs"])


def refused(**fields: Any) -> dict[str, str]:
    spec = parse_job(make_config(name="train", **fields))
    return {error.path: str(error.message) for error in find_refused(spec, ALICE, NAMES)}


def test_what_is_ones_own_or_a_groups_or_for_all_to_read_is_not_refused() -> None:
    assert refused() == {}
    assert (
        refused(
            authFile="/alice/login",
            codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME",
            dataDir="/Public/data",
            outputDir="/Shared/vision/results",
            extras={"mounts": [{"source": "http://localhost:1/webhdfs/Public/data", "target": "data"}]},
        )
        == {}
    )


@pytest.mark.parametrize(
    "uri", ["/bob/results", "/Public/models", "/Shared/sound/x", "/Output/bob", "/", "/.x"]
)
def test_an_output_folder_that_is_not_the_users_to_write_to_is(uri: str) -> None:
    assert list(refused(outputDir=uri)) == ["$.outputDir"]
    (said,) = refused(outputDir=uri).values()
    assert said == (
        f"outputDir {uri} cannot be used. User alice may not write to {uri}. Your own files are in /alice."
    )


def test_every_field_that_names_something_elses_is_told_with_its_place() -> None:
    found = refused(
        authFile="/bob/login",
        codeDir="$PAI_DEFAULT_FS_URI/bob/code",
        dataDir="/bob/data",
        extras={"mounts": [{"source": "/alice/a", "target": "a"}, {"source": "/bob/b", "target": "b"}]},
    )
    assert list(found) == ["$.authFile", "$.codeDir", "$.dataDir", "$.extras.mounts[1].source"]
    assert all("may not read /bob/" in said for said in found.values())


def test_another_storage_is_the_jobs_own_business_where_nothing_is_fetched_from_it() -> None:
    assert refused(dataDir="hdfs://elsewhere/data", outputDir="hdfs://elsewhere/out") == {}
    assert "not in the cluster's storage" in refused(codeDir="hdfs://elsewhere/code")["$.codeDir"]


def test_an_administrators_job_has_no_more_rights_than_its_user() -> None:
    spec = parse_job(make_config(name="train", outputDir="/Public/models"))
    assert list(find_refused(spec, Principal("root"), NAMES))
