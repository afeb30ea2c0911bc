"""What handlers of terminals, *Connect* and ports share: which task is meant, why it cannot be reached."""

from __future__ import annotations

from http import HTTPStatus

import asyncssh
from tornado import web

from pai_labextension.base_handlers import PAIHandler
from pai_labextension.messages import msg
from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError
from pai_scheduler.i18n import Message

from .connections import NoTaskError, TaskName

#: The parts of an address that name a task.
TASK_PATTERN = r"([^/]+)/([^/]+)/([^/]+)"
#: Raised where a task cannot be reached; `reason_of` puts it into a sentence.
TASK_ERRORS = (RemoteError, ApiError, UnreachableError, asyncssh.Error, OSError)


class TaskHandler(PAIHandler):
    """Is asked about a task, which the first three parts of its path name."""

    def task(self) -> TaskName:
        """Read which task is meant."""
        user, job, task = self.path_args[:3]
        try:
            return TaskName.read(str(user), str(job), str(task))
        except NoTaskError:
            raise web.HTTPError(HTTPStatus.NOT_FOUND) from None


def reason_of(error: Exception) -> Message:
    """Return in a sentence why a task cannot be reached."""
    match error:
        case RemoteError():
            return error.message
        case ApiError():
            return msg("The scheduler refuses: {reason}", reason=error.message)
        case UnreachableError():
            return msg("The scheduler does not answer: {reason}", reason=str(error))
    return msg("The task cannot be reached: {reason}", reason=str(error) or type(error).__name__)
