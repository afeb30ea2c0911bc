from __future__ import annotations

from pai_scheduler.client.cli.show import limits_in_words
from pai_scheduler.rest.models import JobLimits, Validation

LIMITS: JobLimits = {
    "priority": 50,
    "queuePlace": 3,
    "maxRunSeconds": 60,
    "gpusPerUser": 4,
    "gpusHeld": 2,
}


def said(validation: Validation) -> list[str]:
    return [str(words) for words in limits_in_words(validation)]


def test_a_job_that_would_wait_is_told_its_order_its_time_and_its_quota() -> None:
    assert said({"errors": [], "fits": "later", "reason": "…", "borrows": False, "limits": LIMITS}) == [
        "Its priority is 50, its place in the queue would be 3.",
        "It may run for 60 s.",
        "You hold 2 of the 4 GPUs that one user may hold there.",
    ]


def test_a_job_that_fits_now_has_no_place_in_the_queue() -> None:
    free: JobLimits = {**LIMITS, "maxRunSeconds": None, "gpusPerUser": None}
    assert said({"errors": [], "fits": "now", "reason": "", "borrows": False, "limits": free}) == []


def test_a_job_that_is_wrong_has_no_limits() -> None:
    assert said({"errors": [], "fits": "never", "reason": "", "borrows": False, "limits": None}) == []
