from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from pai_labextension.kernels.job_spec import (
    JOB_NAME,
    KernelDemand,
    KernelRecord,
    attach_command,
    folder_of,
    kernel_job,
    new_job_name,
)
from pai_scheduler.job.validation import validate

KERNEL = str(uuid.UUID(int=5))
RECORD = KernelRecord(KERNEL, "/user/alice/", "pai-python3-1-p100", "/home/alice/a.ipynb")
DEMAND = KernelDemand(
    image="lab/notebook:1",
    gpus=1,
    gpu_type="P100",
    cpus=2,
    memory_mb=4096,
    shm_mb=8192,
    virtual_cluster="vision",
    preemptible=False,
    idle_seconds=1800,
    python="/opt/it's here/python",
)


def test_the_job_of_a_kernel_is_valid_and_asks_for_what_was_chosen():
    job = kernel_job(new_job_name(), RECORD, DEMAND, home="/home/jovyan", env={"HOME": "/home/jovyan"})
    assert not validate(job)
    (role,) = job["taskRoles"]
    assert (role["name"], role["taskNumber"], role["gpuNumber"], role["cpuNumber"]) == ("kernel", 1, 1, 2)
    # more shared memory than memory would be refused
    assert (role["memoryMB"], role["shmMB"]) == (4096, 4096)
    assert (job["gpuType"], job["virtualCluster"]) == ("P100", "vision")
    assert job["extras"] == {"kernel": RECORD.to_json(), "preemptible": False, "home": "/home/jovyan"}


def test_its_name_says_that_it_is_a_kernel():
    assert JOB_NAME.fullmatch(new_job_name())
    assert new_job_name() != new_job_name()


def test_a_record_is_read_from_the_job_and_from_no_other():
    job = kernel_job("kernel_01234567", RECORD, DEMAND)
    assert KernelRecord.read(job) == RECORD
    for other in ({}, {"extras": None}, {"extras": {"kernel": {"id": KERNEL}}}, {"extras": {"kernel": 7}}):
        assert KernelRecord.read(other) is None
    forged = {"extras": {"kernel": replace(RECORD, id='"; rm -rf ~; "').to_json()}}
    assert KernelRecord.read(forged) is None


def test_nothing_in_the_commands_is_more_than_it_says():
    job = kernel_job("kernel_01234567", RECORD, DEMAND)
    assert "exec '/opt/it'\"'\"'s here/python' \"$folder/runner.py\"" in job["taskRoles"][0]["command"]
    assert "'/opt/it'\"'\"'s here/python' -I -S" in attach_command(KERNEL, DEMAND.python)
    with pytest.raises(ValueError, match="no kernel's id"):
        folder_of("../../etc")
