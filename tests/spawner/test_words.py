"""What was chosen and what is free, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pai_scheduler.rest.cluster import Amount, AvailableAmounts
from pai_spawner.options import HubLimits
from pai_spawner.start_preview import (
    cpus_note,
    duration_words,
    gpu_type_words,
    gpus_note,
    memory_note,
    memory_words,
    most_gpus,
    title_of,
    virtual_cluster_words,
)

OPTIONS = replace(HubLimits({"a": "b"}).defaults, cpus=4, memory_mb=16_384)


def amount(cpus: int, memory_mb: int, **gpus: int) -> Amount:
    return {"cpus": cpus, "memoryMB": memory_mb, "storageGB": 0, "gpus": gpus}


AVAILABLE: AvailableAmounts = {
    "free": amount(10, 30_000, P100=1, K80=0),
    "most": amount(19, 60_000, P100=2, K80=0),
    "freeOnOne": amount(5, 20_000, P100=1, K80=0),
    "mostOnOne": amount(16, 40_000, P100=2, K80=0),
}


@pytest.mark.parametrize(
    ("gpus", "gpu_type", "title", "chinese"),
    [
        (0, "", "4 CPUs, 16 GB", "4 个 CPU、16 GB"),
        (1, "P100", "1 × P100, 4 CPUs, 16 GB", "1 × P100、4 个 CPU、16 GB"),
        (2, "", "2 × GPU, 4 CPUs, 16 GB", "2 × GPU、4 个 CPU、16 GB"),
    ],
)
def test_a_server_is_titled_by_what_one_gets(gpus: int, gpu_type: str, title: str, chinese: str) -> None:
    message = title_of(replace(OPTIONS, gpus=gpus, gpu_type=gpu_type))
    assert (str(message), message.in_locale("zh_CN")) == (title, chinese)


def test_amounts_are_said_in_the_unit_that_people_use() -> None:
    assert [str(memory_words(size)) for size in (512, 1024, 1536, 100_000)] == [
        "512 MB",
        "1 GB",
        "1.5 GB",
        "97.7 GB",
    ]
    assert [str(duration_words(minutes)) for minutes in (1, 60, 90, 1440, 2880)] == [
        "1 minute",
        "1 hour",
        "90 minutes",
        "1 day",
        "2 days",
    ]


def test_what_is_free_is_what_the_person_may_have_of_it() -> None:
    assert str(gpu_type_words("P100", AVAILABLE)) == "P100: 1 of 2 free"
    assert str(gpu_type_words("K80", AVAILABLE)) == "K80: none in this virtual cluster"
    assert str(cpus_note(AVAILABLE)) == "10 of 19 free"
    assert str(memory_note(AVAILABLE)) == "29.3 GB of 58.6 GB free"
    assert str(gpus_note("P100", AVAILABLE)) == "All GPUs of a server are on one machine: at most 2 here."
    assert (most_gpus("", AVAILABLE), most_gpus("K80", AVAILABLE), most_gpus("V100", AVAILABLE)) == (2, 0, 0)


def test_a_virtual_cluster_says_which_gpus_it_has() -> None:
    assert str(virtual_cluster_words("vision", AVAILABLE)) == "vision: 1/2 × P100 free"
    assert virtual_cluster_words("vision", AVAILABLE).in_locale("zh_CN") == "vision：空闲 1/2 × P100"
    none: AvailableAmounts = {**AVAILABLE, "most": amount(1, 1)}
    assert str(virtual_cluster_words("vision", none)) == "vision: no GPUs"
