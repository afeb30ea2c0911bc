"""Which job and which of its tasks a login name means, among those that the person may see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pai_scheduler.core.model import Job, State, Task
from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.errors import RequestError, no_task
from pai_scheduler.ssh.keys.login_name import LoginName

#: what the person's default notebook server, which has no name in JupyterHub, is called
DEFAULT_SERVER = "notebook"
#: names that a refusal lists
_MOST_LISTED = 10


def named(jobs: Iterable[Job], name: str) -> Job | None:
    """Find a job by its name or its server's name in JupyterHub; the newest where several have it."""
    found = list(jobs)
    server = "" if name == DEFAULT_SERVER else name
    for fits in (lambda job: job.name == name, lambda job: _server(job) == server):
        if fitting := [job for job in found if fits(job)]:
            return max(fitting, key=lambda job: (job.created, job.order))
    return None


def choose(
    names: Sequence[LoginName], jobs: Iterable[Job], waiting: Callable[[Job], Message | None]
) -> tuple[Job, Task]:
    """Choose among `jobs` the one that a login name means in one of its readings, and the task.

    RequestError: none is meant (404), several are, or it does not run (409). `waiting` says why a job waits.
    """
    live = [job for job in jobs if not job.is_decided]
    refusal = None
    for name in names:
        theirs = [job for job in live if job.user == name.user]
        try:
            job = _job(name, theirs)
        except RequestError as error:
            refusal = refusal or error
        else:
            return job, _task(job, name.task, waiting)
    raise refusal or RequestError(404, "NoJobError", msg("This names no task."))


def running(job: Job) -> list[Task]:
    """List the tasks of a job that can be entered, in the order of its roles."""
    if job.attempt is None or not job.attempt.tasks:
        return []
    return [task for task in job.in_gang_order(job.attempt) if _runs(task)]


def _job(name: LoginName, theirs: Sequence[Job]) -> Job:
    if name.job:
        job = named(theirs, name.job)
        if job is None:
            text = msg(
                "No job {name} of user {user} runs. {there}",
                name=name.job,
                user=name.user,
                there=_there(theirs),
            )
            raise RequestError(404, "NoJobError", text)
        return job
    there = [job for job in theirs if running(job)]
    if not there:
        raise RequestError(404, "NoJobError", msg("No job of user {user} runs.", user=name.user))
    if len(there) > 1:
        text = msg("Several jobs run: log in as one of {names}.", names=_listed(_logins(there)))
        raise RequestError(409, "ConflictJobError", text)
    return there[0]


def _task(job: Job, hostname: str, waiting: Callable[[Job], Message | None]) -> Task:
    if hostname:
        tasks = job.attempt.tasks.values() if job.attempt else ()
        known = {f"{role.name}-{index}" for role in job.spec.task_roles for index in range(role.task_number)}
        if hostname not in known:
            raise no_task(job.spec, hostname)
        for task in tasks:
            if task.ref.hostname == hostname and _runs(task):
                return task
            if task.ref.hostname == hostname and task.state.ended:
                text = msg("Task {task} of job {name} has ended.", task=hostname, name=job.name)
                raise RequestError(409, "ConflictJobError", text)
    there = running(job)
    if hostname or (job.state is State.WAITING and not there):
        reason = waiting(job) or msg("Its tasks are being started.")
        text = msg("Job {name} does not run yet. {reason}", name=job.name, reason=reason)
        raise RequestError(409, "ConflictJobError", text)
    if not there:
        raise RequestError(409, "ConflictJobError", msg("No task of job {name} runs.", name=job.name))
    if len(there) > 1:
        names = _listed(str(LoginName(job.user, job.name, task.ref.hostname)) for task in there)
        text = msg("Job {name} has several tasks: log in as one of {names}.", name=job.name, names=names)
        raise RequestError(409, "ConflictJobError", text)
    return there[0]


def _runs(task: Task) -> bool:
    return task.started is not None and not task.state.ended and not task.killing


def _server(job: Job) -> str | None:
    session = job.spec.extras.get("session")
    name = session.get("server") if isinstance(session, dict) else None
    return name if isinstance(name, str) else None


def _there(jobs: Sequence[Job]) -> Message:
    there = [job for job in jobs if running(job)]
    if not there:
        return msg("There is none.")
    return msg("There are: {names}.", names=_listed(job.name for job in there))


def _logins(jobs: Iterable[Job]) -> list[str]:
    return [str(LoginName(job.user, job.name)) for job in jobs]


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:_MOST_LISTED]) + (" …" if len(found) > _MOST_LISTED else "")
