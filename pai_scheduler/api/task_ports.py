"""Where the scheduler's machine reaches a port of a task, for what runs there too: the Hub's proxy."""

from __future__ import annotations

from pai_scheduler.rest.models import TaskPort

from .base_handlers import ApiHandler, Route, routes
from .operations import NO_JOB, Answer, operation


class TaskPortHandler(ApiHandler):
    """`…/tasks/{index}/ports/{port}`."""

    @operation(
        "GET /user/{user}/jobs/{job}/taskRoles/{role}/tasks/{index}/ports/{port}",
        "taskPort",
        "jobs",
        "Where the scheduler's machine reaches a port of a task",
        {200: Answer("An address of that machine, or of the task.", TaskPort)},
        description="A task on another machine gets a port of the scheduler's loopback address, which stays "
        "for as long as the task is there.",
        refusals=[NO_JOB],
    )
    async def get(self, user: str, name: str, role: str, index: str, port: str) -> None:
        """Return where the port is."""
        task = await self.service.tasks.find(self.principal, user, name, role, int(index))
        found = await self.service.tasks.reach(task, int(port))
        answer: TaskPort = {
            "host": None if found is None else found[0],
            "port": int(port) if found is None else found[1],
        }
        self.answer(answer)


ROUTES: list[Route] = routes(TaskPortHandler)
