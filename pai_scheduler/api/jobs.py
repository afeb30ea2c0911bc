"""Jobs over REST: submit, list, show, stop, delete, and what submitting would do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote

import yaml
from msgspec import Meta

from pai_scheduler.core.model import Job, State
from pai_scheduler.i18n import msg
from pai_scheduler.job.validation import SpecError
from pai_scheduler.rest.errors import RequestError, conflict, invalid_parameters
from pai_scheduler.rest.models import (
    AttemptInfo,
    Count,
    Done,
    Execution,
    JobDetail,
    JobSummary,
    Submitted,
    Validation,
)
from pai_scheduler.store.records import JobPosition, SubmittedText

from .base import ApiHandler, Route, asked_page, bad_query, routes, whole_number, word
from .body import read_body, read_job, read_object, read_reason
from .operations import (
    AFTER,
    CONFLICT,
    FLAG,
    FULL,
    JOB,
    LIMIT,
    NEXT_PAGE,
    NO_API,
    NO_JOB,
    NO_USER,
    NO_VIRTUAL_CLUSTER,
    TOO_MANY_JOBS,
    Answer,
    Body,
    DocumentedRefusal,
    Header,
    operation,
    query,
)
from .presenter import Outlook
from .streaming import ListHandler, stored

_JSON = "application/json"
_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")

#: Of so many waiting jobs of a page is said when they start: each takes a look at the cluster.
_ESTIMATED = 10
_LISTED = {200: Answer("The jobs.", list[JobSummary], headers=NEXT_PAGE)}
_STATE = query(
    "state",
    Annotated[str, Meta(pattern="^(({0})(,({0}))*)?$".format("|".join(State)), examples=["WAITING,RUNNING"])],
    "Only those in one of these states; empty: in any",
)
_DONE = {202: Answer("It is durable.", Done)}
#: what a call has that submits
_SUBMISSION: Mapping[str, Any] = {
    "answers": {
        202: Answer(
            "The job is accepted, durably.",
            Submitted,
            headers={
                "Location": Header("Where the job is found", required=True),
                "X-Warning": Header(
                    "A field that has no effect, or a URI that the user may not read or write; once for each"
                ),
            },
        )
    },
    "body": Body(
        JOB,
        {"type": "object", "description": "The same with nested keys; numbers are strings and null is empty"},
    ),
    "refusals": [NO_VIRTUAL_CLUSTER, CONFLICT, TOO_MANY_JOBS],
}


class _SubmitHandler(ApiHandler):
    async def submit(self, owner: str, config: dict[str, Any], text: SubmittedText | None) -> None:
        """Submit for `owner`, and say where the job is found; RequestError where it is refused."""
        accepted = await self.service.admission.submit(self.principal, owner, config, text)
        name = accepted.name
        for warning in accepted.warnings:
            # there may be anybody's URIs in it
            self.add_header("X-Warning", str(warning.message).encode("unicode_escape").decode("ascii"))
        place = f"api/v1/user/{quote(owner, safe='')}/jobs/{quote(name, safe='')}"
        self.set_header("Location", self.context.prefix + place)
        answer: Submitted = {"message": f"update job {name} successfully"}
        if accepted.warnings:
            answer["warnings"] = self.presenter.errors(accepted.warnings)
        self.answer(answer, 202)


class _ListingHandler(_SubmitHandler, ListHandler):
    async def list_jobs(self, owner: str | None) -> None:
        """List, newest first."""
        states = _states(self.query_text("state"))
        queues = self.service.queues
        unestimated = _ESTIMATED

        async def read(after: JobPosition | None, count: int) -> list[Job]:
            return await self.service.jobs.page(
                self.principal, owner, states=states, after=after, limit=count
            )

        def present(job: Job) -> tuple[JobPosition, JobSummary]:
            nonlocal unestimated
            starts_within = None
            if job.state is State.WAITING and unestimated:
                unestimated -= 1
                starts_within = queues.starts_within(job)
            position = JobPosition(job.created, job.id)
            return position, self.presenter.summary(job, queues.queue_position(job), starts_within)

        await self.answer_list(asked_page(self, _position), stored(read, present))


class JobsHandler(_ListingHandler):
    """`/jobs`: the caller's own jobs; an admin's list holds everybody's."""

    public_in_openpai = True

    @operation(
        "GET /jobs",
        "jobs",
        "jobs",
        "List jobs, newest first",
        _LISTED,
        description="One's own; an administrator's list holds everybody's.",
        parameters=[query("username", str, "Only those of this user"), _STATE, LIMIT, AFTER],
    )
    async def get(self) -> None:
        """List."""
        await self.list_jobs(self.query_text("username") or None)

    @operation("POST /jobs", "submit", "jobs", "Submit a job", **_SUBMISSION)
    async def post(self) -> None:
        """Submit for oneself."""
        await self.submit(self.principal.name, *read_job(self.request))


