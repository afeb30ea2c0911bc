"""The queues over REST: who waits in which order, and moving a job in it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pai_scheduler.cluster.sort_key import KeyedJob, SortKey
from pai_scheduler.core.queries import QueuedJob
from pai_scheduler.i18n import msg
from pai_scheduler.job.validation import SpecError
from pai_scheduler.rest.errors import conflict, invalid_parameters
from pai_scheduler.rest.models import LAST_PLACE, Done, QueueEntry, Reordering

from .answering import to_json
from .base import ApiHandler, HandlerContext, Route, asked_page, link_to_next, routes, whole_number, word
from .body import read_object
from .operations import (
    AFTER,
    CONFLICT,
    FLAG,
    LARGEST_PAGE,
    NEXT_PAGE,
    NO_JOB,
    NO_VIRTUAL_CLUSTER,
    Answer,
    Body,
    operation,
    query,
)
from .streaming import SLICE, ListHandler, Slice, joined, take

#: Of so many jobs of one's own is said why they wait: each takes a search through the cluster.
_EXPLAINED = 20
_WHOLE_NUMBER = re.compile(r"[0-9]{1,10}")


class QueueHandler(ListHandler):
    """`/queue`: everybody may know how long it is; which jobs the others' are is their business."""

    def initialize(self, context: HandlerContext) -> None:
        """Take what tornado hands to each new handler."""
        super().initialize(context)
        self._unexplained = _EXPLAINED

    @operation(
        "GET /queue",
        "queue",
        "cluster",
        "List the waiting jobs of each virtual cluster, first come first",
        {
            200: Answer(
                "The queues by virtual cluster; on a later page, a queue that had no more is empty.",
                dict[str, list[QueueEntry]],
                headers=NEXT_PAGE,
            )
        },
        parameters=[
            query("virtualCluster", str, "Only that of this virtual cluster"),
            query(
                "limit",
                Annotated[int, Meta(ge=1, le=LARGEST_PAGE)],
                "A page, of so many places of each virtual cluster; without it all",
            ),
            AFTER,
            query("own", FLAG, "The first page ends with as many of one's own jobs that come later", "0"),
        ],
        refusals=[NO_VIRTUAL_CLUSTER],
    )
    async def get(self) -> None:
        """List, first come first: so many of each virtual cluster, or all."""
        names = self.service.queues.names(self.query_text("virtualCluster") or None)
        page = asked_page(self, _positions)
        own = self.query_flag("own")
        self.set_header("Content-Type", "application/json; charset=UTF-8")
        if page.limit is not None:
            await self._answer_page(names, page.limit, page.after, own=own)
            return
        for number, name in enumerate(names):
            self.write((b"," if number else b"{") + to_json(name) + b":")
            if page.after is not None and name not in page.after:
                self.write(b"[]")
            else:
                begin = None if page.after is None else page.after[name]
                await self.write_array(begin, partial(self._read, name))
        self.finish(b"}" if names else b"{}")

    async def _answer_page(
        self, names: Sequence[str], limit: int, after: Mapping[str, KeyedJob] | None, *, own: bool
    ) -> None:
        """Finish with so many places of each queue; a queue that had no more before has none now."""
        arrays: list[bytes] = []
        going_on: dict[str, KeyedJob] = {}
        for name in names:
            array, last = b"[]", None
            if after is None or name in after:
                begin = None if after is None else after[name]
                array, last = await take(begin, limit, partial(self._read, name))
            if last is not None:
                going_on[name] = last
                if own and after is None:
                    array = joined(array, await self._own(name, last, limit))
            arrays.append(to_json(name) + b":" + array)
        if going_on:
            self.set_header("Link", link_to_next(self.request, msgspec.to_builtins(going_on)))
        self.finish(b"{" + b",".join(arrays) + b"}")

    async def _read(
        self, name: str, after: KeyedJob | None, limit: int | None
    ) -> AsyncIterator[Slice[KeyedJob]]:
        while limit is None or limit > 0:
            wanted = SLICE if limit is None else min(SLICE, limit)
            part = self.service.queues.waiting(name, after=after, limit=wanted)
            yield [await self._present(queued) for queued in part]
            if len(part) < wanted:
                return
            await asyncio.sleep(0)  # others' requests come between
            after = part[-1].keyed
            limit = None if limit is None else limit - wanted

    async def _own(self, name: str, after: KeyedJob, limit: int) -> bytes:
        """Return the caller's own jobs after a position."""
        entries = []
        positions = await self.service.queues.own(self.principal, name, after, limit)
        for number, position in enumerate(positions, 1):
            if queued := self.service.queues.at(position):
                entries.append(to_json((await self._present(queued))[1]))
            if number % SLICE == 0:
                await asyncio.sleep(0)
        return b"[" + b",".join(entries) + b"]"

    async def _present(self, queued: QueuedJob) -> tuple[KeyedJob, QueueEntry]:
        reason, never_fits, starts_within = None, False, None
        if self._unexplained and queued.job.user == self.principal.name:
            self._unexplained -= 1
            reason = self.service.queues.waiting_reason(self.principal, queued.job)
            never_fits = self.service.queues.never_fits(queued.job)
            starts_within = self.service.queues.starts_within(queued.job)
            await asyncio.sleep(0)
        return queued.keyed, self.presenter.queue_entry(
            queued, self.principal, reason, never_fits, starts_within
        )


