"""Refusals of a request: an HTTP status, the contract's code word, and a sentence for a person."""

from __future__ import annotations

from collections.abc import Sequence

from pai_scheduler.i18n import Message, counted, msg
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.validation import SpecError


class RequestError(Exception):
    """A request that is refused. Codes and statuses: job-contract.md, section 4."""

    def __init__(self, status: int, code: str, message: Message, errors: Sequence[SpecError] = ()) -> None:
        super().__init__(str(message))
        self.status = status
        self.code = code
        self.message = message
        self.errors = tuple(errors)


def invalid_parameters(message: Message, errors: Sequence[SpecError] = ()) -> RequestError:
    """The body is not what the call takes."""
    return RequestError(400, "InvalidParametersError", message, errors)


def no_job(user: str, name: str) -> RequestError:
    """There is no such job, or it is another user's."""
    return RequestError(
        404, "NoJobError", msg("Job {name} of user {user} is not found.", name=name, user=user)
    )


def no_task(spec: JobSpec, task: str) -> RequestError:
    """A job has no such task."""
    there = ", ".join(
        f"{role.name}-0" + (f" … {role.name}-{role.task_number - 1}" if role.task_number > 1 else "")
        for role in spec.task_roles
    )
    message = msg(
        "Job {name} has no task {task}. There are: {tasks}.", name=spec.name, task=task, tasks=there
    )
    return RequestError(404, "NoJobError", message)


def no_attempt(name: str, attempt: int, last: int) -> RequestError:
    """A job has had no such attempt yet."""
    message = msg(
        "Job {name} has no attempt {attempt}; they count from 0, the last is {last}.",
        name=name,
        attempt=attempt,
        last=last,
    )
    return RequestError(404, "NoJobError", message)


def no_virtual_cluster(name: str, known: Sequence[str]) -> RequestError:
    """There is no such virtual cluster."""
    message = msg(
        "Virtual cluster {name} is not found. There are: {known}.", name=name, known=", ".join(known)
    )
    return RequestError(404, "NoVirtualClusterError", message)


def no_node(name: str, known: Sequence[str]) -> RequestError:
    """There is no such machine."""
    message = msg("Node {name} is not found. There are: {known}.", name=name, known=", ".join(known))
    return RequestError(404, "NoNodeError", message)


def no_maintenance(name: str, known: Sequence[str]) -> RequestError:
    """Nothing is planned by this name."""
    message = msg(
        "Maintenance {name} is not found. There are: {known}.", name=name, known=", ".join(known) or "-"
    )
    return RequestError(404, "NoMaintenanceError", message)


def no_schedule(user: str, name: str) -> RequestError:
    """There is no such schedule, or it is another user's."""
    message = msg("Schedule {name} of user {user} is not found.", name=name, user=user)
    return RequestError(404, "NoScheduleError", message)


def forbidden(message: Message) -> RequestError:
    """The caller may not do this."""
    return RequestError(403, "ForbiddenUserError", message)


def conflict(message: Message) -> RequestError:
    """Return the error for a request that conflicts with something that exists already."""
    return RequestError(409, "ConflictJobError", message)


def conflicting_virtual_cluster(message: Message) -> RequestError:
    """A virtual cluster that is there stands against it."""
    return RequestError(409, "ConflictVcError", message)


def log_removed(days: int) -> RequestError:
    """There was a log, and it is too old to be kept."""
    message = counted(
        "This log was removed: logs are kept for {count} day after the end of their task.",
        "This log was removed: logs are kept for {count} days after the end of their task.",
        count=days,
    )
    return RequestError(410, "LogRemovedError", message)


def too_many_jobs(user: str, most: int) -> RequestError:
    """A user has as many jobs as one may have."""
    message = counted(
        "User {user} has {count} job that has not ended, which is all that one user may have. "
        "Wait until it has ended, or stop it.",
        "User {user} has {count} jobs that have not ended, which is all that one user may have. "
        "Wait until some have ended, or stop them.",
        user=user,
        count=most,
    )
    return RequestError(429, "TooManyJobsError", message)


def too_many_schedules(user: str, most: int) -> RequestError:
    """A user has as many schedules as one may have."""
    message = counted(
        "User {user} has {count} schedule, which is all that one user may have. Delete it first.",
        "User {user} has {count} schedules, which is all that one user may have. Delete one first.",
        user=user,
        count=most,
    )
    return RequestError(429, "TooManySchedulesError", message)


def too_many_streams(most: int) -> RequestError:
    """The caller follows too much at once."""
    message = counted(
        "You follow {count} log or events of a job, which is all that one user may at once. End that first "
        "(a forgotten browser tab, a program that never closes what it reads).",
        "You follow {count} logs and events at once, which is all that one user may. End one of them first "
        "(a forgotten browser tab, a program that never closes what it reads).",
        count=most,
    )
    return RequestError(429, "TooManyStreamsError", message)


def storage_unavailable(message: Message) -> RequestError:
    """The service cannot read what it wrote down, or cannot write down what it would have to promise."""
    return RequestError(503, "StorageUnavailableError", message)


def storage_damaged(message: Message) -> RequestError:
    """Return the error for stored data that is damaged and must be repaired."""
    return RequestError(503, "StorageDamagedError", message)


def storage_full(message: Message) -> RequestError:
    """The service has no room to write down what it would have to promise."""
    return RequestError(507, "InsufficientStorageError", message)


def no_storage() -> RequestError:
    """This scheduler keeps no files for its users."""
    return RequestError(404, "NoStorageError", msg("This scheduler has no storage for files."))


def no_ssh_authorization() -> RequestError:
    """Nobody can log into this scheduler's tasks."""
    return RequestError(404, "NoJobSshInfoError", msg("Tasks of this scheduler cannot be reached by SSH."))
