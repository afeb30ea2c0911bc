"""Jobs that run again and again, over REST."""

from __future__ import annotations

from typing import Any

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.schedule import Overlap, Schedule
from pai_scheduler.job.validation import SpecError
from pai_scheduler.rest.errors import RequestError, invalid_parameters
from pai_scheduler.rest.schedules import (
    ScheduleDetail,
    ScheduleInfo,
    ScheduleRequest,
    ScheduleSwitch,
    StartedRun,
)
from pai_scheduler.service.schedules import WantedSchedule

from .base import ApiHandler, Route, routes
from .body import missing, read_fields, read_object
from .operations import (
    CONFLICT,
    FULL,
    NO_API,
    NO_SCHEDULE,
    NO_USER,
    TOO_MANY_JOBS,
    Answer,
    Body,
    DocumentedRefusal,
    operation,
    query,
)

#: How many times are told of a schedule that may be made.
_TIMES = 3

_ONE = "/user/{user}/schedules/{schedule}"


class _ScheduleHandler(ApiHandler):
    def info(self, schedule: Schedule) -> ScheduleInfo:
        """Tell of a schedule in the caller's language."""
        last = schedule.last
        return {
            "name": schedule.name,
            "username": schedule.user,
            "cron": schedule.cron,
            "timeZone": schedule.zone,
            "overlap": schedule.overlap.value,
            "paused": schedule.paused,
            "createdTime": schedule.created,
            "nextTime": schedule.next,
            "lastRun": None
            if last is None
            else {
                "job": last.job,
                "time": last.time,
                "outcome": last.outcome.value,
                "message": "" if last.message is None else last.message.in_locale(self.language),
            },
        }


class SchedulesHandler(_ScheduleHandler):
    """`/user/:u/schedules`."""

    @operation(
        "GET /user/{user}/schedules",
        "schedules",
        "jobs",
        "A user's schedules, by name",
        {200: Answer("The schedules.", list[ScheduleInfo])},
        description="Jobs that run again and again. One's own, or for administrators anybody's.",
        refusals=[NO_API],
    )
    async def get(self, user: str) -> None:
        """List."""
        self.answer([self.info(found) for found in await self.service.schedules.list(self.principal, user)])


class ScheduleTimesHandler(ApiHandler):
    """`/schedule-times`."""

    @operation(
        "GET /schedule-times",
        "scheduleTimes",
        "jobs",
        "When a schedule would run",
        {200: Answer("The next times, in ms since the epoch; none where none comes.", list[int])},
        parameters=[
            query("cron", str, "A cron expression"),
            query("timeZone", str, "The zone whose clocks tell it, an IANA name"),
        ],
    )
    async def get(self) -> None:
        """Read the expression; nothing is made."""
        cron, zone = self.query_text("cron") or "", self.query_text("timeZone") or ""
        self.answer(self.service.schedules.next_times(cron, zone, _TIMES))


class ScheduleHandler(_ScheduleHandler):
    """`/user/:u/schedules/:schedule`."""

    @operation(
        f"GET {_ONE}",
        "schedule",
        "jobs",
        "A schedule and its job",
        {200: Answer("The schedule.", ScheduleDetail)},
        refusals=[NO_SCHEDULE],
    )
    async def get(self, user: str, name: str) -> None:
        """Show."""
        found, job = await self.service.schedules.get(self.principal, user, name)
        self.answer({**self.info(found), "job": job})

    @operation(
        f"PUT {_ONE}",
        "setSchedule",
        "jobs",
        "Make or change a schedule",
        {200: Answer("It is durable.", ScheduleInfo)},
        description="The job is checked as if it were submitted now, and again whenever it is due, with the "
        "rights that its user has then. A run is called by the schedule and the time at which it is due, in "
        "the zone's time: `<schedule>-<yyyymmdd-hhmm>`. What became due while the scheduler did not run is "
        "made up for once.",
        body=Body(ScheduleRequest),
        refusals=[
            NO_USER,
            DocumentedRefusal(
                404,
                ["NoVirtualClusterError", "NoApiError"],
                "There is no such virtual cluster, or no such address.",
            ),
            DocumentedRefusal(
                429, ["TooManySchedulesError"], "The user has as many schedules as one may have."
            ),
        ],
    )
    async def put(self, user: str, name: str) -> None:
        """Make or change it."""
        wanted = _wanted(read_fields(self.request, "cron", "timeZone"))
        self.answer(self.info(await self.service.schedules.put(self.principal, user, name, wanted)))

    @operation(
        f"DELETE {_ONE}",
        "removeSchedule",
        "jobs",
        "Delete a schedule",
        {204: Answer("It is gone; its jobs are as they were.")},
        refusals=[NO_SCHEDULE, FULL],
    )
    async def delete(self, user: str, name: str) -> None:
        """Forget it."""
        await self.service.schedules.delete(self.principal, user, name)
        self.set_status(204)
        self.finish()


class ScheduleStateHandler(_ScheduleHandler):
    """`/user/:u/schedules/:schedule/state`."""

    @operation(
        f"PUT {_ONE}/state",
        "pauseSchedule",
        "jobs",
        "Pause a schedule, or let it go on",
        {200: Answer("It is durable.", ScheduleInfo)},
        description="What is due while it is paused is not made up for.",
        body=Body(ScheduleSwitch),
        refusals=[NO_SCHEDULE],
    )
    async def put(self, user: str, name: str) -> None:
        """Pause it or let it go on."""
        paused = read_object(self.request).get("paused")
        if not isinstance(paused, bool):
            raise _wrong("$.paused", msg("paused must be true or false."))
        done = await self.service.schedules.set_paused(self.principal, user, name, paused=paused)
        self.answer(self.info(done))


class ScheduleRunsHandler(_ScheduleHandler):
    """`/user/:u/schedules/:schedule/runs`."""

    @operation(
        f"POST {_ONE}/runs",
        "runSchedule",
        "jobs",
        "Submit a schedule's job now",
        {202: Answer("It is accepted, durably.", StartedRun)},
        description="Whether or not it is paused or another run has not ended. It is called by the time in "
        "seconds: `<schedule>-<yyyymmdd-hhmmss>`.",
        refusals=[
            NO_USER,
            DocumentedRefusal(
                404,
                ["NoScheduleError", "NoVirtualClusterError", "NoApiError"],
                "There is no such schedule, or its job's virtual cluster is gone.",
            ),
            CONFLICT,
            TOO_MANY_JOBS,
            FULL,
        ],
    )
    async def post(self, user: str, name: str) -> None:
        """Submit."""
        self.answer({"job": await self.service.schedules.run(self.principal, user, name)}, 202)


def _wanted(body: dict[str, Any]) -> WantedSchedule:
    job = body.get("job")
    if not isinstance(job, dict):
        raise missing("job")
    overlap, paused = body.get("overlap", Overlap.SKIP.value), body.get("paused", False)
    if overlap not in list(Overlap):
        raise _wrong("$.overlap", msg("overlap must be {choices}.", choices=" | ".join(Overlap)))
    if not isinstance(paused, bool):
        raise _wrong("$.paused", msg("paused must be true or false."))
    return WantedSchedule(body["cron"], body["timeZone"], job, Overlap(overlap), paused)


def _wrong(place: str, message: Message) -> RequestError:
    return invalid_parameters(message, [SpecError(place, message)])


ROUTES: list[Route] = routes(
    SchedulesHandler, ScheduleTimesHandler, ScheduleHandler, ScheduleStateHandler, ScheduleRunsHandler
)