class JobQueueHandler(ApiHandler):
    """`…/queue`: a job's priority, and its place among those of its priority."""

    @operation(
        "PUT /user/{user}/jobs/{job}/queue",
        "reorder",
        "jobs",
        "Give a job another priority, or another place among those of its priority",
        {202: Answer("It is durable.", Done)},
        description="An owner moves a job among their own, an administrator among all. A place beyond the "
        "last is the last. The priority counts whenever the job waits; only a waiting job has a place.",
        body=Body(
            Annotated[
                Reordering,
                Meta(extra_json_schema={"anyOf": [{"required": ["priority"]}, {"required": ["place"]}]}),
            ]
        ),
        refusals=[NO_JOB, CONFLICT],
    )
    async def put(self, user: str, name: str) -> None:
        """Move it."""
        body = read_object(self.request)
        priority, place = _number(body, "priority", 0, 100), _number(body, "place", 1, LAST_PLACE)
        if priority is None and place is None:
            message = msg("Say which priority (0–100) or which place (from 1) the job shall have.")
            raise invalid_parameters(message, [SpecError("$", message)])
        job = await self.service.jobs.get(self.principal, user, name)
        if job.state.ended:
            raise conflict(msg("Job {name} has ended, so it has no place in a queue.", name=name))
        if job.is_decided:
            raise conflict(msg("Job {name} is ending, so it has no place in a queue.", name=name))
        if place is not None and self.service.queues.queue_position(job) is None:
            raise conflict(
                msg(
                    "Job {name} is not waiting for resources, so it has no place in a queue. "
                    "Its priority can be set.",
                    name=name,
                )
            )
        if place is not None and self.service.queues.puts_shorter_first(job):
            raise conflict(
                msg(
                    "In virtual cluster {vc} shorter jobs come first, so that nobody chooses a place. "
                    "The priority of job {name} can be set.",
                    vc=job.spec.virtual_cluster,
                    name=name,
                )
            )
        await self.service.jobs.reorder(self.principal, user, name, priority=priority, place=place)
        self.answer({"message": f"move job {name} successfully"}, 202)


def _positions(cursor: Any) -> dict[str, KeyedJob]:
    if not isinstance(cursor, dict):
        raise ValueError(cursor)
    return {name: _position(position) for name, position in cursor.items()}


def _position(value: Any) -> KeyedJob:
    match value:
        case [[priority, policy, submission], job_id]:
            key = SortKey(whole_number(priority), whole_number(policy), whole_number(submission))
            return key, word(job_id)
    raise ValueError(value)


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


ROUTES: list[Route] = routes(QueueHandler, JobQueueHandler)
