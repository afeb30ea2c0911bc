"""The JSON of schedules as types: a part of REST API version 1, declared as `models` says."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from .models import Text, Time, about

ScheduleOverlap = Annotated[
    Literal["skip", "allow"],
    about(
        "What is done when a run is due and another has not ended: `skip` leaves it out, `allow` starts it"
    ),
]
Cron = Annotated[
    str,
    about(
        "When: minute, hour, day of the month, month, day of the week, as cron has them",
        min_length=9,
        max_length=200,
        examples=["30 2 * * MON-FRI"],
    ),
]
TimeZone = Annotated[
    Text, about("The IANA name of the zone whose clocks tell it", examples=["Asia/Shanghai"])
]
ScheduledJob = Annotated[
    dict[str, Any],
    about("The job, as it would be submitted; its `jobName` does not count, each run has its own"),
]


class ScheduleRequest(TypedDict):
    """What shall run again and again."""

    cron: Cron
    timeZone: TimeZone
    job: ScheduledJob
    overlap: NotRequired[ScheduleOverlap]
    paused: NotRequired[Annotated[bool, about("Nothing is submitted until it goes on")]]


class ScheduleSwitch(TypedDict):
    """Whether a schedule rests."""

    paused: bool


class ScheduleRun(TypedDict):
    """What came of a schedule last."""

    job: Annotated[str, about("Name of the job, also where it was not submitted")]
    time: Time
    outcome: Annotated[
        Literal["submitted", "refused", "skipped"],
        about("Whether the job was submitted; how it ended says the job itself"),
    ]
    message: Annotated[str, about("Why it was not submitted; empty where it was")]


class ScheduleInfo(TypedDict):
    """A schedule."""

    name: str
    username: str
    cron: Cron
    timeZone: TimeZone
    overlap: ScheduleOverlap
    paused: bool
    createdTime: Time
    nextTime: Annotated[int | None, about("ms since the epoch; null: it is paused, or no such time comes")]
    lastRun: Annotated[ScheduleRun | None, about("Null: nothing was due yet")]


class ScheduleDetail(ScheduleInfo):
    """A schedule with its job."""

    job: ScheduledJob


class StartedRun(TypedDict):
    """The job that was submitted."""

    job: Annotated[str, about("Its name")]
