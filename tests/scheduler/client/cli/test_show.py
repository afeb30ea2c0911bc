from __future__ import annotations

from typing import Literal

from pai_scheduler.client.cli.show import limits_in_words, nodes_table
from pai_scheduler.rest.cluster import NodeInfo
from pai_scheduler.rest.models import JobLimits, Validation

LIMITS: JobLimits = {
    "priority": 50,
    "queuePlace": 3,
    "maxRunSeconds": 60,
    "gpusPerUser": 4,
    "gpusHeld": 2,
}


NODE: NodeInfo = {
    "name": "a",
    "state": "READY",
    "closed": None,
    "total": {"cpus": 8, "memoryMB": 16_000, "storageGB": 100, "gpus": {"P100": 2}},
    "used": {"cpus": 3, "memoryMB": 1000, "storageGB": 0, "gpus": {"P100": 1}},
    "gpus": [],
    "rack": "r1",
    "disk": None,
}


def validation(fits: Literal["now", "never"], limits: JobLimits | None) -> Validation:
    return {
        "errors": [],
        "fits": fits,
        "reason": "",
        "borrows": False,
        "limits": limits,
        "startsWithin": 0 if fits == "now" else None,
        "warnings": [],
        "startsNowIn": [],
    }


def said(validation: Validation) -> list[str]:
    return [str(words) for words in limits_in_words(validation)]


def test_a_job_that_would_wait_is_told_its_order_its_time_and_its_quota() -> None:
    assert said(
        {
            "errors": [],
            "fits": "later",
            "reason": "…",
            "borrows": False,
            "limits": LIMITS,
            "startsWithin": 1140,
            "warnings": [],
            "startsNowIn": ["vision"],
        }
    ) == [
        "It starts in about 19 minutes.",
        "It would start now in virtual cluster vision.",
        "Its priority is 50, its place in the queue would be 3.",
        "It may run for 60 s.",
        "You hold 2 of the 4 GPUs that one user may hold there.",
    ]


def test_a_job_that_fits_now_has_no_place_in_the_queue() -> None:
    free: JobLimits = {**LIMITS, "maxRunSeconds": None, "gpusPerUser": None}
    assert (
        said(
            {
                "errors": [],
                "fits": "now",
                "reason": "",
                "borrows": False,
                "limits": free,
                "startsWithin": 0,
                "warnings": [],
                "startsNowIn": [],
            }
        )
        == []
    )


def test_a_job_that_is_wrong_has_no_limits() -> None:
    assert (
        said(
            {
                "errors": [],
                "fits": "never",
                "reason": "",
                "borrows": False,
                "limits": None,
                "startsWithin": 0,
                "warnings": [],
                "startsNowIn": [],
            }
        )
        == []
    )


def test_each_machine_is_shown_with_the_rack_that_it_is_in() -> None:
    lines = nodes_table([NODE, {**NODE, "rack": ""}], "en").splitlines()
    assert [line.split() for line in lines[-2:]] == [
        ["a", rack, "READY", "3/8", "1000/16000", "P100", "1/2", "-", "-"] for rack in ("r1", "-")
    ]


def test_who_holds_the_gpus_of_a_node_is_shown_with_how_many() -> None:
    gpus = [{"type": "P100", "simulated": False, "user": user} for user in ("bob", "carol", None, "carol")]
    lines = nodes_table([{**NODE, "gpus": gpus}, NODE], "en").splitlines()  # type: ignore[typeddict-item]
    assert "HELD BY" in lines[0]
    assert "carol 2, bob 1" in lines[-2]


def test_the_room_on_a_machine_s_disk_is_shown_where_it_is_known() -> None:
    disk = {"freeMB": 1536, "totalMB": 102_400}
    lines = nodes_table([{**NODE, "disk": disk}, NODE], "en").splitlines()  # type: ignore[typeddict-item]
    assert lines[0].endswith("DISK GB (free/all)")
    assert [line.split()[-1] for line in lines[-2:]] == ["1.5/100.0", "-"]