class UserJobsHandler(_ListingHandler):
    """`/user/:u/jobs`."""

    public_in_openpai = True

    @operation(
        "GET /user/{user}/jobs",
        "userJobs",
        "jobs",
        "List a user's jobs, newest first",
        _LISTED,
        parameters=[_STATE, LIMIT, AFTER],
        refusals=[NO_API],
    )
    async def get(self, user: str) -> None:
        """List."""
        await self.list_jobs(user)

    @operation("POST /user/{user}/jobs", "submitFor", "jobs", "Submit a job for a user", **_SUBMISSION)
    async def post(self, user: str) -> None:
        """Submit for `user`."""
        await self.submit(user, *read_job(self.request))


class JobHandler(_SubmitHandler):
    """`/user/:u/jobs/:j`."""

    public_in_openpai = True

    @operation(
        "GET /user/{user}/jobs/{job}",
        "job",
        "jobs",
        "A job with its last attempt",
        {200: Answer("The job.", JobDetail)},
        refusals=[NO_JOB],
    )
    async def get(self, user: str, name: str) -> None:
        """Show."""
        job = await self.service.jobs.get(self.principal, user, name)
        queues = self.service.queues
        outlook = Outlook(
            queues.waiting_reason(self.principal, job),
            queues.queue_position(job),
            queues.starts_within(job),
            self.service.jobs.latest_end(job),
            await self.service.dependencies.links(job),
            queues.never_fits(job),
        )
        self.answer(self.presenter.detail(job, outlook))

    @operation(
        "PUT /user/{user}/jobs/{job}",
        "submitAs",
        "jobs",
        "Submit a job under the name in the address",
        description="A name that is taken is refused, as everywhere.",
        **_SUBMISSION,
    )
    async def put(self, user: str, name: str) -> None:
        """Submit under the name in the address."""
        config, text = read_job(self.request)
        if config.get("jobName", name) != name:
            message = msg("jobName must be {name}, as in the address of this request.", name=name)
            raise invalid_parameters(message, [SpecError("$.jobName", message)])
        await self.submit(user, config, text)

    @operation(
        "DELETE /user/{user}/jobs/{job}",
        "delete",
        "jobs",
        "Delete a job and its logs",
        _DONE,
        description="A running job is stopped first.",
        refusals=[NO_JOB, FULL],
    )
    async def delete(self, user: str, name: str) -> None:
        """Forget a job and its logs."""
        await self.service.jobs.delete(self.principal, user, name)
        self.answer({"message": f"deleted job {name} successfully"}, 202)


class ConfigHandler(ApiHandler):
    """`…/config`: the job as it was submitted."""

    public_in_openpai = True

    @operation(
        "GET /user/{user}/jobs/{job}/config",
        "config",
        "jobs",
        "The job as it was submitted",
        {200: Answer("The job.", JOB, {"application/yaml": JOB})},
        description=(
            "As YAML where `Accept` puts that before JSON. With `as=submitted` the text as it was sent, with "
            "comments and trailing commas, in its own media type; of a job without them its JSON."
        ),
        parameters=[query("as", Literal["submitted"], "The text as it was sent")],
        refusals=[DocumentedRefusal(404, ["NoJobConfigError", "NoApiError"], "There is no such job.")],
    )
    async def get(self, user: str, name: str) -> None:
        """Return it as JSON, as YAML where the caller prefers that, or as it was sent."""
        form = self.query_text("as")
        if form not in (None, "submitted"):
            raise bad_query("as", msg("{text} is not “submitted”, the only value that there is.", text=form))
        text = None
        try:
            if form is not None:
                text = await self.service.jobs.submitted_text(self.principal, user, name)
            config = await self.service.jobs.config(self.principal, user, name)
        except RequestError as refusal:
            if refusal.code == "NoJobError":
                raise RequestError(404, "NoJobConfigError", refusal.message) from None
            raise
        if text is not None:
            self.set_header("Content-Type", f"{text.media_type}; charset=UTF-8")
            self.finish(text.text)
        elif form is None and _prefers_yaml(self.request.headers.get("Accept", "")):
            self.set_header("Content-Type", "application/yaml; charset=UTF-8")
            # a large one takes seconds to write, which is nobody else's business
            self.finish(await asyncio.to_thread(_yaml, config))
        else:
            self.answer(config)


