"""The queues over REST: who waits in which order, and moving a job in it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from ..errors import conflict, invalid_parameters
from ..job.messages import msg
from ..job.validate import SpecError
from ..wire import QueueEntry
from .body import read_object
from .desk import ApiHandler, Route

#: Places of one virtual cluster that are shown unless more are asked for.
_SHOWN = 1000
#: Of so many jobs of one's own is said why they wait: each takes a search through the cluster.
_EXPLAINED = 20
_LAST_PLACE = 2**31 - 1
_WHOLE_NUMBER = re.compile(r"[0-9]{1,10}")


class QueueHandler(ApiHandler):
    """`/queue`: everybody may know how long it is; which jobs the others' are is their business."""

    async def get(self) -> None:
        """List, first come first."""
        virtual_cluster = self.query_text("virtualCluster") or None
        limit = self.query_int("limit", _SHOWN, least=0)
        explained, shown = 0, {}
        for name, queue in self.service.queue(virtual_cluster).items():
            entries: list[QueueEntry] = []
            for queued in queue:
                own = queued.job.user == self.caller.name
                if not own and limit is not None and queued.place > limit:
                    continue
                reason = None
                if own and explained < _EXPLAINED:
                    explained += 1
                    reason = self.service.waiting_reason(queued.job)
                    await asyncio.sleep(0)  # others' requests come between
                entries.append(self.presenter.queue_entry(queued, self.caller, reason))
            shown[name] = entries
        self.answer(shown)


class JobQueueHandler(ApiHandler):
    """`…/queue`: a job's priority, and its place among those of its priority."""

    async def put(self, user: str, name: str) -> None:
        """Move it."""
        body = read_object(self.request)
        priority, place = _number(body, "priority", 0, 100), _number(body, "place", 1, _LAST_PLACE)
        if priority is None and place is None:
            message = msg("Say which priority (0–100) or which place (from 1) the job shall have.")
            raise invalid_parameters(message, [SpecError("$", message)])
        job = await self.service.job(self.caller, user, name)
        if job.state.ended:
            raise conflict(msg("Job {name} has ended, so it has no place in a queue.", name=name))
        if job.is_decided:
            raise conflict(msg("Job {name} is ending, so it has no place in a queue.", name=name))
        if place is not None and self.service.queue_place(job) is None:
            raise conflict(
                msg(
                    "Job {name} is not waiting for resources, so it has no place in a queue. "
                    "Its priority can be set.",
                    name=name,
                )
            )
        await self.service.reorder(self.caller, user, name, priority=priority, place=place)
        self.answer({"message": f"move job {name} successfully"}, 202)


def _number(body: Mapping[str, Any], key: str, least: int, most: int) -> int | None:
    """Read a whole number, or what is one as text: forms have nothing else."""
    value = body.get(key)
    if value is None:
        return None
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1.0 is a whole number to JSON Schema
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        message = msg(
            "{key} must be a whole number, from {least} to {most}.", key=key, least=least, most=most
        )
        raise invalid_parameters(message, [SpecError(f"$.{key}", message)])
    return value


ROUTES: list[Route] = [
    (r"/queue", QueueHandler),
    (r"/user/([^/]+)/jobs/([^/]+)/queue", JobQueueHandler),
]