class ExecutionTypeHandler(ApiHandler):
    """`…/executionType`: stop a job."""

    @operation(
        "PUT /user/{user}/jobs/{job}/executionType",
        "execute",
        "jobs",
        "Stop a job",
        _DONE,
        description="Stopping an ended job, and starting one that has not ended, changes nothing. The tasks "
        "of a stopped job have time to end by themselves (`extras.terminationGraceSeconds`): `force` kills "
        "them at once, also when the job is being stopped already.",
        body=Body(Execution),
        refusals=[NO_JOB, CONFLICT],
    )
    async def put(self, user: str, name: str) -> None:
        """Stop; what has ended cannot be started again under its name."""
        asked = read_object(self.request)
        value = asked.get("value")
        if value == "STOP":
            reason, force = read_reason(asked.get("reason", "")), asked.get("force", False)
            # (old clients write a form, whose values are texts)
            if force not in (True, False, "true", "false"):
                message = msg("force must be true or false.")
                raise invalid_parameters(message, [SpecError("$.force", message)])
            await self.service.jobs.stop(self.principal, user, name, reason, force=force in (True, "true"))
        elif value == "START":
            job = await self.service.jobs.get(self.principal, user, name)
            if job.is_decided:
                raise conflict(
                    msg("Job {name} has ended. To run it again, submit it under another name.", name=name)
                    if job.state.ended
                    else msg(
                        "Job {name} is ending. To run it again, submit it under another name.", name=name
                    )
                )
        else:
            message = msg("value must be START or STOP.")
            raise invalid_parameters(message, [SpecError("$.value", message)])
        self.answer({"message": f"execute job {name} successfully"}, 202)


class AttemptsHandler(ApiHandler):
    """`…/attempts`: every try, oldest first."""

    @operation(
        "GET /user/{user}/jobs/{job}/attempts",
        "attempts",
        "watching",
        "Every try at running the job, oldest first",
        {200: Answer("The attempts.", list[AttemptInfo])},
        parameters=[
            query("attempt", Count, "Only this one, from 0"),
            query("tasks", FLAG, "Whether their tasks are listed; without them `taskRoles` is empty", "1"),
        ],
        refusals=[NO_JOB],
    )
    async def get(self, user: str, name: str) -> None:
        """List."""
        number = self.query_int("attempt", least=0)
        tasks = self.query_flag("tasks", default=True)
        job = await self.service.jobs.get(self.principal, user, name)
        attempts = await self.service.jobs.attempts(self.principal, user, name)
        self.answer(
            [
                self.presenter.attempt(job, attempt, tasks=tasks)
                for attempt in attempts
                if number is None or attempt.number == number
            ]
        )


class ValidateHandler(ApiHandler):
    """`/validate`: what submitting this would do."""

    @operation(
        "POST /validate",
        "validate",
        "jobs",
        "What submitting a job would do",
        {200: Answer("What it would do.", Validation)},
        description="Any JSON is answered; what keeps it from being a job stands in `errors`.",
        body=Body({"anyOf": [JOB, True]}, {"type": "object"}),
        parameters=[query("user", str, "For administrators: whose job it would be; absent, one's own")],
        refusals=[NO_USER],
    )
    async def post(self) -> None:
        """Check."""
        name = self.query_text("user") or self.principal.name
        user = await self.asked_user(name, msg("Only an administrator may act for user {user}.", user=name))
        forecast = await self.service.admission.validate(user, read_body(self.request))
        self.answer(self.presenter.validation(forecast))


def _states(text: str | None) -> frozenset[State] | None:
    """Read states with commas between; None: any."""
    if not text:
        return None
    known, names = [state.value for state in State], text.split(",")
    for name in names:
        if name not in known:
            raise bad_query(
                "state",
                msg("there is no state {state}; there are: {states}.", state=name, states=", ".join(known)),
            )
    return frozenset(map(State, names))


def _position(cursor: Any) -> JobPosition:
    created, job_id = cursor if isinstance(cursor, list) and len(cursor) == 2 else (None, None)
    return JobPosition(whole_number(created), word(job_id))


def _yaml(config: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(config, allow_unicode=True, sort_keys=False)
    return text


def _prefers_yaml(accept: str) -> bool:
    """Return whether an `Accept` header puts one of YAML's names before JSON's."""
    weights: dict[str, float] = {}
    for part in accept.split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = next((item[2:] for item in parameters if item.startswith("q=")), "1")
        try:
            weights[kind] = float(quality)
        except ValueError:
            weights[kind] = 0.0
    as_yaml = max((weights.get(kind, 0.0) for kind in _YAML), default=0.0)
    return as_yaml > weights.get(_JSON, 0.0)


ROUTES: list[Route] = routes(
    JobsHandler,
    UserJobsHandler,
    JobHandler,
    ConfigHandler,
    ExecutionTypeHandler,
    AttemptsHandler,
    ValidateHandler,
)
